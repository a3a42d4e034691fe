# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nfdump libfixbuf-tools
"""Sessions of the service: [sessions] that changes while it runs, and the sinks that they go to.

How connections talk and end is random.
"""

import collections
import contextlib
import ipaddress
import json
import os
import resource
import signal
import socket
import threading
import time

from lib import ipfix
from lib import lab
from lib import metrics
from lib import observer
from lib import record_sinks
from lib.observer import features
from lib.persistent import PersistentTest
from lib.record_sinks import Flows, sink_section, take_host
from lib.service import AGAIN, ServiceTest
from lib.sessions import RESET, Sessions
from lib.talkers import command, rename

CONNECTIONS = 60
BUFFER = "buffer = 64M"  # however much others of this host talk
HELD = 200  # connections: their ends are more than others of this host have open for long
ENDS = int(os.environ.get("NETOBS_TEST_RELOAD_ENDS", 3))  # reloads that end sessions
RING_BUFFER = "map_type:\t27\n"
PEN = 4711
# Our enterprise elements: their JSON keys, and the names for values that are sent as an index.
NUMBERS = dict(zip(range(103, 131), (
    "Errno", "BytesAcked", "BytesReceived", "BytesSent", "BytesRetransmitted", "SegmentsSent",
    "SegmentsReceived", "DataSegmentsSent", "DataSegmentsReceived", "Retransmits", "Lost",
    "Reordering", "Reordered", "Delivered", "DeliveredCe", "Duplicates", "Cwnd", "Mss",
    "TimeFlowRttNs", "RttVariationNs", "MinRttNs", "BusyUs", "WindowLimitedUs",
    "BufferLimitedUs", "Pid", "Tid", "Uid", "CgroupId")))
TEXTS = {131: ("Process", 16), 132: ("CgroupPath", 256), 133: ("ContainerId", 72),
         134: ("PodUid", 40)}
NAMES = {100: ("Opened", (None, "active", "passive")),
         101: ("Ended", ("open", "fin", "reset", "aborted", "timeout", "refused", "failed")),
         102: ("ProcessBy", (None, "holding", "closing", "opening", "using"))}
STANDARD = {7: "SrcPort", 11: "DstPort", 4: "Proto", (PEN, 12): "NetnsInode"}
# In milliseconds, and in units of a fraction of a second.
STAMPS = {323: "TimeMs", 152: "TimeFlowStartMs", 153: "TimeFlowEndMs"}
# What two observers read from their own clocks.
TIMES = ("TimeMs", "TimeFlowStartMs", "TimeFlowEndMs", "DurationMs", "BusyUs",
         "WindowLimitedUs", "BufferLimitedUs")


class SessionsTest(ServiceTest):
    def setUp(self):
        super().setUp()
        # Ports say which connection a record is of: none is used twice within a minute.
        self.a.sysctl("ipv4/tcp_tw_reuse", 0)
        for ns in self.a, self.b:
            ns.acknowledge_at_once()
        self.addCleanup(rename, command())

    def configure(self, *parts, sessions=("enabled = yes",), **options):
        self.metrics = self.lab.path("metrics")
        if not any(one.startswith("buffer") for one in sessions):
            sessions = *sessions, BUFFER
        self.write(*parts, "[sessions]", *sessions, "[metrics]",
                   f"listen = unix:{self.metrics}", **options)

    def to_file(self, *sessions):
        self.configure(*sink_section("sessions", f"json:{self.lab.path('sessions')}",
                                     "records = session"), sessions=sessions)

    def connect(self, ports=(0, 0)):
        """@ports: of a and b; 0: any"""
        with self.b:
            listener = socket.create_server((self.B4, ports[1]))
        with self.a:
            sock = socket.create_connection(listener.getsockname(),
                                            source_address=(self.A4, ports[0]))
        other = listener.accept()[0]
        listener.close()
        return sock, other

    def end(self, sock, other):
        """The identity of a record, for each end."""
        keys = [(self.a.inode, sock.getsockname()[1], other.getsockname()[1]),
                (self.b.inode, other.getsockname()[1], sock.getsockname()[1])]
        for _ in range(self.random.randrange(3)):
            for a, b in ((sock, other), (other, sock)):
                size = self.random.randrange(1, 30000)
                a.sendall(bytes(size))
                while size:
                    size -= len(b.recv(size))
        first, second = self.random.sample((sock, other), 2)
        if self.random.randrange(2):
            first.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        first.close()
        second.close()
        return keys

    def talk(self, count=CONNECTIONS):
        return [key for _ in range(count) for key in self.end(*self.connect())]

    def hold(self, count):
        """Connections that stay open: both their ends."""
        with self.b:
            listener = socket.create_server((self.B4, 0), backlog=count)
        with self.a, listener:
            return [end for _ in range(count) for end in (
                socket.create_connection(listener.getsockname()), listener.accept()[0])]

    def rings(self):
        """How many ring buffers of BPF the service has open."""
        count = 0
        for fd in os.listdir(f"/proc/{self.pid}/fdinfo"):
            with contextlib.suppress(FileNotFoundError):
                count += RING_BUFFER in lab.read(f"/proc/{self.pid}/fdinfo/{fd}")
        return count

    def lose(self, count):
        """Send datagrams to ports where nobody listens."""
        with self.a, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            for port in range(10000, 10000 + count):
                sock.sendto(b"lost", (self.B4, port))
        return count

    def records(self, name):
        return list(take_host(lab.json_lines(self.lab.path(name), is_whole=False)))

    def of_lab(self, records):
        """The records of connections that this test made; sinks have others, too."""
        here = {(self.a.inode, self.A4), (self.b.inode, self.B4), (self.a.inode, "::1")}
        return [one for one in records if one.get("type") == "session" and
                (one["NetnsInode"], one["SrcAddr"]) in here]

    def sessions(self, name="sessions"):
        return self.of_lab(self.records(name))

    @staticmethod
    def keys(records):
        """How many records of each that has ended."""
        return collections.Counter((one["NetnsInode"], one["SrcPort"], one["DstPort"])
                                   for one in records if one["Ended"] != "open")

    def await_keys(self, wanted, name="sessions"):
        """All of them have a record, and no more than one."""
        wanted = collections.Counter(wanted)
        lab.wait_for(lambda: self.keys(self.sessions(name)) >= wanted, "the sessions")
        self.assertEqual(wanted, self.keys(self.sessions(name)))



