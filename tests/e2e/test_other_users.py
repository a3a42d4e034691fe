#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
Other users of the host neither stop netobs nor deceive it: they lock all that they can open, and plant
files where the directory lets them.
"""

import fcntl
import os
import struct
import time

from lib import lab
from lib import observer
from lib import traffic
from lib.persistent import PersistentTest
from lib.talkers import child

NOBODY = 65534


def become_nobody():
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def lock_all(directories, done):
    """As nobody: open whatever can be opened, and take each kind of lock on it, for ever."""
    become_nobody()
    held = []
    for directory in directories:
        for path, folders, files in os.walk(directory):
            for name in [path] + [os.path.join(path, one) for one in folders + files]:
                try:
                    fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
                except OSError:
                    continue
                held.append(fd)
                for lock in (fcntl.LOCK_EX, fcntl.LOCK_SH):
                    try:
                        fcntl.flock(fd, lock | fcntl.LOCK_NB)
                        break
                    except OSError:
                        pass
                try:
                    fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except OSError:
                    pass
    os.write(done, str(len(held)).encode())
    time.sleep(600)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def forged_progress():
    """A valid file "acked": 2^40 records have been acknowledged."""
    body = b"netobsAK" + struct.pack("<QQQ", 1 << 40, 1 << 40, 1 << 40) * 2
    return body + struct.pack("<II", crc32c(body), 0)


def plant(path, contents):
    """As nobody."""
    def work():
        become_nobody()
        os.umask(0)
        with open(path, "wb") as file:
            file.write(contents)
        os.chmod(path, 0o666)
    os.waitpid(child(work), 0)


class OtherUsers(PersistentTest):
    def setUp(self):
        super().setUp()
        os.chmod(self.bpffs, 0o755)

    def open_directory(self, name, mode=0o755):
        path = self.lab.path(name)
        os.mkdir(path)
        os.chmod(path, mode)
        return path

    def lock(self, *directories):
        read, write = os.pipe()
        pid = child(lock_all, directories, write)
        os.close(write)
        self.addCleanup(os.waitpid, pid, 0)
        self.addCleanup(os.kill, pid, 9)
        locked = int(os.read(read, 8))
        os.close(read)
        return locked

    def test_locks_of_others_keep_nothing_from_starting(self):
        """Not on files that all may read, either."""
        files, spool = self.open_directory("files"), self.open_directory("spool")
        os.mkdir(self.set)
        os.chmod(self.set, 0o755)
        sinks = []
        for mode in "640", "644":
            sinks += (f'[sink "plain{mode}"]', f"output = json:{files}/plain-{mode}", f"mode = {mode}")
            for kind, output in ("rotated", "json:"), ("ipfix", "ipfix:file:"):
                sinks += (f'[sink "{kind}{mode}"]', f"output = {output}{files}/{kind}-{mode}",
                          "rotate.interval = 1h", f"mode = {mode}")
        self.write(*self.persist(), *sinks,
                   '[sink "away"]', "output = ipfix:tcp://127.0.0.1:9",
                   f"spool = disk:{spool}",
                   "[metrics]", f"listen = unix:{files}/metrics")
        self.start()
        traffic.ping(self.a, "192.0.2.2", 5)
        parts = [f"{files}/{kind}-{mode}.part" for kind in ("rotated", "ipfix") for mode in ("640", "644")]
        lab.wait_for(lambda: all(os.path.getsize(part) > 0 for part in parts), "records in all files")
        locked = self.lock(files, spool, self.bpffs, self.lab.dir)
        self.note(f"{locked} files and directories are open to others")
        self.assertGreater(locked, 4)
        self.kill()
        self.start()
        traffic.ping(self.a, "192.0.2.2", 5)
        time.sleep(0.5)
        self.stop()
        self.assertNotIn("cannot", self.messages().replace("cannot connect to 127.0.0.1:9", ""))
        self.assertEqual([], [part for part in parts if os.path.exists(part)])

    def test_two_of_ours_notice_each_other(self):
        """Also where others hold locks."""
        files, spool = self.open_directory("files"), self.open_directory("spool")
        first = observer.Observer(
            self.lab, self.a, "-i", "eth0", "-o", f"json:{files}/flows?rotate.interval=1h&mode=644",
            "-o", f"null?spool=disk:{spool}").wait_attached((self.a, "eth0"))
        self.lock(files, spool)
        for output, reason in ((f"json:{files}/flows?rotate.interval=1h", "another process does"),
                               (f"null?spool=disk:{spool}", "another process has it")):
            with self.subTest(output):
                second = observer.flows(self.lab, "-i", "eth0", "-d", "1", "-o", output, ns=self.a)
                self.assertEqual(1, second.code)
                self.assertIn(reason, second.errors)
        first.stop()

    def test_planted_files_of_a_spool_are_set_aside(self):
        planted = (("acked", forged_progress()), ("lock", b""), ("acked.new", b"x"),
                   ("0000000000000000.seg", b"netobs" * 100))
        spools = [self.open_directory(f"sticky-{name}", 0o1777) for name, _ in planted]
        for spool, (name, contents) in zip(spools, planted):
            plant(f"{spool}/{name}", contents)

        def outputs(kind):
            return [word for spool in spools for word in ("-o", f"{kind}?spool=disk:{spool}")]

        watch = observer.Observer(self.lab, self.a, "-i", "eth0", "--interval", "0.2",
                                  *outputs("ipfix:tcp://127.0.0.1:9")).wait_attached((self.a, "eth0"))
        traffic.ping(self.a, "192.0.2.2", 3)
        watch.wait_records(lambda records: records, "records")
        result = watch.stop()
        again = observer.flows(self.lab, "-i", "eth0", "-d", "0.5", "--stats", *outputs("null"), ns=self.a)
        self.assertEqual(0, again.code, again.errors)
        for (name, _), spool, before, after in zip(planted, spools, result.stats["sinks"][1:],
                                                   again.stats["sinks"], strict=True):
            with self.subTest(name):
                self.assertIn(f"{name} belongs to another user; it is {name}.bad now", result.errors)
                self.assertGreater(before["pending"]["records"], 0)
                self.assertEqual(before["pending"]["records"], after["recovered"]["records"])
                self.assertEqual(0, os.stat(f"{spool}/acked").st_uid)

    def test_a_planted_part_is_refused(self):
        files = self.open_directory("sticky", 0o1777)
        plant(f"{files}/flows.part", b'{"forged":1}\n')
        result = observer.flows(self.lab, "-i", "eth0", "-d", "1", "-o",
                                f"json:{files}/flows?rotate.interval=1h", ns=self.a)
        self.assertEqual(1, result.code)
        self.assertIn("belongs to another user", result.errors)

    def test_pins_of_others_are_not_read(self):
        self.write(*self.persist())
        self.start()
        traffic.ping(self.a, "192.0.2.2", 3)
        self.kill()
        for name in os.listdir(f"{self.set}/maps"):
            os.chown(f"{self.set}/maps/{name}", NOBODY, NOBODY)
        os.chown(f"{self.set}/state", NOBODY, NOBODY)
        self.start()
        traffic.ping(self.a, "192.0.2.2", 3)
        self.stop()
        self.assertEqual(0, os.stat(f"{self.set}/state").st_uid)


if __name__ == "__main__":
    lab.main(at_once=3)
