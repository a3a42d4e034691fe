# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""netobsctl trace of a process, a command or a container: its connections, each byte once, and no others.

Two processes open connections at random, before and after the trace begins, as clients and as servers, use them at
once or later, and hand some to each other.
"""

import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from lib import lab
from lib import observer
from lib import talkers
from lib.observer import features
from lib.tracer import bytes_of, by_connection, has_send

A, B = "192.0.2.1", "192.0.2.2"
LISTED_S = 2.5 # what a process has open is looked at once a second
THREAD = "a-thread"
CONTAINER = "".join(f"{number:02x}" for number in range(32))


class Worker:
    """What a Party's process does; each request is a line of JSON, and so is its answer."""

    def __init__(self):
        self.ends = {}

    def name(self, name):
        talkers.rename_process(name.encode())

    def listen(self, key, address):
        self.ends[key] = socket.create_server((address, 0))
        return self.ends[key].getsockname()[1]

    def connect(self, key, address, port):
        self.ends[key] = socket.create_connection((address, port))
        return self.ends[key].getsockname()[1]

    def accept(self, key, listener):
        self.ends[key] = self.ends[listener].accept()[0]
        return self.ends[key].getpeername()[1]

    def write(self, key, size):
        self.ends[key].sendall(bytes(size))

    def read(self, key, size):
        while size:
            size -= len(self.ends[key].recv(size))

    def close(self, key):
        self.ends.pop(key).close()

    def give(self, key, path):
        with socket.socket(socket.AF_UNIX) as channel:
            channel.connect(path)
            socket.send_fds(channel, [b"x"], [self.ends[key].fileno()])
            channel.recv(1)
        self.close(key)

    def take(self, key, path):
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen()
            print(json.dumps("listening"), flush=True)
            with listener.accept()[0] as channel:
                fds = socket.recv_fds(channel, 1, 1)[1]
                self.ends[key] = socket.socket(fileno=fds[0])
                channel.send(b"x")

    def serve_in_thread(self):
        threading.Thread(target=self.serve, args=(THREAD,)).start()

    def serve(self, thread=None):
        if thread:
            talkers.rename(thread)
        for line in sys.stdin:
            verb, *arguments = json.loads(line)
            print(json.dumps(getattr(self, verb)(*arguments)), flush=True)