def timeless(records):
    """What each says, but for times."""
    return collections.Counter(
        json.dumps({key: value for key, value in one.items() if key not in TIMES}, sort_keys=True)
        for one in records)


def of_json(one):
    """What IPFIX has of it."""
    found = {number: one.get(key, 0) for number, key in NUMBERS.items()}
    found |= {number: one.get(key, "")[:size] for number, (key, size) in TEXTS.items()}
    found |= {number: names.index(one.get(key)) for number, (key, names) in NAMES.items()}
    found |= {key: one.get(key, 0) for key in STANDARD.values()}
    found |= {key: one.get(key, 0) for key in STAMPS.values()}
    return str(sorted((found | {"src": one["SrcAddr"], "dst": one["DstAddr"]}).items(), key=str))


def of_ipfix(fields):
    """The same of a record."""
    found = {n: ipfix.number(fields[PEN, n]) for n in (*NUMBERS, *NAMES)}
    found |= {n: ipfix.text(fields[PEN, n]) for n in TEXTS}
    found |= {key: ipfix.number(fields[n]) for n, key in STANDARD.items()}
    found |= {key: ipfix.number(fields[n]) for n, key in STAMPS.items()}
    for name, elements in ("src", (8, 27)), ("dst", (12, 28)):
        raw = next(fields[n] for n in elements if n in fields)
        found[name] = str(ipaddress.ip_address(raw))
    return str(sorted(found.items(), key=str))


def ipfix_sessions(records):
    return collections.Counter(of_ipfix(one.fields) for one in records
                               if (PEN, 101) in one.fields)


