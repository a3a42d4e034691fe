#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: tcpdump xz-utils zstd
"""Capture files run through the same programs, with the files' own times."""

import collections
import contextlib
import fcntl
import os
import signal
import struct
import subprocess
import time

from lib import bpf
from lib import capfile
from lib import frames as f
from lib import lab
from lib import observer
from lib import tcpdump
from lib import traffic
from lib import truth

START = 1_600_000_000 * capfile.NS + 123_456_789
STEP = 10_000_000  # ns
TUNSETIFF, IFF_TUN_NO_PI = 0x400454ca, 0x1001
MAC_A, MAC_B = "02:00:00:00:00:01", "02:00:00:00:00:02"
A4, B4, A6, B6 = "192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2"


def conversation():
    """[(ns, Ethernet frame)]: five flows, interleaved."""
    ends = MAC_B, MAC_A
    back = MAC_A, MAC_B
    round_ = [
        f.ether(*ends, f.IPV4, f.ipv4(A4, B4, f.TCP, f.tcp(
            1000, 80, f.SYN | f.ACK, bytes(500)))),
        f.ether(*back, f.IPV4, f.ipv4(B4, A4, f.TCP, f.tcp(
            80, 1000, f.ACK, bytes(1400)))),
        f.ether(*ends, f.IPV6, f.ipv6(A6, B6, f.UDP, f.udp(
            53, 53, bytes(80)))),
        f.ether(*back, f.IPV6, f.ipv6(B6, A6, f.ICMPV6, f.icmp(128, 0))),
        f.ether(*ends, f.IPV4, f.ipv4(A4, B4, f.ICMP, f.icmp(
            8, 0, bytes(60)))),
    ]
    return [(START + at * STEP, frame)
            for at, frame in enumerate(round_ * 20)]


def routed(frame):
    """Of another sender, and a hop further."""
    head, packet = bytearray(frame[:14]), bytearray(frame[14:])
    head[6:12] = bytes.fromhex("020000000003")
    if head[12:14] == struct.pack(">H", f.IPV4):
        packet[8] -= 1
        packet[10:12] = bytes(2)
        packet[10:12] = struct.pack(">H", f.checksum(bytes(packet[:20])))
    else:
        packet[7] -= 1
    return bytes(head + packet)


Sample = collections.namedtuple("Sample", "frame l4 needed is_tcp")


def snap_samples(snap):
    """Frames between addresses of @snap, where their transport headers begin, and how much of them it takes."""
    samples = []
    transports = ((f.TCP, f.TCP, f.tcp(1000, 80, f.SYN | f.ACK, bytes(99)), 4),
                  (f.UDP, f.UDP, f.udp(53, 5353, bytes(99)), 4),
                  (f.ICMP, f.ICMPV6, f.icmp(8, 0, bytes(99)), 2))
    for proto4, proto6, data, needed in transports:
        for kind, size, packet in (
                (f.IPV4, 20, f.ipv4(f"192.0.2.{snap}", B4, proto4, data)),
                (f.IPV6, 40, f.ipv6(f"2001:db8::1:{snap}", B6, proto6, data))):
            is_tcp = proto4 == f.TCP
            samples.append(Sample(f.ether(MAC_B, MAC_A, kind, packet),
                                  14 + size, needed, is_tcp))
            samples.append(Sample(
                f.ether(MAC_B, MAC_A, f.VLAN, f.vlan(7, kind, packet)),
                18 + size, needed, is_tcp))
    return samples