class Party:
    """A process in a namespace."""

    def __init__(self, test, ns, name):
        self.has_thread = test.random.random() < .5  # that uses the sockets
        self.process = test.lab.spawn(sys.executable, os.path.abspath(__file__),
                                      "thread" if self.has_thread else "worker", ns=ns,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.do("name", name)
        self.pid = self.process.pid

    def begin(self, *request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def end(self):
        return json.loads(self.process.stdout.readline())

    def do(self, *request):
        self.begin(*request)
        return self.end()


class Connection:
    """Of @owner, with the peer."""

    def __init__(self, test, owner, key):
        self.test, self.owner, self.key = test, owner, key
        self.sizes = [test.random.randint(1, 5000) for _ in range(2)] # to the peer, and back
        self.is_client = test.random.random() < .5
        if self.is_client:
            self.client = A, owner.do("connect", key, B, test.ports[test.peer])
            test.peer.do("accept", key, "listener")
        else:
            self.client = B, test.peer.do("connect", key, A, test.ports[owner])
            owner.do("accept", key, "listener")

    def hand_to(self, other):
        path = self.test.lab.path(f"channel-{self.key}")
        other.begin("take", self.key, path)
        other.end()
        self.owner.do("give", self.key, path)
        other.end()
        self.owner = other

    def use(self):
        to, back = self.sizes
        self.owner.do("write", self.key, to)
        self.test.peer.do("read", self.key, to)
        self.test.peer.do("write", self.key, back)
        self.owner.do("read", self.key, back)

    def close(self):
        self.owner.do("close", self.key)
        self.test.peer.do("close", self.key)

    def __repr__(self):
        return f"{self.key}: client {self.client}, {self.sizes}"


class Processes(lab.LabTest):
    NUMBER = 12

    def setUp(self):
        super().setUp()
        self.has_send = has_send()
        self.a, self.b = self.lab.ns("a"), self.lab.ns("b")
        self.lab.wire(self.a, "a0", [f"{A}/24"], self.b, "b0", [f"{B}/24"])
        self.chosen, self.other = Party(self, self.a, "chosen"), Party(self, self.a, "other")
        self.peer = Party(self, self.b, "peer")
        self.ports = {party: party.do("listen", "listener", address) for party, address in
                      ((self.chosen, A), (self.other, A), (self.peer, B))}
        self.keys = map(str, itertools.count())

    def start(self, *options):
        self.path = self.lab.path("trace")
        with open(self.path, "wb") as out:
            self.process = self.lab.spawn(observer.netobsctl(), "trace", "-o", "json", *options,
                                          "net 192.0.2.0/24", stdout=out)

        def is_seen():
            warm = Connection(self, self.chosen, "warm")
            warm.use()
            warm.close()
            self.warm.add(warm.client)
            time.sleep(.3)
            return os.path.getsize(self.path)
        self.warm = set()
        lab.wait_for(is_seen, "the tracer", observer.LOAD_S)

    def stop(self):
        time.sleep(.5)
        self.process.send_signal(signal.SIGINT)
        self.assertEqual(0, self.process.wait(60))
        return lab.json_lines(self.path)

    def make(self):
        owner = self.random.choice((self.chosen, self.other))
        return Connection(self, owner, next(self.keys))

    def check(self, *options):
        connections = [self.make() for _ in range(self.NUMBER)]
        self.start(*options)
        connections += [self.make() for _ in range(self.NUMBER)]
        given = [one for one in connections
                 if one.owner is self.other and self.random.random() < .4]
        for one in given:
            one.hand_to(self.chosen)
        self.random.shuffle(connections)
        at_once = [one for one in connections if one not in given and self.random.random() < .5]
        for one in at_once:
            one.use()
        time.sleep(LISTED_S)
        for one in connections:
            if one not in at_once:
                one.use()
        for one in connections:
            one.close()
        self.compare(connections, self.stop())

    def compare(self, connections, journeys):
        where = f"seed {self.seed}"
        servers = {(B if party is self.peer else A, port) for party, port in self.ports.items()}
        found = {}
        for own in by_connection(journeys).values():
            client = (ends_of(own[0]) - servers).pop()
            if client not in self.warm:
                self.assertNotIn(client, found, where)
                found[client] = own
        wanted = {one.client: one for one in connections if one.owner is self.chosen}
        self.assertEqual(sorted(wanted), sorted(found), where)
        for client, one in wanted.items():
            sizes = []
            for direction in range(2):
                ranges, double = bytes_of(found[client], direction)
                self.assertEqual((1, 0), (len(ranges), double), f"{where}: {one}: {ranges}")
                sizes.append(ranges[0][1] - ranges[0][0])
            self.assertEqual(sorted(one.sizes), sorted(sizes), f"{where}: {one}")

    def test_a_process_by_its_number(self):
        self.check("--pid", str(self.chosen.pid))

    def test_a_process_by_its_command(self):
        self.check("--comm", "chosen")

    def test_a_process_by_its_container(self):
        root = tempfile.mkdtemp(prefix="nobs-cgroup-")
        lab.run("mount", "-t", "cgroup2", "none", root)
        group = f"{root}/docker/{CONTAINER}"
        os.makedirs(group)

        def clear():
            self.chosen.process.kill()
            self.chosen.process.wait()
            lab.wait_for(lambda: remove(group), "the group to be empty")
            remove(os.path.dirname(group))
            lab.run("umount", root)
            os.rmdir(root)
        self.addCleanup(clear)
        lab.write(f"{group}/cgroup.procs", str(self.chosen.pid))
        self.check("--container", CONTAINER[:12])

    def test_events_name_the_owner_of_the_socket(self):
        """Of bytes in queues and drivers, where any process may be on the CPU."""
        self.start("--show", "events", "--pid", str(self.chosen.pid))
        connections = [Connection(self, self.chosen, next(self.keys)) for _ in range(5)]
        for one in connections:
            one.use()
        events = self.stop()
        for one in connections:
            one.close()
        for one in connections:
            own = [event for event in events if one.client in ends_of(event)]
            for event in own:
                for party, command in ((self.chosen, "chosen"), (self.peer, "peer")):
                    if event["Pid"] == party.pid and event["Tid"] != party.pid:
                        self.assertEqual((command, THREAD), (event["Command"], event["Thread"]))
                    elif event["Pid"] == party.pid:
                        self.assertEqual((command, None), (event["Command"], event.get("Thread")))
                if event["Layer"] not in ("qdisc", "device") or not event["Bytes"]:
                    continue
                # Before Linux 6.16, a call that writes is known at its end only.
                if not self.has_send and "OwnerPid" not in event:
                    continue
                from_chosen = event["SrcAddr"] == A
                owner = self.chosen if from_chosen else self.peer
                self.assertEqual((owner.pid, "chosen" if from_chosen else "peer"),
                                 (event["OwnerPid"], event["OwnerCommand"]),
                                 f"seed {self.seed}: {one}: {event}")
            self.assertLessEqual({"queue", "transmit", "arrive"}, {event["Point"] for event in own})
            self.assertTrue(any("OwnerPid" in event for event in own), f"seed {self.seed}: {one}")


def ends_of(one):
    return {(one["SrcAddr"], one["SrcPort"]), (one["DstAddr"], one["DstPort"])}


def remove(group):
    with contextlib.suppress(OSError):
        os.rmdir(group)
        return True
    return False


if __name__ == "__main__":
    if sys.argv[1:] == ["worker"]:
        Worker().serve()
    elif sys.argv[1:] == ["thread"]:
        Worker().serve_in_thread()
    else:
        lab.main("tracepoints of TCP sockets", lambda: features()["trace_sockets"])
