# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Cost: 90
# Lock: sockets, it sees the sockets of all tests, and what has ended is known for a minute.
"""Connections that a BPF program of others translates as they connect, as a load balancer does.

Services, backends and conversations are random. NETOBS_TEST_CONVERSATIONS=N has so many. The processes know what they
have asked for, and the servers say who they are.
"""

import collections
import json
import os
import signal
import socket
import subprocess
import sys
import time

from lib import asker
from lib import bpf
from lib import lab
from lib import nat
from lib import observer
from lib.service import end_service, launch, status_of

CONVERSATIONS = int(os.environ.get("NETOBS_TEST_CONVERSATIONS", "1000"))
SERVICES, PLAIN = 30, 0.25
OURS = "netobs_con"
FLOOD = 9000 # conversations, of which each has two reports: the ring buffer holds some thousand
PART = 100 # conversations at a time, so that what has ended is still known, a minute later
SLACK_MS = 60 # of the clock's ticks, and of a client that ends before its last packet
NUMBERS = {"tcp": 6, "udp": 17}


class Balancer:
    """A process in a control group with the programs, and what it has asked for."""

    def __init__(self, test, services, *options):
        path = test.lab.path("services")
        lab.write(path, "".join(f"{proto} {address} {port} {backend[0]} {backend[1]}\n" for
                                (proto, address, port), backends in services.items() for backend in backends))
        self.process = test.lab.spawn(
            lab.tool("connectlb"), *options, path, sys.executable, asker.__file__,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        test.addCleanup(self.stop)

    def request(self, ns, **wanted):
        """As lib/asker.py takes it; @return its answer"""
        print(json.dumps({"netns": f"/run/netns/{ns.name}", **wanted}), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def ask(self, ns, proto, asked, bind=None, way="connect", reset=False):
        """@return (what was asked for, what the packets have)"""
        answer = self.request(ns, proto=proto, asked=asked, bind=bind, way=way, reset=reset)
        local, remote = answer["local"], answer["remote"]
        number = NUMBERS[proto]
        return (nat.Tuple(number, local[0], asked[0], local[1], asked[1]),
                nat.Tuple(number, local[0], remote[0], local[1], remote[1]))

    def take_steps(self, ns, name, family, *steps, bind=None, shared=False):
        """@return [(when it began, when it had ended, what the packets have)] of each step that asks"""
        found, family = [], socket.AF_INET6 if family == "six" else socket.AF_INET
        for step in steps:
            begin = time.time_ns() // 1000000
            for one in self.request(ns, socket=name, family=family, bind=bind, shared=shared, steps=[step]):
                found.append((begin, time.time_ns() // 1000000,
                              nat.Tuple(NUMBERS["udp"], one["local"][0], one["remote"][0],
                                        one["local"][1], one["remote"][1])))
        return found

    def stop(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait(lab.PATIENCE_S)


class ConnectTranslation(nat.NatTest):
    def setUp(self):
        super().setUp()
        self.control, self.records = self.lab.path("control.sock"), self.lab.path("records")
        self.answers = asker.Answers(self.server)
        self.addCleanup(self.answers.close)
        self.services = self.make_services()
        self.answers.start()

    def make_services(self):
        """{(protocol, address, port): [backend]}; backends are of several services."""
        backends = collections.defaultdict(list)
        for family, prefix in ("four", "10.0.2."), ("six", "fd02::"):
            for number in range(10, 14):
                self.server.address("eth0", f"{prefix}{number}/{24 if family == 'four' else 64}")
                for proto in NUMBERS:
                    port = self.random.randint(2000, 9000)
                    self.answers.listen(proto, f"{prefix}{number}", port)
                    backends[family, proto].append((f"{prefix}{number}", port))
        self.backends = backends
        services = {}
        for number in range(SERVICES):
            # One of TCP has one backend in any case.
            family, proto = self.random.choice(sorted(backends)) if number else ("four", "tcp")
            address = f"198.18.0.{number + 1}" if family == "four" else f"2001:db8:5::{number + 1}"
            count = self.random.randint(1, 4) if number else 1
            some = self.random.sample(backends[family, proto], count)
            services[proto, address, self.random.randint(80, 1000)] = some
        # Of UDP, two have the same one.
        self.twins = {}
        for number, (family, proto) in enumerate([("four", "udp"), ("six", "udp")]):
            prefix = "198.18.1." if family == "four" else "2001:db8:6::"
            backend = self.random.choice(backends[family, proto])
            twins = [(f"{prefix}{number + 1}", 53), (f"{prefix}{number + 10}", 54)]
            services.update({(proto, *one): [backend] for one in twins})
            self.twins[family] = (*twins, backend)
        return services

    def start_service(self, *interfaces, ns=None):
        self.service = launch(self, ns or self.router, (
            "[capture]", "nat = yes", *(f"interface = {one}" for one in interfaces), "[flows]", "interval = 1s",
            "[sessions]", "enabled = yes", "[control]", f"path = {self.control}", '[sink "a"]',
            f"output = json:{self.records}", "records = flow,mapping,session"))

    def stop_service(self):
        end_service(self, self.service)
        found = {"flow": [], "mapping": [], "session": []}
        spaces = [ns.inode for ns in (self.client, self.router, self.server)]
        for record in lab.json_lines(self.records):
            # Sockets of other tests have mappings, too.
            if record["Proto"] in NUMBERS.values() and record.get("NetnsInode", spaces[0]) in spaces:
                found[record.get("type", "flow")].append(record)
        self.sessions = found["session"]
        return found["flow"], found["mapping"]

    def mappings(self, query=""):
        """What the service answers to netobsctl map, and with a ",TUPLE" to its lookup."""
        found, cursor = [], 0
        while cursor is not None:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(lab.PATIENCE_S)
                client.connect(self.control)
                client.sendall(f"mappings {cursor}{query}\n".encode())
                with client.makefile() as file:
                    answer = json.loads(file.readline())
            found += answer["mappings"]
            cursor = answer.get("next")
        return found

    def lost_reports(self):
        """There are no mappings until the status has been made from the first interval."""
        return status_of(self.control).get("mappings", {}).get("lost_reports", 0)

    def lookup(self, query):
        return [(nat.tuple_of(one), nat.other_of(one, "Xlat")) for one in self.mappings(f",{query}")]

    def check_lookup(self, asked, got):
        """From either side, of either direction."""
        for face in asked, got, asked.back(), got.back():
            self.assertIn((asked, got), self.lookup(nat.query_of(face)), face)

    def check_flows(self, flows, truth):
        """Records name what was asked for, and no others do. @return how many name it"""
        named = collections.Counter()
        for record in flows:
            face = nat.tuple_of(record)
            if face in truth:
                asked, prefix, other = truth[face], "Orig", "Xlat"
            elif face.back() in truth:
                asked, prefix, other = {one.back() for one in truth[face.back()]}, "Xlat", "Orig"
            else:
                self.fail(record)
            name = nat.other_of(record, prefix)
            self.assertNotIn(f"{other}SrcAddr", record)
            if len(asked) > 1: # one after the other
                self.assertIn(name, asked | {None}, record)
            else:
                self.assertEqual({name or face}, asked, record)
            named[face] += name is not None
        for face, asked in truth.items():
            if asked != {face} and len(asked) == 1:
                self.assertLess(0, named[face], face)
                self.assertLess(0, named[face.back()], face)
        return sum(named.values())

    def check_sessions(self, flows):
        """Of both ends: they have the ids of their flows. @return how many there are"""
        ids = collections.defaultdict(set)
        for record in flows:
            for face in (nat.tuple_of(record), nat.tuple_of(record).back()):
                ids[face].add(record["ConversationId"])
        known = [one for one in self.sessions if len(ids.get(nat.tuple_of(one), ())) == 1]
        for record in known:
            self.assertEqual(ids[nat.tuple_of(record)], {record.get("ConversationId")}, record)
        return len(known)

    def talk(self, balancer, spaces, count, truth, ways=("connect", "send")):
        """Random ones. @truth: {what packets have: {what was asked for}}; @return those of this time"""
        services, latest = sorted(self.services), []
        for _ in range(count):
            if self.random.random() < PLAIN:
                family, proto = self.random.choice(sorted(self.backends))
                asked = (proto, *self.random.choice(self.backends[family, proto]))
            else:
                asked = self.random.choice(services)
            way = self.random.choice(ways) if asked[0] == "udp" else "connect"
            before, after = balancer.ask(self.random.choice(spaces), asked[0], asked[1:], way=way)
            if before != after:
                self.assertIn((after.dst, after.dport), self.services[asked])
            truth.setdefault(after, set()).add(before)
            latest.append((before, after))
        return latest

    def check_mappings(self, mappings, truth):
        """All, and no others, begin and end; @return how many there are"""
        wanted = {(before, after) for after, some in truth.items() for before in some
                  if before != after}
        unclear = {(before, after) for before, after in wanted if len(truth[after]) > 1}
        for event in "begin", "end":
            found = {(nat.tuple_of(one), nat.other_of(one, "Xlat")) for one in mappings
                     if one["Event"] == event}
            self.assertEqual(wanted - unclear, found - unclear, event)
            self.assertLessEqual(found, wanted, event)
        return len(wanted)

    def test_every_conversation_from_both_sides(self):
        self.start_service(f"netns:{self.client.name}/eth0", f"netns:{self.server.name}/eth0",
                           "rc", "rs")
        balancer, truth = Balancer(self, self.services), {}
        for _ in range(0, lab.sized(CONVERSATIONS), PART):
            latest = self.talk(balancer, (self.client, self.router),
                               min(PART, lab.sized(CONVERSATIONS)), truth)
            for before, after in latest:
                if len(truth[after]) > 1:
                    continue # another one had these, too: then there may be none
                if before != after:
                    lab.wait_for(lambda one=before: self.lookup(nat.query_of(one)), f"{before}, {after}")
                    self.check_lookup(before, after)
                else:
                    self.assertEqual([], self.lookup(nat.query_of(after)))
        balancer.stop()
        flows, mappings = self.stop_service()
        records, count = self.check_flows(flows, truth), self.check_mappings(mappings, truth)
        sessions = self.check_sessions(flows)
        self.assertLess(0, sessions)
        self.note(f"{count} translated conversations, {len(truth) - count} others, "
                  f"{records} records with them, {sessions} sessions")

    def test_more_sockets_than_the_ring_buffer_holds(self):
        """The process is late: lost reports are counted, and records name what was asked for, or nothing."""
        self.start_service(f"netns:{self.client.name}/eth0", "rc", "rs")
        balancer, truth, later = Balancer(self, self.services), {}, {}
        self.service.send_signal(signal.SIGSTOP)
        self.talk(balancer, (self.client,), FLOOD, truth, ways=("connect",))
        self.service.send_signal(signal.SIGCONT)
        lab.wait_for(self.lost_reports, "lost reports")
        # So few that all are looked up within a minute of their end, also on a slow machine.
        for before, after in self.talk(balancer, (self.client,), lab.sized(50), later, ways=("connect",)):
            if before != after and len(later[after]) == 1 and after not in truth:
                lab.wait_for(lambda one=before: self.lookup(nat.query_of(one)), f"{before}, {after}")
                self.check_lookup(before, after)
        lost = self.lost_reports()
        balancer.stop()
        flows, _ = self.stop_service()
        named = 0
        for record in flows:
            for prefix, face in ("Orig", nat.tuple_of(record)), ("Xlat", nat.tuple_of(record).back()):
                name = nat.other_of(record, prefix)
                if name is None:
                    continue
                named += 1
                asked = name if prefix == "Orig" else name.back()
                self.assertIn(asked, truth.get(face, set()) | later.get(face, set()), record)
        self.assertLess(0, named)
        self.note(f"{lost} reports lost, {named} of {len(flows)} records name what was asked for")

    def test_a_namespace_that_is_not_observed(self):
        """Its packets come through a pair, and leave behind NAT: then two translations follow."""
        self.rules(nat.BASE + "add rule inet nat post oifname rs masquerade\n")
        self.start_service("rc", "rs")
        balancer, truth = Balancer(self, self.services), {}
        # A process there leads to the namespace, while it lives.
        service = self.random.choice(sorted(self.services))
        before, after = balancer.ask(self.client, service[0], service[1:])
        truth[after] = {before}
        lab.wait_for(lambda: self.lookup(nat.query_of(before)), "the first mapping")
        self.talk(balancer, (self.client,), lab.sized(200), truth, ways=("connect",))
        balancer.stop()
        flows, mappings = self.stop_service()
        ids = collections.defaultdict(set)
        asked_for = {address for _, address, _ in self.services}
        for record in flows + [one for one in mappings if one["DstAddr"] in asked_for]:
            for face in (nat.tuple_of(record), nat.tuple_of(record).back()):
                ids[face].add(record["ConversationId"])
        named = 0
        for after, asked in truth.items():
            if len(asked) > 1:
                continue
            asked, = asked
            there = [one for one in flows if nat.tuple_of(one) == after]
            back = [one for one in flows
                    if nat.other_of(one, "Xlat") == asked.back()] if asked != after else []
            self.assertLess(0, len(there), after)
            for record in there:
                name = nat.other_of(record, "Orig")
                self.assertEqual(asked, name or after, record)
                # Behind NAT, which changes the source.
                self.assertIn("XlatSrcAddr", record)
            self.assertEqual(1, len(ids[after]), after)
            if asked != after:
                self.assertLess(0, len(back), after)
                self.assertEqual(ids[after], {one["ConversationId"] for one in back})
                self.assertEqual(ids[after], ids[asked])
                named += 1
        self.note(f"{named} conversations")

    def test_tuples_that_are_used_again(self):
        """One after the other, for services with the same backend, and without any."""
        self.start_service(f"netns:{self.client.name}/eth0", "rc")
        balancer = Balancer(self, self.services)
        by_backend, self.truth = collections.defaultdict(list), []
        for (proto, *asked), backends in self.services.items():
            for backend in backends:
                if len(backends) == 1:
                    by_backend[proto, backend].append(asked)
        for number in range(lab.sized(60)):
            (proto, backend), services = self.random.choice(sorted(by_backend.items()))
            bind = [self.CLIENT6 if ":" in backend[0] else self.CLIENT, 20000 + number]
            # A record of several that ask for different ones has no name: some are for one service only.
            choices = [*services, list(backend)] if number % 3 else [self.random.choice(services)]
            for _ in range(self.random.randint(2, 4)):
                asked = self.random.choice(choices)
                begin = time.time_ns() // 1000000
                before, after = balancer.ask(self.client, proto, asked, bind=bind, reset=True)
                self.truth.append((begin, time.time_ns() // 1000000, before, after))
                if self.random.random() < 0.1:
                    self.wait_for_drain()
        balancer.stop()
        self.check_truth(self.stop_service()[0])

    def check_truth(self, flows, clear=()):
        """
        A record names what its packets have asked for meanwhile, or nothing; of those that are @clear, it does
        name it.
        """
        kinds, faces = collections.Counter(), {face for *_, face in self.truth}
        for record in flows:
            face, prefix = nat.tuple_of(record), "Orig"
            if face.back() in faces:
                face, prefix = face.back(), "Xlat"
            if face not in faces:
                continue
            name = nat.other_of(record, prefix)
            kinds[name is not None] += 1
            if name is None:
                self.assertNotIn(face, clear, record)
                continue
            name = name if prefix == "Orig" else name.back()
            own = [one for one in self.truth if one[3] == face]
            meanwhile = [asked for begin, end, asked, _ in own if begin <= record["TimeFlowEndMs"] + SLACK_MS
                         and end >= record["TimeFlowStartMs"] - SLACK_MS]
            self.assertIn(name, meanwhile, (record, own))
            if record["Proto"] == NUMBERS["udp"]: # a packet there, and one back
                self.assertLessEqual(record["Packets"], meanwhile.count(name), (record, own))
        self.assertLess(0, kinds[True])
        self.note(f"{kinds[True]} records name what was asked for, {kinds[False]} do not")

    # What sockets do with two services that have one backend, "a" and "b", and with this one, "x".
    # Each ask is of one that the socket is connected to, or names it.
    STORIES = {
        "any address, two services": "ask:a drain ask:b drain ask:a drain ask:b",
        "any address, and the backend": "ask:a drain ask:x drain ask:x drain ask:a",
        "own address, two services": "bind ask:a ask:b drain ask:b drain ask:a",
        "own address, and the backend": "bind ask:x ask:a drain ask:x drain ask:a",
        "connected, and the backend": "connect:a ask drain ask:x drain ask drain ask:x ask drain ask:x",
        "connected, and the other service": "connect:a ask drain ask:b drain ask ask:b drain ask:b",
        "connected to the backend": "connect:x ask ask:a drain ask:a drain ask drain ask:b drain ask",
        "the backend before it is listed": "connect:x ask:a ask drain ask:a ask drain ask drain ask:a",
        "one after the other": "connect:a ask connect:b ask drain ask connect:x ask drain ask",
        "dissolved, then the backend": "bind connect:a ask drain dissolve ask:x drain ask:x drain ask:x",
        "dissolved at once": "bind connect:a ask drain ask dissolve ask:x ask:x drain ask:x",
        "dissolved, then another service": "connect:a ask drain dissolve ask:b drain ask:b ask:a",
        "many datagrams": "bind ask:a " + "ask:b ask:a " * 140 + "drain ask:x drain ask:x",
        "the next socket of a port": "bind connect:a ask drain close pause ask:x drain ask:x drain ask:x",
        "the next one, any address": "port ask:a drain ask:a close pause ask:x drain ask:x",
        "a shared port": "share connect:a ask drain next ask:x drain ask:x drain ask:x",
        "a shared port, datagrams": "share ask:a drain next ask:x drain ask:x drain ask:x",
        "nothing but one service": "connect:a ask drain ask drain ask",
        "datagrams to one service": "ask:a drain ask:a drain ask:a",
    }
    CLEAR = ("nothing but one service", "datagrams to one service")

    def tell(self, balancer, number, story, family):
        """A generator: each time until there is to be a drain. Ends with
        [(begin, end, what was asked for, what the packets have)]"""
        ends = dict(zip("abx", self.twins[family]))
        local = self.CLIENT6 if family == "six" else self.CLIENT
        name, bind, shared, peer = f"{number}", None, False, None
        for word in story.split():
            verb, _, which = word.partition(":")
            if verb in ("bind", "share", "port"):
                bind = [local if verb != "port" else "::" if family == "six" else "0.0.0.0",
                        21000 + number]
                shared = verb == "share"
            elif verb == "drain":
                yield
            elif verb == "pause":
                time.sleep(2 * SLACK_MS / 1000)
            elif verb == "next":
                name += "+"
            else:
                step = [verb, *(ends[which] if which else ())]
                for begin, end, face in balancer.take_steps(self.client, name, family, step, bind=bind,
                                                            shared=shared):
                    asked = ends[which or peer]
                    self.truth.append((begin, end, nat.Tuple(
                        face.proto, face.src, asked[0], face.sport, asked[1]), face))
                    if story in self.CLEAR:
                        self.clear.add(face)
                peer = which if verb == "connect" else peer

    def test_what_one_socket_asks_for(self):
        """Several services with one backend, and this one; a record names the one that all its packets
        have asked for, or none."""
        self.start_service(f"netns:{self.client.name}/eth0", "rs")
        balancer, self.truth, self.clear = Balancer(self, self.services), [], set()
        stories = [self.tell(balancer, number, story, family) for number, (story, family) in enumerate(
            (story, family) for story in self.STORIES.values() for family in ("four", "six"))]
        while stories:
            stories = [one for one in stories if next(one, self) is not self]
            self.random.shuffle(stories)
            self.wait_for_drain()
        balancer.stop()
        self.check_truth(self.stop_service()[0], self.clear)

    def wait_for_drain(self):
        drains = status_of(self.control)["drains"]["total"]
        lab.wait_for(lambda: status_of(self.control)["drains"]["total"] > drains, "a drain")

    def test_programs_of_others_stay_and_go(self):
        """Ours change nothing: not what others translate, nor whether they are attached."""
        service, backends = next((one, some) for one, some in sorted(self.services.items())
                                 if one[0] == "tcp" and len(some) == 1)
        balancer = Balancer(self, self.services)
        before, after = balancer.ask(self.client, "tcp", service[1:])
        self.assertEqual(backends[0], (after.dst, after.dport))
        theirs, others = self.attached("connect", "sendmsg"), self.attached(OURS)
        self.start_service(f"netns:{self.client.name}/eth0")
        ours = self.attached(OURS) - others
        self.assertLess(set(), ours)
        self.assertEqual(theirs, self.attached("connect", "sendmsg"))
        self.talk_to(balancer, service, backends[0])
        self.service.send_signal(signal.SIGKILL)
        self.service.wait(60)
        lab.wait_for(lambda: not self.attached(OURS) & ours, "the end of ours")
        self.assertEqual(theirs, self.attached("connect", "sendmsg"))
        self.talk_to(balancer, service, backends[0])
        lab.write(self.records, "") # without what the first one may have written before its end
        self.start_service(f"netns:{self.client.name}/eth0")
        self.talk_to(balancer, service, backends[0])
        ours = self.attached(OURS) - others
        balancer.process.send_signal(signal.SIGUSR1) # which detaches its programs
        lab.wait_for(lambda: not self.attached("connect", "sendmsg") & theirs, "the end of theirs")
        self.assertLessEqual(ours, self.attached(OURS))
        self.answers_at(service)
        before, after = balancer.ask(self.client, "tcp", service[1:])
        self.assertEqual(before, after)
        flows, mappings = self.stop_service()
        self.assertEqual(1, sum(one["Event"] == "begin" for one in mappings))
        self.assertEqual([None, None], [nat.other_of(one, prefix) for one in flows
                                        for prefix in ("Orig", "Xlat") if nat.tuple_of(one) == after])

    def check_at_the_root(self, is_before, ways):
        balancer = Balancer(self, self.services, "--root") if is_before else None
        self.start_service(f"netns:{self.client.name}/eth0", "rs")
        balancer, truth = balancer or Balancer(self, self.services, "--root"), {}
        self.talk(balancer, (self.client, self.router), lab.sized(100), truth, ways=ways)
        balancer.stop()
        self.assertLess(0, self.check_mappings(self.stop_service()[1], truth))

    def test_others_at_the_root_that_were_there_before(self):
        self.check_at_the_root(True, ("connect", "send"))

    def test_others_at_the_root_that_come_later(self):
        """Of datagrams, their programs run behind ours then."""
        self.check_at_the_root(False, ("connect",))

    def talk_to(self, balancer, service, backend):
        before, after = balancer.ask(self.client, "tcp", service[1:])
        self.assertEqual((*backend, *service[1:]), (after.dst, after.dport, before.dst, before.dport))

    def answers_at(self, service):
        """A server where the service is: nothing translates any more."""
        self.server.address("eth0", f"{service[1]}/{128 if ':' in service[1] else 32}")
        self.router.ip("route", "add", service[1], "via",
                       self.SERVER6 if ":" in service[1] else self.SERVER)
        self.answers.listen("tcp", service[1], service[2])

    @staticmethod
    def attached(*starts):
        """Links at control groups, of programs whose names start so."""
        names = bpf.programs()
        return {one["id"] for one in json.loads(lab.run("bpftool", "-j", "link"))
                if one["type"] == "cgroup" and names.get(one["prog_id"], "").startswith(starts)}


if __name__ == "__main__":
    lab.main("connect hooks", lambda: observer.features().get("connect"))