class Replay(lab.LabTest):
    def save(self, data, name="file.pcap"):
        path = self.lab.path(name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def replay(self, path, more=(), code=0, **options):
        result = observer.flows(self.lab, "-o", "json", "--stats", "-r", path,
                                *(part for file in more
                                  for part in ("-r", file)), **options)
        self.assertEqual(code, result.code, result.errors)
        result.check_conservation()
        return result

    def has_programs(self, pid):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                if "bpf-prog" in os.readlink(f"/proc/{pid}/fd/{name}"):
                    return True
        return False

    def assert_truth(self, result, real):
        self.assertEqual([], truth.differences(
            truth.record_sums(result.records), real))

    def assert_times(self, result, packets, unit=1):
        """First and last packet of each flow, in ms, as the file has them."""
        firsts, lasts = {}, {}
        for at, frame in packets:
            ethertype, proto = frame[12:14], frame[23] if frame[12] == 8 \
                else frame[20]
            key = (frame[:12], ethertype, proto)
            firsts.setdefault(key, at // unit * unit // 1_000_000)
            lasts[key] = at // unit * unit // 1_000_000
        self.assertEqual(
            sorted((firsts[key], lasts[key]) for key in firsts),
            sorted((r["TimeFlowStartMs"], r["TimeFlowEndMs"])
                   for r in result.records))

    @staticmethod
    def kinds_of_files(packets):
        """(link type, unit of times in ns, file), of all link types, byte orders and resolutions"""
        for kind, *more in ((capfile.ETHERNET,), (capfile.RAW,), (capfile.SLL,), (capfile.SLL2,), (capfile.LOOP,),
                            (capfile.NULL, capfile.AF_INET6_BSD), (capfile.NULL, capfile.AF_INET6_FREEBSD),
                            (capfile.NULL, capfile.AF_INET6_DARWIN)):
            yield kind, 1, capfile.pcap(kind, [(at, capfile.link(kind, frame, *more)) for at, frame in packets])
        for order in "<>":
            for nanoseconds in (False, True):
                yield capfile.ETHERNET, 1, capfile.pcap(capfile.ETHERNET, packets, nanoseconds, order)
            kinds = (capfile.ETHERNET, capfile.RAW, capfile.SLL2)[::-1 if order == "<" else 1]
            for kind, digits in zip(kinds, (6, 9, 3)):
                yield kind, 10 ** (9 - digits), capfile.pcapng(
                    [(kind, digits)], [(at, 0, capfile.link(kind, frame)) for at, frame in packets], order)

    def test_kinds_of_files(self):
        packets = conversation()
        for kind, unit, data in self.kinds_of_files(packets):
            with self.subTest(kind=kind, unit=unit, magic=data[:4].hex()):
                path = self.save(data)
                result = self.replay(path)
                self.assert_truth(result, truth.sums(path))
                self.assert_times(result, packets, unit)
                self.assertEqual(5, len(result.records))
                for record in result.records:
                    self.assertNotIn("Interfaces", record)
                    self.assertEqual(kind == capfile.ETHERNET, "DstMac" in record)

    def test_cut_packets_count_in_full(self):
        packets = conversation()
        whole = truth.sums(self.save(capfile.pcap(capfile.ETHERNET, packets)))
        for data in (capfile.pcap(capfile.ETHERNET, packets, snap=96),
                     capfile.pcapng([(capfile.ETHERNET, 6)],
                                    [(at, 0, frame) for at, frame in packets],
                                    snap=96)):
            result = self.replay(self.save(data))
            self.assert_truth(result, whole)
            self.assertEqual({key: total.l2_bytes
                              for key, total in whole.items()},
                             {key: total.l2_bytes for key, total in
                              truth.record_sums(result.records).items()})

    def test_packets_that_were_cut_too_short_are_reported(self):
        packets = conversation()
        result = self.replay(self.save(capfile.pcap(capfile.ETHERNET, packets, snap=36)))
        short = result.stats["unparsed"]["short"]["packets"]
        self.assertGreater(short, 0)
        self.assertIn(f"{short} packets are in no flow: the capture cut them", result.errors)
        result = self.replay(self.save(capfile.pcap(capfile.ETHERNET, packets, snap=96)))
        self.assertNotIn("cut", result.errors)

    def test_interfaces_of_pcapng(self):
        """As `netobsctl capture` writes them: a packet is in the file for each it passed."""
        packets = conversation()
        whole = truth.sums(self.save(capfile.pcap(capfile.ETHERNET, packets)))
        for order in "<", ">":
            path = self.save(capfile.pcapng(
                [(capfile.ETHERNET, 9)] * 2,
                [(at, i, frame) for at, frame in packets for i in (0, 1)], order=order,
                names=("north", "south")))
            for arguments in ((), ("-i", "north"), ("-x", "south"), ("-i", "/^s/")):
                with self.subTest(arguments):
                    result = observer.flows(self.lab, "-o", "json", "--stats", "-r", path,
                                            *arguments)
                    self.assertEqual(0, result.code, result.errors)
                    self.assert_truth(result, whole)
        result = observer.flows(self.lab, "-o", "json", "-i", "north", "-r",
                                self.save(capfile.pcap(capfile.ETHERNET, packets)))
        self.assertEqual((0, []), (result.code, result.records))
        self.assertIn(f"{len(packets)} packets were left out", result.errors)

    def test_both_directions_of_an_interface_of_pcapng(self):
        """As the loopback has them, or a router with one interface."""
        packets = conversation()
        whole = truth.sums(self.save(capfile.pcap(capfile.ETHERNET, packets)))
        for order in "<", ">":
            for ways in (2, 1), (1, 2), (1,):
                path = self.save(capfile.pcapng(
                    [(capfile.ETHERNET, 9)],
                    [(at + i, 0, frame, way) for at, frame in packets
                     for i, way in enumerate(ways)], order=order, names=("lo",)))
                with self.subTest(order=order, ways=ways):
                    self.assert_truth(self.replay(path), whole)

    def test_a_router_between_interfaces_of_pcapng(self):
        """It changes what routers do; packets with the same content, and losses, at random."""
        packets, seen = [], []
        for at, frame in conversation() * 3:
            at += self.random.randrange(STEP)
            packets.append((at, frame))
            seen.append((at, 0, frame))
            for i in (1, 2):
                at += self.random.randrange(STEP // 2)
                frame = routed(frame)
                if self.random.random() < 0.1: # lost behind this interface
                    break
                seen.append((at, i, frame))
        whole = truth.sums(self.save(capfile.pcap(capfile.ETHERNET, sorted(packets))))
        path = self.save(capfile.pcapng([(capfile.ETHERNET, 9)] * 3, sorted(seen),
                                        names=("in", "out", "far")))
        self.assert_truth(self.replay(path), whole)
        result = observer.flows(self.lab, "-o", "json", "--stats", "--per-interface",
                                "-r", path)
        self.assertEqual(len(seen), result.stats["seen"]["packets"])

    def test_every_snap_length(self):
        """Whatever has addresses and ports in the file is counted: each length has an interface and addresses."""
        snaps = range(34, 129)
        samples = [(i, snap, sample) for i, snap in enumerate(snaps) for sample in snap_samples(snap)]
        cut = self.save(capfile.pcapng([(capfile.ETHERNET, 9, snap) for snap in snaps],
                                       [(START, i, sample.frame) for i, _, sample in samples]))
        enough = self.save(capfile.pcap(capfile.ETHERNET, [
            (START, sample.frame) for _, snap, sample in samples if sample.l4 + sample.needed <= snap]), "enough.pcap")
        result = self.replay(cut)
        self.assert_truth(result, truth.sums(enough))
        found = collections.Counter(record["SrcAddr"].rsplit(":")[-1].rsplit(".")[-1]
                                    for record in result.records if record.get("Flags") == f.SYN | f.ACK)
        self.assertEqual(found.total(), sum("Flags" in record for record in result.records))
        self.assertEqual(collections.Counter(str(snap) for _, snap, sample in samples
                                             if sample.is_tcp and sample.l4 + 14 <= snap), found)
        self.note(f"{len(samples)} packets, snap lengths from 34 to 128: exact")

    def test_standard_input_and_compressed_files(self):
        plain = self.save(capfile.pcap(capfile.ETHERNET, conversation()), "plain.pcap")
        for tool, suffix in (("gzip", "gz"), ("zstd", "zst"), ("xz", "xz")):
            with self.subTest(tool):
                path = f"{plain}.{suffix}"
                with open(path, "wb") as file:
                    subprocess.run([tool, "-qc", plain], stdout=file, check=True)
                self.assertIn(f"{path}: unknown file format; a compressed file: zstd -dc FILE | "
                              "netobsctl flows -r -", self.replay(path, code=1).errors)
                with subprocess.Popen([tool, "-dc", path], stdout=subprocess.PIPE) as pipe:
                    result = self.replay("-", stdin=pipe.stdout)
                self.assert_truth(result, truth.sums(plain))
        with open(plain, "rb") as file:
            self.assert_truth(self.replay("-", stdin=file), truth.sums(plain))

    def test_several_files_are_one_run(self):
        packets = conversation()
        whole = self.save(capfile.pcap(capfile.ETHERNET, packets))
        paths = [self.save(capfile.pcap(capfile.ETHERNET, part), name)
                 for part, name in ((packets[1::3], "a.pcap"),
                                    (packets[::3], "b.pcap"),
                                    (packets[2::3], "c.pcap"))]
        result = self.replay(paths[0], paths[1:])
        self.assert_truth(result, truth.sums(whole))
        self.assert_times(result, packets)
        # One record each, though every file has packets of all of them.
        self.assertEqual(5, len(result.records))
        cut = capfile.pcap(capfile.ETHERNET, packets[::3])[:-5]
        short = self.save(cut, "short.pcap")
        result = self.replay(paths[0], [short, paths[2]], code=1)
        self.assertIn("short.pcap", result.errors)
        self.assertEqual(len(packets) - 1, result.exported()[0])
        result = observer.flows(self.lab, "-r", paths[0], "-r",
                                self.lab.path("none.pcap"))
        self.assertEqual(1, result.code)
        self.assertIn("none.pcap", result.errors)

    def test_truncated_files(self):
        """The flows up to there, a message, and failure."""
        packets = conversation()
        whole = capfile.pcap(capfile.ETHERNET, packets)
        kept = capfile.pcap(capfile.ETHERNET, packets[:42])
        ng = capfile.pcapng([(capfile.ETHERNET, 6)],
                            [(at, 0, frame) for at, frame in packets])
        ng_kept = capfile.pcapng([(capfile.ETHERNET, 6)],
                                 [(at, 0, frame) for at, frame in packets[:42]])
        for data, length in ((whole, len(kept) + 5), (whole, len(kept) + 30),
                             (ng, len(ng_kept) + 5), (ng, len(ng_kept) + 40)):
            path = self.save(data[:length], "cut.pcap")
            result = self.replay(path, code=1)
            self.assertIn("cut.pcap", result.errors)
            self.assertEqual(42, result.exported()[0])
            self.assertEqual(42, result.total("seen")[0])

    def test_stop_between_two_packets(self):
        """Far apart, and intervals of 10 ms while a flow waits for its timeout."""
        at, frame = conversation()[0]
        path = self.save(capfile.pcap(capfile.ETHERNET, [
            (at, frame), (at + 10 * 86400 * capfile.NS, frame)]))
        run = observer.Observer(
            self.lab, None, "-r", path, "--interval", "0.01",
            "--active-timeout", "20d", "--idle-timeout", "20d")
        lab.wait_for(lambda: self.has_programs(run.process.pid), "the programs")
        time.sleep(0.5)  # it is between the packets for hours
        run.stop().check_conservation()

    def test_file_without_packets(self):
        result = self.replay(self.save(capfile.pcap(capfile.ETHERNET, [])))
        self.assertEqual([], result.records)
        self.assertEqual((0, 0), result.total("seen"))

    def test_per_reason_counts(self):
        frame = f.ether(MAC_B, MAC_A, f.ARP, f.arp(MAC_A, A4, B4))
        path = self.save(capfile.pcap(capfile.ETHERNET, [
            (START, frame), (START, frame[:12] + b"\x88\xcc" + frame[14:])]))
        unparsed = self.replay(path).stats["unparsed"]
        self.assertEqual((1, 1), (unparsed["arp"]["packets"],
                                  unparsed["not_ip"]["packets"]))

    def capture_of(self, *options):
        """What the real tcpdump writes of pings and a TCP connection."""
        a, b = self.lab.ns("a", ipv6=True), self.lab.ns("b", ipv6=True)
        self.lab.wire(a, "eth0", ["192.0.2.1/24", "2001:db8::1/64"], b, "eth0",
                      ["192.0.2.2/24", "2001:db8::2/64"], offload=False)
        path = self.lab.path("tcpdump.pcap")
        process = self.lab.spawn(
            "tcpdump", "-Z", "root", "-U", "--immediate-mode", "-B", "16384",
            "-w", path, *options, ns=a, stderr=subprocess.PIPE, text=True)
        while "listening on" not in process.stderr.readline():
            self.assertIsNone(process.poll())
        traffic.tcp(a, "192.0.2.1", b, "192.0.2.2", lab.sized(2 << 20))
        traffic.ping(a, "2001:db8::2", 10, 3000)
        tcpdump.await_rest(process)
        process.terminate()
        process.communicate()
        return path

    def test_what_tcpdump_writes(self):
        for options in (("-i", "eth0"),
                        ("-i", "any", "-y", "LINUX_SLL2"),
                        ("-i", "any", "-y", "LINUX_SLL"),
                        ("-i", "eth0", "--time-stamp-precision=nano"),
                        ("-i", "eth0", "-s", "100")):
            path = self.capture_of(*options)
            result = self.replay(path)
            real = truth.sums(path)
            # Multicast reports may be in the file: both sides leave them out.
            self.assert_truth(result, real)
            self.note(f"{' '.join(options)}: {truth.summary(real)}")

    def test_pcapng_of_several_link_types(self):
        """Interfaces of one file, and of several sections in it, are of several kinds."""
        packets = conversation()
        kinds = (capfile.ETHERNET, 6), (capfile.RAW, 9, 2000), (capfile.SLL2, 6, 120)

        def mixed(some, order, first):
            return capfile.pcapng(
                kinds, [(at, (n + first) % 3, capfile.link(kinds[(n + first) % 3][0], frame))
                        for n, (at, frame) in enumerate(some)], order)

        for data in (mixed(packets, "<", 0), mixed(packets, ">", 1),
                     mixed(packets[:50], "<", 0) + mixed(packets[50:], "<", 1)):
            path = self.save(data)
            result = self.replay(path)
            self.assert_truth(result, truth.sums(path))
            self.assert_times(result, packets, 1000)
            self.assertEqual(len(packets), result.total("seen")[0])
        # tshark does not read sections of several byte orders.
        result = self.replay(self.save(mixed(packets[:50], "<", 0) + mixed(packets[50:], ">", 0)))
        self.assertEqual(len(packets), result.exported()[0])

    def test_addresses_of_pcapng_are_those_of_ethernet(self):
        frames = [frame for _, frame in conversation()[:5]]
        path = self.save(capfile.pcapng(
            [(capfile.ETHERNET, 9), (capfile.RAW, 9)],
            [(START + i, i % 2, capfile.link((capfile.ETHERNET, capfile.RAW)[i % 2], frame))
             for i, frame in enumerate(frames)]))
        result = self.replay(path)
        self.assertEqual(3, sum("DstMac" in record for record in result.records))
        self.assertEqual(5, len(result.records))
        result = observer.flows(self.lab, "-r", path, f"ether src {MAC_A}")
        self.assertEqual(1, result.code)
        self.assertIn("without Ethernet headers", result.errors)

    def test_link_types_that_are_not_supported(self):
        packets = conversation()
        kinds = (capfile.ETHERNET, 9), (capfile.NFLOG, 9)
        path = self.save(capfile.pcapng(kinds, [(at, n % 2, frame) for n, (at, frame)
                                                in enumerate(packets)]))
        result = self.replay(path)
        self.assertEqual((50, 50, 100), (
            result.exported()[0], result.stats["unparsed"]["link_type"]["packets"],
            result.total("seen")[0]))
        self.assertIn("50 packets are in no flow: link type 239 (NFLOG)", result.errors)
        result = observer.flows(self.lab, "-r", self.save(
            capfile.pcapng(kinds[1:], [(at, 0, frame) for at, frame in packets])))
        self.assertEqual(1, result.code)
        self.assertIn("link type 239 (NFLOG) is not supported", result.errors)

    def test_own_capture_of_unlike_interfaces(self):
        a, b = self.lab.ns("a"), self.lab.ns("b")
        self.lab.wire(a, "eth0", ["192.0.2.1/24"], b, "eth0", ["192.0.2.2/24"])
        with a, open("/dev/net/tun", "r+b", buffering=0) as tun:
            fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH", b"tun0", IFF_TUN_NO_PI))
            a.ip("addr", "add", "198.51.100.1/24", "dev", "tun0")
            a.ip("link", "set", "tun0", "up")
            path = self.lab.path("own.pcapng")
            capture = self.lab.spawn(observer.netobsctl(), "capture", "-w", path, ns=a)
            lab.wait_for(lambda: all(bpf.attached(a, name) == 2 for name in ("eth0", "tun0")),
                         "the capture")
            traffic.ping(a, "192.0.2.2", 3)
            traffic.throw(a, ("198.51.100.2", 9), 4, data=b"x")
            capture.send_signal(signal.SIGINT)
            self.assertEqual(0, capture.wait(timeout=60))
        kinds = lab.run("tshark", "-r", path, "-T", "fields", "-e", "frame.encap_type").split()
        self.assertEqual(2, len(set(kinds)), kinds)
        result = self.replay(path)
        self.assertEqual(len(kinds), result.total("seen")[0])
        self.assert_truth(result, truth.sums(path))


if __name__ == "__main__":
    lab.main()
