#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: strace systemd util-linux
"""netobs.service: an unprivileged user with the unit's capabilities does the whole job."""

import os
import re
import socket
import stat
import subprocess

from lib import bpf
from lib import lab
from lib import traffic
from lib.service import NOBODY, ServiceTest

SOURCE = os.environ["NETOBS_SOURCE"]
PACKAGING = os.path.join(SOURCE, "packaging/systemd")
UNIT = os.path.join(os.path.dirname(os.environ["NETOBSCTL"]), "netobs.service")
AWAY = ("ipfix:udp://127.0.0.1:9", "ipfix:tcp://127.0.0.1:9", "kafka://127.0.0.1:9/flows",
        "grpc://127.0.0.1:9", "http://127.0.0.1:9/flows", "json:tcp://127.0.0.1:9")


def read(path):
    return lab.read(path)


def setting(name):
    return re.search(f"^{name}=(.*)$", read(UNIT), re.M)[1].split()


class Unit(lab.LabTest):
    def analyze(self, *arguments):
        """systemd-analyze of the unit, whose command is where this build has it."""
        path = self.lab.path("netobs.service")
        lab.write(path, re.sub("^ExecStart=\\S+", "ExecStart=" + os.environ["NETOBSCTL"],
                               read(UNIT), flags=re.M))
        done = subprocess.run(["systemd-analyze", *arguments, path], text=True,
                              capture_output=True, timeout=60, check=False)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_it_is_hardened(self):
        report = self.analyze("security", "--offline=true", "--threshold=30", "--no-pager")
        self.note(report.rstrip().split("\n")[-1])

    def test_systemd_understands_it(self):
        self.assertNotIn("netobs.service", self.analyze("verify", "--man=no"))

    def test_its_user_and_directories(self):
        root = self.lab.path("root")
        os.makedirs(f"{root}/etc")
        lab.run("systemd-sysusers", f"--root={root}", f"{PACKAGING}/netobs.sysusers")
        lab.run("systemd-tmpfiles", "--create", f"--root={root}",
                f"{PACKAGING}/netobs.tmpfiles")
        user = re.search(r"^netobs:x:(\d+):(\d+):", read(f"{root}/etc/passwd"), re.M)
        for path, mode in ("var/log/netobs", 0o750), ("var/lib/netobs", 0o750), \
                          ("run/netobs", 0o755), ("sys/fs/bpf/netobs", 0o700):
            found = os.stat(f"{root}/{path}")
            self.assertEqual((int(user[1]), int(user[2]), mode),
                             (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)))


class Job(ServiceTest):
    def start_as_user(self, *before, release=False):
        """As the unit's user, with its rights."""
        some = ",".join(["-all", *("+" + name[4:].lower()
                                   for name in setting("AmbientCapabilities"))])
        self.start_as_nobody(some, *before, release=release)

    def setUp(self):
        super().setUp()
        bpf.unlock_memory()
        self.assertEqual(setting("AmbientCapabilities"), setting("CapabilityBoundingSet"))
        self.logs = self.lab.path("logs")
        os.mkdir(self.logs)
        os.chown(self.logs, NOBODY, NOBODY)
        default = read(f"{PACKAGING}/netobs.conf")
        self.assertIn("/var/log/netobs/", default)
        lab.write(self.path, default.replace("/var/log/netobs/", f"{self.logs}/").replace(
            "persist = yes", f"persist = yes\npersist_dir = {bpf.mount_bpffs(self.lab)}/set"))

    def files(self):
        return [f"logs/{name}" for name in os.listdir(self.logs)]

    def test_the_default_configuration_is_useful(self):
        self.start_as_user()
        traffic.udp(self.a, self.A4, self.b, self.B4, [100] * 9)
        traffic.udp(self.a, "127.0.0.1", self.a, "127.0.0.1", [100] * 3)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(f'[filter "x"]\n[sink "more"]\noutput = json:{self.logs}/more\n')
        self.reload("needs 'match'")
        with open(self.path, "a", encoding="utf-8") as file:
            file.write('[filter "x"]\nmatch =\naction = accept\n')
        self.reload()
        traffic.udp(self.a, self.A4, self.b, self.B4, [100] * 5)
        self.stop()
        files = self.files()
        self.assertTrue(all(name.endswith(".json") or name == "logs/more"
                            for name in files), files)
        self.assertEqual(14, self.packets(*(set(files) - {"logs/more"})))
        self.assertGreaterEqual(self.packets("logs/more"), 5) # some of the 9 come later

    def test_sessions_are_switched_on(self):
        self.start_as_user()
        with open(self.path, "a", encoding="utf-8") as file:
            file.write("[sessions]\nenabled = yes\n"
                       f'[sink "sessions"]\noutput = json:{self.logs}/sessions\n'
                       "records = session\n")
        self.reload()
        with self.b:
            listener = socket.create_server((self.B4, 0))
        with listener, self.a, socket.create_connection(listener.getsockname()) as sock:
            other = listener.accept()[0]
            sock.sendall(b"x")
            other.recv(1)
            other.close()
        self.stop()
        here = self.a.inode, self.b.inode
        records = [one for one in lab.json_lines(f"{self.logs}/sessions") if one["NetnsInode"] in here]
        self.assertEqual(2, len(records))
        self.assertEqual({os.getpid()}, {one["Pid"] for one in records})

    def test_its_programs_outlive_it(self):
        for count in 9, 5:
            traffic.udp(self.a, self.A4, self.b, self.B4, [100] * count)
            self.start_as_user()
            self.assertNotIn("persist", self.messages())
            self.stop()
        self.assertEqual(5, self.packets(*self.files())) # 9 came before the first one

    def test_the_unit_forbids_nothing_that_it_does(self):
        """With a sink of each kind, none of which reaches a collector."""
        trace = self.lab.path("trace")
        with open(self.path, "a", encoding="utf-8") as file:
            for at, output in enumerate(AWAY):
                file.write(f'[sink "{at}"]\noutput = {output}\n'
                           f"spool = disk:{self.logs}/spool-{at}\n")
        self.start_as_user("strace", "-f", "-qq", "-o", trace, release=True)
        traffic.udp(self.a, self.A4, self.b, self.B4, [100] * 9)
        self.reload()
        self.stop() # the records wait on disk
        self.assertEqual(9, self.packets(*(name for name in self.files() if "spool" not in name)))
        done = read(trace)
        used = set(re.findall(r"^\d+\s+(\w+)\(", done, re.M))
        self.assertLess({"bpf", "sendto", "connect"}, used)
        self.assertEqual(set(), used - allowed_calls())
        families = set(re.findall(r"\bsocket\((AF_\w+)", done))
        self.assertLess({"AF_INET", "AF_NETLINK"}, families)
        self.assertLessEqual(families, set(setting("RestrictAddressFamilies")))
        for forbidden in ("PROT_WRITE|PROT_EXEC", "CLONE_NEW", "SCHED_FIFO", "SCHED_RR"):
            self.assertNotIn(forbidden, done)


def allowed_calls():
    calls = set()
    groups = setting("SystemCallFilter")
    while groups:
        name = groups.pop()
        if not name.startswith("@"):
            calls.add(name)
            continue
        text = lab.run("systemd-analyze", "--no-pager", "syscall-filter", name)
        groups += re.findall(r"^    ([@\w-]+)$", text, re.M)
    return calls


if __name__ == "__main__":
    lab.main()
