# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nftables iproute2 util-linux
"""Hooks of netfilter in a network namespace without a name, which its processes lead to.

By `netobsctl trace` and by the service, once they have given up privileges. The sockets there are those of this
test, which is in another namespace, so no event names a process that is in theirs.
"""

import contextlib
import json
import signal
import socket
import time

from lib import lab
from lib import observer
from lib.observer import features
from lib.privileges import NEEDED, with_only
from lib.record_sinks import sink_section
from lib.service import AGAIN, ServiceTest
from lib.tracer import PORT, Network, Trace, Tracer

TAKEN = ["prerouting", "prerouting_end", "input", "input_end"]
SYS_PTRACE, CHOWN = 1 << 19, 1 << 0
LEFT_OUT = "netfilter's hooks were not traced in"
WARNING = "netfilter's hooks in the network namespace {} are not traced: {}"
RULE = "app_latency > 1ms hold 0s limit none"


def capabilities(pid):
    """Those that the main thread has in effect."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1], 16) for line in file if line.startswith("CapEff"))


def records(path):
    with contextlib.suppress(FileNotFoundError), open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.endswith("\n")]
    return []


def taken(journeys, inode):
    """Hooks that bytes pass there on their way to a socket."""
    return [[step["Point"] for step in one["Steps"]
             if step["Layer"] == "ip" and step["NetnsInode"] == inode]
            for one in journeys if not one["Direction"] and "Steps" in one]


class Command(Trace):
    def talk(self, network):
        with contextlib.closing(network.connect()) as client, \
                contextlib.closing(network.listener.accept()[0]) as server:
            for _ in range(5):
                client.sendall(b"request")
                server.sendall(server.recv(100))
                client.recv(100)
                time.sleep(.02)

    def test_a_process_leads_to_its_hooks(self):
        network = Network(self.lab, False, False)
        self.lab.unname(network.server)
        tracer = Tracer(self, network.address[1], "--netfilter")
        self.assertTrue(capabilities(tracer.process.pid) & SYS_PTRACE)

        def is_seen():
            self.talk(network)
            return TAKEN in taken(tracer.own(records(tracer.path)), network.server.inode)
        lab.wait_for(is_seen, "hooks of the namespace without a name")
        self.assertNotIn(str(network.server.inode), tracer.end()[1])

    def test_without_a_process_it_is_counted(self):
        network = Network(self.lab, False, False)
        process = self.lab.unname(network.server)
        process.kill()
        process.wait()
        tracer = Tracer(self, network.address[1], "--netfilter")
        warning = WARNING.format(network.server.inode, "neither a name nor a process of it was found")

        def is_reported():
            self.talk(network)
            return warning in tracer.messages()
        lab.wait_for(is_reported, "the warning")
        found, messages = tracer.end()
        self.assertIn(LEFT_OUT, messages)
        self.assertEqual({()}, {tuple(one) for one in taken(found, network.server.inode)})

    def test_without_the_option_it_gives_up_what_that_takes(self):
        tracer = Tracer(self, PORT)
        self.assertFalse(capabilities(tracer.process.pid) & SYS_PTRACE)
        tracer.stop()

    def test_rules_about_drops_keep_what_that_takes(self):
        """Others give it up."""
        where = self.lab.ns("a")
        for rule, is_kept, command in (("drops > 1%", True, ("alerts", "--drops")), ("rtt > 1s", False, ("alerts",)),
                                       ("drops > 1%", True, ("trace",)), ("rtt > 1s", False, ("trace",))):
            process = self.lab.spawn(observer.netobsctl(), *command, "--rule", rule, "-o", "json", ns=where)
            lab.wait_for(lambda pid=process.pid: not capabilities(pid) & CHOWN, "it to give up capabilities")
            self.assertIsNone(process.poll())
            self.assertEqual(bool(capabilities(process.pid) & SYS_PTRACE), is_kept, f"{command} {rule}")
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(timeout=60), 0, f"{command} {rule}")


class Service(ServiceTest):
    def setUp(self):
        super().setUp()
        with self.b:
            self.listener = socket.create_server((self.B4, 0))
        self.addCleanup(self.listener.close)
        self.lab.unname(self.b)

    def configure(self, netfilter):
        self.write('[alert "slow"]', f"rule = {RULE}", "trace = 20s", "[trace]",
                   f"netfilter = {netfilter}",
                   *sink_section("file", f"json:{self.lab.path('file')}", "records = journey"),
                   sinks=(), more="rtt = yes")

    def talk_slowly(self, is_over):
        """Until it is over, which it is asked after each answer."""
        with self.a, contextlib.closing(socket.create_connection(self.listener.getsockname())) as client, \
                contextlib.closing(self.listener.accept()[0]) as server:
            def is_done():
                client.sendall(b"request")
                server.recv(100)
                time.sleep(.01)
                server.sendall(b"answer")
                client.recv(100)
                return is_over()
            lab.wait_for(is_done, "the service")

    def test_a_process_leads_to_its_hooks(self):
        self.configure("yes")
        self.start()
        self.assertTrue(capabilities(self.pid) & SYS_PTRACE)
        self.talk_slowly(lambda: TAKEN in taken(records(self.lab.path("file")), self.b.inode))
        self.stop()
        self.assertNotIn(str(self.b.inode), self.messages())

    def test_what_is_missing_is_named(self):
        self.configure("yes")
        self.start(*with_only((*NEEDED, "sys_admin")))
        self.assertFalse(capabilities(self.pid) & SYS_PTRACE)
        warning = WARNING.format(self.b.inode, "Permission denied (missing: CAP_SYS_PTRACE)")
        self.talk_slowly(lambda: warning in self.messages())
        self.stop()

    def test_what_is_not_needed_is_given_up(self):
        self.configure("no")
        self.start()
        self.assertFalse(capabilities(self.pid) & SYS_PTRACE)
        self.configure("yes")
        self.reload(AGAIN)
        self.assertFalse(capabilities(self.pid) & SYS_PTRACE)
        self.stop()


if __name__ == "__main__":
    lab.main("links of programs to netfilter's hooks", lambda: features()["trace_netfilter"], at_once=3)