class Sinks(SessionsTest):
    def talk_v6(self, count):
        keys = []
        self.a.sysctl("ipv6/conf/lo/disable_ipv6", 0)
        for _ in range(count):
            with self.a:
                listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
                sock = socket.create_connection(listener.getsockname()[:2])
            other = listener.accept()[0]
            listener.close()
            ports = sock.getsockname()[1], other.getsockname()[1]
            keys += [(self.a.inode, *ports), (self.a.inode, *ports[::-1])]
            self.end(sock, other)
        return keys

    def test_every_sink_gets_what_the_verb_reports(self):
        sinks = record_sinks.Sinks(self, self.a, "session,alert")
        with self.a:
            udp = ipfix.Receiver()
        self.addCleanup(udp.close)
        self.configure(
            *sink_section("udp", f"ipfix:udp://127.0.0.1:{udp.port}", "records = session",
                          f"pen = {PEN}", "mtu = 776"),
            *sink_section("ipfix", f"ipfix:file:{self.lab.path('ipfix')}",
                          "records = flow,session", f"pen = {PEN}"),
            *sink_section("file", f"json:{self.lab.path('file')}", "records = flow,session"),
            *sinks.sections(), sessions=("enabled = yes", f"pid = {os.getpid()}"))
        verb = Sessions(self)
        self.start()
        keys = self.talk() + self.talk_v6(10)
        self.await_keys(keys, "file")
        self.stop()
        truth = self.of_lab(verb.stop()[0])
        found = self.sessions("file")
        self.assertEqual(collections.Counter(keys), self.keys(truth))
        self.assertEqual(timeless(truth), timeless(found))
        sinks.check(found, self.of_lab)
        wanted = collections.Counter(map(of_json, (one for one in self.records("file")
                                                   if "type" in one)))
        self.assertEqual(wanted, ipfix_sessions(udp.records()))
        records = ipfix.read_file(self.lab.path("ipfix"))
        self.assertEqual(wanted, ipfix_sessions(records))
        self.assertEqual(self.exported(), sum(ipfix.number(one.fields[2])
                                              for one in filter(ipfix.is_flow, records)))
        text = lab.run("ipfixDump", "--rfc5610", "--in", self.lab.path("ipfix"))
        for name in "netobsSessionOpened", "netobsSessionPodUid", "netobsNetnsInode":
            self.assertTrue(name in text, name)
        # Flows are counted beside them, as ever; other sinks get no sessions.
        self.assertEqual(self.exported(), sum(one["Packets"] for one in self.records("file")
                                              if "type" not in one))
        self.assertEqual(self.exported(), self.packets("a"))

    def test_collectors_of_flows_lose_none_beside_sessions(self):
        nfcapd = Flows(self.lab, self.a, 9995)
        self.configure(*sink_section("nfcapd", "ipfix:udp://127.0.0.1:9995",
                                     "records = flow,session"))
        self.start()
        self.talk()
        self.stop()
        self.assertEqual(self.exported(), sum(row.get("in_packets", 0) for row in nfcapd.rows()))

    def test_those_that_cannot_have_them_beside_flows_say_so(self):
        for output, why in (("kafka://b/t", "flow needs a topic and a sink of its own"),
                            ("grpc://b:1", "give flow a sink of its own")):
            self.configure(*sink_section("s", output, "records = flow,session"))
            code, _, errors = self.config("check", self.path)
            self.assertEqual(1, code)
            self.assertIn(why, errors)
        for output, *more in (("kafka://b/t", "encoding = json", "records = flow,session"),
                              ("kafka://b/t", "records = session,alert"),
                              ("grpc://b:1", "records = session,alert")):
            self.configure(*sink_section("s", output, *more))
            self.assertEqual((0, ""), self.config("check", self.path)[::2])

    def test_a_sink_that_takes_them_is_missed(self):
        self.configure()
        self.start()
        self.assertIn("sessions are counted, and sent to no sink", self.messages())
        self.stop()


