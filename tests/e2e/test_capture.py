# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: wireshark-common
"""netobsctl capture writes what tcpdump does at the same point, and says what is missing."""

import glob
import os
import signal
import subprocess
import time

from lib import bpf
from lib import frames as f
from lib import lab
from lib import packets
from lib import traffic

A4, B4, A6, B6 = "192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2"
NEAR_NS = 50_000
MOST, MANY = 0.9, 100
FAILED, USAGE = 1, 2


def split(contents, own):
    """
    The packets of each direction, by what @own says of one. Not those to multicast
    addresses: IPv6 repeats them when it likes.
    """
    kept = [packet for packet in contents.packets
            if packet.data[:2] != b"\x33\x33" and packet.data[0] >> 4 != 6]
    return [[packet for packet in kept if own(packet) is out]
            for out in (False, True)]


def in_order_of(theirs, mine):
    """Packets that two CPUs send at once may be swapped between the points where they are seen."""
    mine = list(mine)
    for at, packet in enumerate(theirs[:len(mine)]):
        found = next((i for i, one in enumerate(mine[at:at + 4], at)
                      if one.length == packet.length and
                      one.data[:len(packet.data)] == packet.data), at)
        mine.insert(at, mine.pop(found))
    return mine


class Same(lab.LabTest):
    """Files of netobs and of tcpdump, taken at the same interface at the same time."""

    def setUp(self):
        super().setUp()
        self.a = self.lab.ns("a", ipv6=True)
        self.b = self.lab.ns("b", ipv6=True)

    def wire(self, **options):
        self.mac_a, self.mac_b = self.lab.wire(
            self.a, "eth0", [A4 + "/24", A6 + "/64"], self.b, "eth0",
            [B4 + "/24", B6 + "/64"], **options)

    def both(self, ns, interface, send, *options, dump=(), name="netobs.pcapng"):
        """What each has of the packets that @send sends; and the --stats."""
        path = self.lab.path(name)
        capture = packets.Capture(self.lab, ns, "-i", interface, "-w", path,
                                  *options).wait_attached()
        truth = packets.Tcpdump(self.lab, ns, interface,
                                self.lab.path("tcpdump.pcap"), *dump)
        send()
        time.sleep(0.2)
        # Router solicitations and the like may come any time: tcpdump ends first.
        real = truth.stop()
        stats = capture.stop()
        ours = packets.read(path)
        self.assertEqual(len(ours.packets), stats["captured"])
        self.assertEqual(0, stats["lost"])
        return ours, real, stats

    def assert_same(self, ours, real, own=None, snap=1 << 18):
        """
        Bytes, lengths, order but for neighbours; and times, of nearly all on a busy machine. The kernel's
        ring that tcpdump reads may lack room for the last bytes before its @snap.
        """
        own = own or (lambda packet: packet.data[6:12] == f.mac(self.mac_a))
        near = total = 0
        for mine, theirs in zip(split(ours, own), split(real, own)):
            # netobs began before tcpdump and ended after it.
            first = next((i for i, packet in enumerate(mine)
                          if theirs and packet.data == theirs[0].data and
                          abs(packet.ns - theirs[0].ns) < 10 ** 9), 0)
            mine = in_order_of(theirs, mine[first:first + len(theirs)])
            self.assert_equal(
                [(packet.length, packet.data) for packet in theirs],
                [(packet.length, packet.data[:len(other.data)])
                 for packet, other in zip(mine, theirs)])
            for packet, other in zip(mine, theirs):
                self.assertEqual(min(packet.length, snap), len(packet.data))
                self.assertLessEqual(len(packet.data) - len(other.data), 4)
            near += sum(abs(one.ns - other.ns) <= NEAR_NS
                        for one, other in zip(mine, theirs))
            total += len(theirs)
        self.assertTrue(total)
        if not lab.is_shrunk():  # an emulated machine takes longer for anything
            # One of a few may be interrupted between the two.
            self.assertGreaterEqual(near, total * MOST if total >= MANY else total // 2)
        self.note(f"{total} packets are the same, {near} within 50 us")

    def assert_equal(self, theirs, mine):
        """Without a report of megabytes."""
        self.assertEqual(len(theirs), len(mine))
        for at, (one, other) in enumerate(zip(theirs, mine)):
            self.assertTrue(one == other, f"packet {at} of {len(theirs)}: "
                            f"{one[0]} {one[1][:64].hex()}, "
                            f"{other[0]} {other[1][:64].hex()}")

    def everything(self):
        traffic.ping(self.a, B4, 10, 1400)
        traffic.ping(self.a, B6, 10)
        traffic.tcp(self.a, A4, self.b, B4, lab.sized(2 << 20), answer=70_000)
        traffic.udp(self.a, A6, self.b, B6, [20, 400, 1200] * 50)
        traffic.udp_refused(self.a, A4, B4)

    def test_frames_of_a_wire(self):
        """In each format, whole and cut."""
        self.wire()
        for name, snap, *options in (("a.pcapng", 1 << 18), ("cut.pcapng", 96, "-s", 96), ("a.pcap", 1 << 18),
                                     ("b", 1 << 18, "--format", "pcap")):
            ours, real, _ = self.both(self.a, "eth0", self.everything, *options, dump=("-s", snap), name=name)
            self.assert_same(ours, real, snap=snap)
            # Buffers that are segmented later are one packet each.
            self.assertGreater(max(packet.length for packet in ours.packets), 10_000)
            (kind, length, own), = ours.interfaces
            self.assertEqual((1, snap), (kind, length))
            if name.endswith(".pcapng"):
                self.assertEqual({"name": "eth0"}, own)
                for packet in ours.packets:
                    self.assertEqual(packet.data[6:12] == f.mac(self.mac_a), packet.out)

    def test_both_ways_to_attach(self):
        self.wire()
        for way in ("tcx", "clsact") if bpf.has_tcx() else ("clsact",):
            ours, real, _ = self.both(
                self.a, "eth0", lambda: traffic.ping(self.a, B4, 20), "--attach",
                way, "--attach-order", "last")
            self.assert_same(ours, real)
        self.assertEqual(0, bpf.attached(self.a, "eth0"))

    def test_tags_are_in_the_frames(self):
        """Of one and of two VLANs; the kernel keeps the outer tag beside the frame."""
        self.wire(offload=False)
        frames = []
        for number in range(50):
            ip = f.ipv4(B4, A4, f.UDP, f.udp(1000 + number, 9, bytes(number)))
            for kind, rest in (
                    (f.IPV4, ip), (f.VLAN, f.vlan(7, f.IPV4, ip, 5)),
                    (f.QINQ, f.vlan(100, f.VLAN, f.vlan(7, f.IPV4, ip))),
                    (f.VLAN, f.vlan(0, f.IPV4, ip))):
                frames.append(f.ether(self.mac_a, self.mac_b, kind, rest))
        for snap in (262144, 60, 17, 14, 13):
            ours, real, _ = self.both(
                self.a, "eth0", lambda: self.b.send_frames("eth0", frames), "-s",
                snap, dump=("-s", snap))
            self.assert_same(ours, real, snap=snap)
            if snap == 262144:
                self.assertTrue(frames == [
                    packet.data for packet in ours.packets if not packet.out and
                    packet.data[12:14] != b"\x86\xdd"])

    def test_filters_are_those_of_tcpdump(self):
        self.wire()
        for expression in (
                "udp", "tcp and port 5001", "ip6 and not icmp6", "icmp or icmp6",
                "greater 1000 and src host 192.0.2.1", "tcp[tcpflags] & tcp-fin != 0",
                "ether host 02:00:00:00:00:01 and ip[1] == 0"):
            ours, real, stats = self.both(
                self.a, "eth0", self.everything, "--", expression, dump=(expression,))
            self.assert_same(ours, real)
            self.assertEqual(stats["matched"], stats["captured"])
            self.assertEqual(b"\0" + expression.encode(),
                             ours.interfaces[0].options["filter"])

    def test_filters_see_tags(self):
        self.wire(offload=False)
        ip = f.ipv4(B4, A4, f.UDP, f.udp(1000, 9, bytes(100)))
        frames = [f.ether(self.mac_a, self.mac_b, kind, rest) for kind, rest in (
            (f.IPV4, ip), (f.VLAN, f.vlan(7, f.IPV4, ip, 5)),
            (f.VLAN, f.vlan(8, f.IPV4, ip)),
            (f.QINQ, f.vlan(100, f.VLAN, f.vlan(7, f.IPV4, ip))))] * 10
        for expression, count in (("vlan 7", 10), ("vlan and udp port 9", 20),
                                  ("vlan 100 and vlan 7", 10), ("udp", 30),
                                  ("udp port 9 and not vlan", 10),
                                  (f"ether src {self.mac_b} and not ip and not ip6"
                                   " and not arp", 10)):
            ours, real, _ = self.both(
                self.a, "eth0", lambda: self.b.send_frames("eth0", frames),
                "--direction", "ingress", expression, dump=(expression,))
            self.assert_same(ours, real)
            self.assertEqual(count, len(ours.packets))

    def test_links_without_a_header(self):
        tun = traffic.Tun(self.lab, self.a, "tun0")
        self.a.address("tun0", "198.51.100.1/24")
        arriving = [f.ipv4("198.51.100.9", "198.51.100.1", f.UDP,
                           f.udp(i, 9, bytes(i))) for i in range(1, 100)]

        def send():
            for packet in arriving:
                tun.write(packet)
            traffic.ping(self.a, "198.51.100.1", 2)
            with traffic.make_socket(self.a, lab.socket.SOCK_DGRAM,
                                     "198.51.100.1") as sender:
                for i in range(1, 100):
                    sender.sendto(bytes(i), ("198.51.100.9", 9))

        ours, real, _ = self.both(self.a, "tun0", send)
        self.assert_same(ours, real,
                         lambda packet: packet.data[12:16] == b"\xc6\x33\x64\x01")
        self.assertEqual(101, ours.interfaces[0].link)
        self.assertEqual(arriving, [packet.data for packet in ours.packets
                                    if not packet.out and packet.data[0] == 0x45])

    def test_pcap_of_nothing(self):
        path = self.lab.path("empty.pcap")
        packets.Capture(self.lab, self.a, "-i", "lo", "-w",
                        path).wait_attached().stop()
        self.assertEqual([], packets.read(path).packets)

    def test_pcap_without_ethernet_after_a_quiet_time(self):
        tun = traffic.Tun(self.lab, self.a, "tun0")
        path = self.lab.path("quiet.pcap")
        capture = packets.Capture(self.lab, self.a, "-i", "tun0", "--direction",
                                  "ingress", "-w", path).wait_attached()
        time.sleep(5.5)  # statistics are due every 5 s
        tun.write(f.ipv4("198.51.100.9", "198.51.100.1", f.UDP, f.udp(1, 9)))
        time.sleep(0.2)
        self.assertEqual(1, capture.stop()["captured"])
        self.assertEqual(101, packets.read(path).interfaces[0].link)

    def test_several_interfaces_and_namespaces(self):
        self.wire()
        tun = traffic.Tun(self.lab, self.a, "tun0")
        path = self.lab.path("all.pcapng")
        capture = packets.Capture(self.lab, self.a, "-i", "/./", "-i",
                                  f"netns:{self.b.name}/eth0", "-w",
                                  path).wait_attached()
        traffic.ping(self.a, B4, 5)
        tun.write(f.ipv4("198.51.100.9", "198.51.100.1", f.UDP, f.udp(1, 9)))
        self.lab.veth(self.a, "late0", self.b, "peer0")
        lab.wait_for(lambda: bpf.attached(self.a, "late0"), "a new interface")
        self.a.send_frames("late0", [f.ether(self.mac_b, self.mac_a, 0x88b5,
                                             bytes(50))])
        time.sleep(0.2)
        capture.stop()
        ours = packets.read(path)
        by_name = {interface.options.get("description") or interface.options["name"]:
                   i for i, interface in enumerate(ours.interfaces)}
        self.assertEqual({"eth0", "tun0", "late0", f"netns:{self.b.name}/eth0"},
                         set(by_name))
        pings = [[packet.data for packet in ours.packets
                  if packet.interface == by_name[name] and packet.data[23] == 1]
                 for name in ("eth0", f"netns:{self.b.name}/eth0")]
        self.assertEqual(10, len(pings[0]))
        self.assertEqual(*pings)
        # Wireshark's own reader takes it.
        self.assertIn("netobs", lab.run("capinfos", path))

    def test_one_link_type_in_pcap(self):
        self.wire()
        tun = traffic.Tun(self.lab, self.a, "tun0")
        capture = packets.Capture(self.lab, self.a, "-w",
                                  self.lab.path("all.pcap")).wait_attached()
        traffic.ping(self.a, B4, 1)
        time.sleep(0.2)
        tun.write(f.ipv4("198.51.100.9", "198.51.100.1", f.UDP, f.udp(1, 9)))
        capture.finish(FAILED)
        self.assertIn("--format pcapng", capture.messages())
        self.assertTrue(packets.read(self.lab.path("all.pcap")).packets)


class Limits(lab.WiredTest):
    def flood(self, count, *arguments, interface="eth0"):
        return traffic.flood(self.lab, self.a, interface, "--packets", count, "--mac",
                             "02:00:00:00:00:ff", *arguments)["packets"]

    def capture(self, *arguments, **options):
        return packets.Capture(self.lab, self.a, "-i", "eth0", *arguments,
                               **options).wait_attached()

    def test_what_the_buffer_cannot_take_is_counted(self):
        """The reader is stopped meanwhile: 1 MiB is all that is captured."""
        path = self.lab.path("lossy.pcapng")
        capture = self.capture("--buffer", "1M", "-w", path, "--direction", "egress")
        capture.process.send_signal(signal.SIGSTOP)
        count = lab.sized(100_000)
        self.flood(count)
        capture.process.send_signal(signal.SIGCONT)
        self.flood(10)
        stats = capture.stop()
        self.assertEqual(count + 10, stats["matched"])
        self.assertGreater(stats["lost"], 0)
        self.assertGreater(stats["captured"], 1000)
        ours = packets.read(path)
        self.assertEqual(stats["captured"], len(ours.packets))
        self.assertEqual([{"received": count + 10, "dropped": stats["lost"],
                           "os_dropped": stats["lost"],
                           "delivered": stats["captured"]}],
                         list(ours.stats.values()))
        self.note(f"{stats}")

    def test_flood_of_all_cpus(self):
        path = self.lab.path("flood.pcapng")
        capture = self.capture("-s", "96", "-w", path, "--direction", "egress",
                               release=True)
        cpus = ",".join(map(str, sorted(os.sched_getaffinity(0))))
        count = self.flood(lab.sized(400_000), "--cpus", cpus)
        stats = capture.stop()
        self.assertEqual(count, stats["matched"])
        times = [packet.ns for packet in packets.read(path).packets]
        self.assertEqual(stats["captured"], len(times))
        # A CPU that the host of a guest stops may write a packet too late for its place.
        late = sum(one > other for one, other in zip(times, times[1:]))
        self.assertLess(late, len(times) / 1000)
        self.note(f"{stats}, {late} out of order")

    @staticmethod
    def switches(capture):
        """How often it has waited."""
        return int(lab.status_of(capture.process.pid)["voluntary_ctxt_switches"])

    def flood_seconds(self, count):
        return traffic.flood(self.lab, self.a, "eth0", "--packets", count, "--mac",
                             "02:00:00:00:00:ff", "--cpus", "0")["seconds"]

    def test_a_flood_is_read_in_batches(self):
        """A packet that wakes the reader costs its sender more than its copy does."""
        count, plain, captured = lab.sized(300_000), [], []
        for _ in range(3):
            plain.append(self.flood_seconds(count))
            capture = self.capture("-s", "96", "-w", "/dev/null", "--direction",
                                   "egress", release=True)
            before = self.switches(capture)
            captured.append(self.flood_seconds(count))
            waits = self.switches(capture) - before
            stats = capture.stop()
            self.assertEqual(count, stats["matched"])
            # 50 in a second, and some more while it competes for a CPU.
            self.assertLess(waits, 100 + 500 * captured[-1])
        self.note(f"{waits} waits; the sender keeps "
                  f"{min(plain) / min(captured):.2f} of its rate")

    def test_one_match_in_thousands(self):
        """None is lost in a flood, as only matches reach the buffer."""
        path = self.lab.path("rare.pcapng")
        capture = self.capture("-w", path, "--direction", "egress", "udp", "src",
                               "port", "1024", release=True)
        count = self.flood(lab.sized(500_000), "--flows", "10000")
        stats = capture.stop()
        self.assertEqual({"matched": count // 10_000, "captured": count // 10_000,
                          "unwritten": 0, "limited": 0, "lost": 0}, stats)
        self.assertEqual(count // 10_000, len(packets.read(path).packets))

    def add_interface(self, name):
        self.a.ip("link", "add", name, "index", "4242", "type", "veth", "peer", "name",
                  f"peer-{name}")
        for one in name, f"peer-{name}":
            self.a.ip("link", "set", one, "up")

    def wait_on(self, name):
        lab.wait_for(lambda: bpf.attached(self.a, name), f"programs on {name}")

    def test_an_index_that_another_interface_had(self):
        """The packets of the first are read after it is gone and the second is there."""
        path = self.lab.path("index.pcapng")
        capture = self.capture("-i", "/^x/", "-w", path, "--direction", "egress", "udp")
        self.add_interface("x0")
        self.wait_on("x0")
        capture.process.send_signal(signal.SIGSTOP)
        self.flood(10, interface="x0")
        self.a.ip("link", "del", "x0")
        self.add_interface("x1")
        capture.process.send_signal(signal.SIGCONT)
        self.wait_on("x1")
        self.flood(20, interface="x1")
        stats = capture.stop()
        self.assertEqual((30, 30), (stats["matched"], stats["captured"]))
        ours = packets.read(path)
        self.assertEqual({"x0": 10, "x1": 20}, {
            ours.interfaces[number].options["name"]: counts["received"]
            for number, counts in ours.stats.items()})
        for packet in ours.packets[:10]:
            self.assertEqual("x0", ours.interfaces[packet.interface].options["name"])

    def test_rate(self):
        capture = self.capture("--rate", "50", "-w", self.lab.path("slow.pcapng"))
        started = time.monotonic()
        count = self.flood(2000, "--rate", "1000")
        stats = capture.stop()
        seconds = time.monotonic() - started
        self.assertEqual(count, stats["matched"])
        # What is left of a second may be used at its beginning, too.
        self.assertLessEqual(stats["captured"], 50 * (seconds + 2))
        self.assertGreaterEqual(stats["captured"], 50)

    def test_duration(self):
        started = time.monotonic()
        packets.Capture(self.lab, self.a, "-i", "eth0", "-d", "0.5", "-w",
                        self.lab.path("short.pcapng")).finish()
        self.assertGreaterEqual(time.monotonic() - started, 0.5)

    def test_ring_of_files(self):
        pattern = self.lab.path("ring-*.pcapng")
        capture = self.capture("-w", self.lab.path("ring.pcapng"), "--rotate",
                               "100K", "--keep", "3", "--direction", "egress")
        count = self.flood(10_000, "--rate", "20000")
        stats = capture.stop()
        self.assertEqual(count, stats["captured"])
        paths = sorted(glob.glob(pattern))
        self.assertEqual(3, len(paths))
        files = [packets.read(path) for path in paths]
        times = [packet.ns for file in files for packet in file.packets]
        self.assertEqual(sorted(times), times)
        for path, file in zip(paths, files):
            self.assertEqual(0o600, packets.mode(path))
            self.assertLess(os.path.getsize(path), 110 << 10)
            self.assertEqual(len(file.packets), file.stats[0]["delivered"])
        self.assertGreaterEqual(os.path.getsize(paths[0]), 100 << 10)

    def check_full(self, capture, what, least=1):
        """@least: files that it has written"""
        self.flood(20_000, "--rate", "50000", "--payload", "301")
        stats = capture.finish(FAILED)
        self.assertIn(what, capture.messages())
        self.assertGreater(stats["captured"], 2000)
        paths = glob.glob(self.lab.path("full/*"))
        self.assertGreaterEqual(len(paths), least)
        self.assertEqual(stats["captured"], sum(len(packets.read(path).packets) for path in paths))
        lab.run("capinfos", *paths)
        for path in paths:
            os.remove(path)

    def test_disk_that_is_full(self):
        """Of one file, of standard output, and of a ring of files."""
        directory = self.lab.small_disk(self.lab.path("full"), "1M")
        for name in ("full.pcapng", "full.pcap"):
            path = os.path.join(directory, name)
            self.check_full(self.capture("-w", path), f"{path}': No space left")
        for flags in os.O_TRUNC, os.O_APPEND:
            out = os.open(path, os.O_WRONLY | os.O_CREAT | flags)
            capture = self.capture(stdout=out)
            os.close(out)
            self.check_full(capture, "standard output: No space left")
        self.check_full(self.capture("-w", path, "--rotate", "100K"), "No space left", 6)

    def test_standard_output(self):
        capture = self.capture(stdout=subprocess.PIPE)
        self.flood(100)
        capture.process.send_signal(signal.SIGINT)
        ours = packets.parse(capture.process.stdout.read())
        self.assertEqual(len(ours.packets), capture.finish()["captured"])
        self.assertGreaterEqual(len(ours.packets), 100)
        capture = self.capture("-w", "-", stdout=subprocess.PIPE)
        capture.process.stdout.close()
        capture.finish()

    def test_files_that_are_there(self):
        path = self.lab.path("old.pcapng")
        lab.write(path, "old" * 10000)
        os.chmod(path, 0o644)
        failing = packets.Capture(self.lab, self.a, "-i", "nosuch0", "-w", path)
        self.assertEqual(FAILED, failing.process.wait(60))
        self.assertEqual(30000, os.path.getsize(path))
        capture = self.capture("-w", path)
        self.flood(10)
        capture.stop()
        self.assertEqual(0o600, os.stat(path).st_mode & 0o777)
        self.assertGreaterEqual(len(packets.read(path).packets), 10)
        os.chown(path, 65534, 65534)
        size = os.path.getsize(path)
        capture = packets.Capture(self.lab, self.a, "-i", "eth0", "-w", path)
        capture.finish(FAILED)
        self.assertIn("another user's", capture.messages())
        self.assertEqual(size, os.path.getsize(path))


class BadInput(lab.WiredTest):
    def refuse(self, code, word, *arguments):
        got, errors = packets.refuse(self.lab, *arguments, ns=self.a)
        self.assertEqual(code, got, errors)
        self.assertIn(word, errors)
        self.assertNotIn("packets captured", errors)
        self.assertEqual(0, bpf.attached(self.a, "eth0"))
        self.note(errors.splitlines()[0])

    def test_messages(self):
        path = self.lab.path("x.pcapng")
        self.refuse(FAILED, "-i: ", "-i", "nosuch0", "-w", path)
        self.refuse(USAGE, "/[/", "-i", "/[/", "-w", path)
        self.refuse(FAILED, "Permission denied" if os.geteuid() else "No such file",
                    "-i", "eth0", "-w", "/nosuch/x.pcapng")
        self.refuse(FAILED, "Is a directory", "-i", "eth0", "-w", self.lab.dir)
        self.refuse(USAGE, "--snap-length", "-s", "0", "-w", path)
        self.refuse(USAGE, "-s: ", "-s", "262145", "-w", path)
        self.refuse(USAGE, "-B: ", "-B", "100K", "-w", path)
        self.refuse(USAGE, "--rotate: ", "--rotate", "1M")
        self.refuse(USAGE, "--keep: ", "--keep", "3", "-w", path)
        self.refuse(USAGE, "--format", "--format", "erf", "-w", path)
        self.refuse(USAGE, "syntax error", "-i", "eth0", "-w", path, "tcp", "prt", "80")
        self.refuse(USAGE, "-i lo", "-w", path, "lo")
        traffic.Tun(self.lab, self.a, "tun0")
        self.refuse(FAILED, "without Ethernet header", "-i", "tun0", "-w", path,
                    "ether", "host", "02:00:00:00:00:01")
        self.refuse(USAGE, "4096 are the most", "-i", "eth0", "-w", path,
                    "port 1 or " * 6553 + "port 2")

    def test_directory_that_is_not_writable(self):
        path = os.path.join(self.lab.small_disk(self.lab.path("fixed"), "1M", "ro"), "x.pcapng")
        for arguments in (), ("--rotate", "1M"):
            self.refuse(FAILED, "Read-only file system", "-i", "eth0", "-w", path,
                        *arguments)

    def test_empty_expression(self):
        """As for tcpdump, it matches all packets."""
        path = self.lab.path("all.pcapng")
        capture = packets.Capture(self.lab, self.a, "-i", "eth0", "-c", "3", "-w", path,
                                  "").wait_attached()
        traffic.flood(self.lab, self.a, "eth0", "--packets", "10", "--mac",
                      "02:00:00:00:00:ff")
        capture.finish()
        self.assertEqual(3, len(packets.read(path).packets))


if __name__ == "__main__":
    lab.main(at_once=3)