class Reload(SessionsTest):
    def test_they_are_switched_on_and_off(self):
        self.to_file("enabled = no")
        self.start()
        wanted = []
        for _ in range(3):
            self.talk(5)
            old = self.connect()
            self.to_file("enabled = yes")
            self.reload(AGAIN)
            wanted += self.end(*old) + self.talk(20)
            self.to_file("enabled = no")
            self.reload(AGAIN)
        self.talk(5)
        self.await_keys(wanted)
        self.stop()
        self.assertEqual(collections.Counter(wanted), self.keys(self.sessions()))

    def test_none_is_missing_or_twice_while_they_change(self):
        """The buffer keeps its size."""
        self.to_file("enabled = yes")
        self.start()
        wanted, is_over = [], threading.Event()
        def go_on():
            while not is_over.is_set():
                wanted.extend(self.talk(1))
        thread = threading.Thread(target=go_on)
        thread.start()
        try:
            for more in ("interval = 0.1", "interval = 0.2", "buffer = 1M", "interval = 1h",
                         "interval ="):
                self.to_file("enabled = yes", more)
                self.reload(AGAIN)
        finally:
            is_over.set()
            thread.join()
        self.assertIn("[sessions] buffer: the new value takes effect after a restart",
                      self.messages())
        self.stop()
        self.assertEqual(collections.Counter(wanted), self.keys(self.sessions()))
        self.note(f"{len(wanted)} sessions")

    def test_what_ends_is_delivered_when_a_reload_answers(self):
        """Open sessions are listed last: they are more than the service reads at a time."""
        def configure(name, switch, has_group):
            group = ['[group "all"]', "by = src"] if has_group else []
            self.configure("[drops]", f"enabled = {switch}", *group,
                           *sink_section("sessions", f"json:{self.lab.path(name)}",
                                         "records = session,drop"),
                           sessions=(f"enabled = {switch}", "interval = 1h"))
        def delivered():
            records = [one for name in names for one in self.records(name)]
            lost = sum(one["PktDropPackets"] for one in records if one["type"] == "drop" and
                       one.get("NetnsInode") == self.b.inode and
                       one.get("Proto") == socket.IPPROTO_UDP)
            return self.keys(self.of_lab(records)), lost
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
        names, wanted, dropped = ["sessions"], collections.Counter(), 0
        configure("sessions", "no", False)
        self.start()
        rings = self.rings()
        for number in range(ENDS):
            configure(names[-1], "yes", False)
            self.reload(AGAIN)
            held = self.hold(self.random.choice((0, 1, 200, 2000)) if number else 3000)
            os.kill(self.pid, signal.SIGSTOP)
            wanted.update(self.talk(self.random.randrange(100)))
            dropped += self.lose(self.random.choice((0, 1, 1000)))
            name = self.random.choice((names[-1], f"sessions{number}"))
            names += [name] * (name not in names)
            has_group = self.random.randrange(2)
            configure(name, "no", has_group)
            self.reload(AGAIN)
            self.assertEqual(rings, self.rings()) # the observers are closed
            for end in held:
                end.close()
            lab.wait_for(lambda: delivered() == (wanted, dropped), "the files")
        self.stop()

    def test_open_ones_are_reported_each_interval(self):
        own = f"pid = {os.getpid()}" # others of this host may have thousands open
        self.to_file("enabled = yes", own)
        self.start()
        ends = self.connect()
        def updates():
            return [one for one in self.sessions() if one["Ended"] == "open"]
        self.assertEqual([], updates())
        self.to_file("enabled = yes", "interval = 0.1", own)
        self.reload(AGAIN)
        lab.wait_for(lambda: len(updates()) >= 6, "three lists")
        self.to_file("enabled = yes", own)
        self.reload(AGAIN)
        keys = self.talk(1)
        self.await_keys(keys)  # and all that was reported before
        count = len(updates())
        time.sleep(0.5)
        keys += self.end(*ends)
        self.await_keys(keys)
        self.stop()
        self.assertIn(len(updates()) - count, (0, 1, 2))  # of a list on its way
        self.assertEqual({"active", "passive"}, {one["Opened"] for one in updates()})

    def test_processes_are_chosen(self):
        self.to_file("enabled = yes", "comm = picked")
        self.start()
        def talk_as(name, count):
            rename(name)
            return self.talk(count)
        wanted = talk_as("picked", 10)
        left_out = talk_as("other", 7)
        wanted += talk_as("picked", 1) # they are read in turn: the others have been left out then
        self.await_keys(wanted)
        self.to_file("enabled = yes", f"pid = {os.getpid()}")
        self.reload(AGAIN)
        wanted += talk_as("other", 8)
        self.await_keys(wanted)
        self.to_file("enabled = yes", f"pid = {os.getpid()}", "comm = picked")
        self.reload(AGAIN)
        left_out += talk_as("other", 3)
        self.await_keys(wanted)
        self.stop()
        self.assertEqual(collections.Counter(wanted), self.keys(self.sessions()))
        self.assertEqual(20, len(left_out))

    def test_status_counts_them(self):
        self.to_file("enabled = yes", "comm = picked")
        self.start()
        rename("picked")
        held = [self.connect() for _ in range(HELD)]
        lab.wait_for(lambda: self.status()["sessions"]["open"] >= 2 * HELD, "the open ones")
        keys = [key for ends in held for key in self.end(*ends)]
        self.await_keys(keys)
        lab.wait_for(lambda: self.status()["sessions"]["open"] < 2 * HELD, "their ends")
        rename("other")
        self.talk(10)
        found = lab.wait_for(lambda: self.counted(self.status()["sessions"], len(keys), 20),
                             "the counts")
        text = observer.run("status", "-s", self.control).stdout
        self.assertIn(f"{found['reported']} reported, ", text)
        self.to_file("enabled = no")
        self.reload(AGAIN)
        self.assertNotIn("sessions", self.status())
        self.stop()

    @staticmethod
    def counted(found, reported, left_out):
        """Others of this host, which are left out, may end meanwhile."""
        is_right = found["reported"] == reported and found["left_out"] >= left_out and \
            found["ended"] == reported + found["left_out"] and found["lost"] == 0
        return found if is_right else None


class Metrics(SessionsTest):
    def samples(self):
        return metrics.Samples(metrics.get(self.metrics)[1])

    def test_they_are_those_of_the_records(self):
        self.to_file("enabled = yes", f"pid = {os.getpid()}")
        self.start()
        self.await_keys(self.talk())
        def check():
            """Sessions of others of this host, which are left out, may end meanwhile."""
            found = self.samples()
            truth = collections.Counter(one["Ended"] for one in self.records("sessions"))
            counted = {dict(labels)["ended"]: value for labels, value in
                       found.all_of("netobs_sessions_reported_total").items() if value}
            return counted == truth and \
                found.value("netobs_sessions_ended_total") == truth.total() + \
                found.value("netobs_sessions_left_out_total") and \
                all(found.value(f"netobs_sessions_{name}_total") == 0 for name in ("lost", "updates"))
        lab.wait_for(check, "the metrics")
        held = [self.connect() for _ in range(HELD)]
        lab.wait_for(lambda: self.samples().value("netobs_sessions") >= 2 * HELD, "the open ones")
        for ends in held:
            self.end(*ends)
        lab.wait_for(lambda: self.samples().value("netobs_sessions") < 2 * HELD, "their ends")
        self.stop()


class Restart(PersistentTest, SessionsTest):
    is_killed = False

    def kill(self):
        super().kill()
        self.is_killed = True

    def sessions(self, name="sessions"):
        """
        Each once: those that were in the file before the spool had noted that are written again
        after a kill, with all that they said.
        """
        found = super().sessions(name)
        return list({json.dumps(one): one for one in found}.values()) if self.is_killed else found

    def configured(self):
        self.configure(*self.persist(),
                       *sink_section("sessions", f"json:{self.lab.path('sessions')}",
                                     "records = session",
                                     f"spool = disk:{self.lab.path('spool')}"))

    def test_those_that_end_while_there_is_no_service_are_not_reported(self):
        """Sessions that ended before are reported once; open ones then have no start time."""
        self.configured()
        self.start()
        gone, stays = self.connect(), self.connect()
        wanted = self.talk(20)
        self.await_keys(wanted)
        self.kill()
        self.end(*gone)
        self.start()
        wanted += self.end(*stays)
        self.await_keys(wanted)
        self.stop()
        self.assertEqual(collections.Counter(wanted), self.keys(self.sessions()))
        self.assertEqual([False, False],
                         ["TimeFlowStartMs" in one for one in self.sessions()[-2:]])

    def test_the_last_ones_are_delivered(self):
        self.configured()
        self.start()
        wanted = []
        for _ in range(2):
            wanted += self.talk(20)
            self.stop()
            self.assertEqual(collections.Counter(wanted), self.keys(self.sessions()))
            self.start()
        self.stop()


class Config(SessionsTest):
    def test_each_error_has_its_place(self):
        cases = (
            ("[session]\n", "1:1: there is no section 'session'; did you mean 'sessions'?"),
            ('[sessions "x"]\n', "1:1: [sessions] has no name"),
            ("[sessions]\nenable = yes", "2:1: there is no key 'enable'; did you mean 'enabled'?"),
            ("[sessions]\nenabled = maybe", "2:11: enabled: 'maybe' is not yes or no"),
            ("[sessions]\ninterval = 50ms", "2:12: interval: it is less than 100"),
            ("[sessions]\npid = 0", "2:7: pid: '0' is not a whole number from 1 to 4294967295"),
            ("[sessions]\nbuffer = 1K", "2:10: buffer: it is not from 64 KiB to 1 GiB"),
            ("[sessions]\nrtt = yes", "2:1: 'rtt' belongs to [capture]"),
        )
        self.check_errors(cases)

    def test_one_that_is_wrong_leaves_others_right(self):
        lab.write(self.path, '[sink "n"]\noutput = null\n[sessions]\nbuffer = 1K\ninterval = 1s\n')
        code, _, errors = self.config("check", self.path)
        self.assertEqual(1, code)
        self.assertEqual(1, errors.count(f"{self.path}:"), errors)

    def test_show_has_all_keys(self):
        self.to_file("enabled = yes", "comm = nginx", "interval = 1m", "buffer = 4M")
        values = {one["key"]: one["value"]
                  for one in json.loads(self.config("show", "-o", "json", self.path)[1])
                  if one["section"] == "sessions"}
        self.assertEqual({"enabled": "yes", "interval": "1m", "pid": "", "comm": "nginx",
                          "buffer": "4M"}, values)


if __name__ == "__main__":
    lab.main("TCP sockets that programs follow", lambda: features().get("sessions"))
