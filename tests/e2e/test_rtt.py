#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: iputils-ping tcpdump tshark
# Label: measure
# Alone: it measures times, and the kernel's are from another place.
"""Round-trip times, application latency and retransmissions of TCP, against the kernel's.

The link delays and loses: lib/relay.py. NETOBS_TEST_RTT=N tries N of the 192 combinations, at
random; NETOBS_TEST_SEED repeats a choice. NETOBS_TEST_RTT_TABLE=FILE: put what was found into that
file, see lib/rtt_table.py.
"""

import collections
import concurrent.futures
import itertools
import os
import re
import statistics
import subprocess

from lib import chat
from lib import lab
from lib import packets
from lib import relay
from lib import rtt_cases
from lib import rtt_table

CASES = int(os.environ.get("NETOBS_TEST_RTT", "4"))
SECONDS = 3
TABLE = os.environ.get("NETOBS_TEST_RTT_TABLE")
CASE_SECONDS = 2
TRIES = 5  # what disturbs a measurement on a busy machine is not there each time
AT_ONCE, QUIET_MS = 2, 10  # links with at least this delay do not disturb each other
SHARE, LEAST_US, LEAST_SHARE = 0.05, 50, 0.001
THINK_MS = 50
THINKS_MS = (0, 1, 10, 30, 200)
THINK_LEAST_NS = 100_000
CLASS_0_BITS, CLASSES = 14, 16 # netobs_latency.classes


def latency_class(ns):
    """The class of a time, as <netobs/connection.h> has them."""
    return min(max(int(ns).bit_length() - CLASS_0_BITS, 0), CLASSES - 1)


def wrong(found, is_coarse):
    """What is not as the kernel has it; empty: nothing.

    netobs takes its times between TCP and the place of tcpdump, so a time may be as short as
    tcpdump's and as long as TCP's. They are tens of microseconds apart where caches are cold.
    And the kernel's least is of all segments, netobs' of those that a timer was free for.
    """
    far = abs(found.median - found.kernels_median)
    if far > max(SHARE * found.kernels_median, LEAST_US):
        yield f"the median is {found.median:.0f} us, the kernel's {found.kernels_median:.0f}"
    # After a loss the kernel measures by timestamps of milliseconds (RFC 7323), cut off.
    low = min(found.true_least or found.kernels_least, found.kernels_least)
    high = found.kernels_least + 1000 * is_coarse
    above = max(LEAST_US, LEAST_SHARE * found.kernels_least)
    if not low - LEAST_US <= found.least <= high + above:
        yield f"the least is {found.least:.0f} us, not from {low:.0f} to {high}"
    if found.largest:
        largest = max(found.largest, found.kernels_largest)
        if max(found.samples) > largest + LEAST_US:
            yield f"a sample is {max(found.samples):.0f} us, the largest true one {largest:.0f}"


class Accuracy(lab.LabTest):
    """Of each sample."""

    def check_case(self, watched, case):
        """The results, and the errors in them each time."""
        for _ in range(TRIES):
            found = watched.measure(case, CASE_SECONDS)
            is_coarse = case.timestamps and found.retransmits and \
                not found.kernels_least % 1000
            why = list(wrong(found, is_coarse))
            self.note(f"{' '.join(map(str, case))}: median {found.median:.0f} us, "
                      f"the kernel's {found.kernels_median:.0f}; least {found.least:.0f}, "
                      f"{found.kernels_least}; {len(found.samples)} samples, "
                      f"{found.kernels_samples}; {found.retransmits} retransmits"
                      f"{'; ' if why else ''}{', '.join(why)}")
            if not why:
                break
        return found, why

    def check_link(self, watched, cases):
        results = [self.check_case(watched, case) for case in cases]
        watched.watcher.stop()
        return results

    def check_links(self, links, at_once):
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            return sum(pool.map(lambda link: self.check_link(*link), links), [])

    def test_round_trip_times_are_the_kernels(self):
        cases = [rtt_cases.Case(*case) for case in itertools.product(
            (0, 1, 10, 100), (0, 0.005), ("pingpong", "bulk", "think"), (1, 0), (1, 0), (4, 6))]
        chosen = self.random.sample(cases, min(CASES, len(cases)))
        by_link = collections.defaultdict(list)
        for case in sorted(chosen, key=cases.index):
            by_link[case.delay_ms, case.loss].append(case)
        links = [(rtt_cases.Watched(self.lab, *link, self.seed), of_link)
                 for link, of_link in by_link.items()]
        results = self.check_links([link for link in links if link[1][0].delay_ms < QUIET_MS], 1)
        results += self.check_links([link for link in links if link[1][0].delay_ms >= QUIET_MS],
                                    AT_ONCE)
        if TABLE:
            rtt_table.write(TABLE, [found for found, _ in results])
        for found, why in results:
            with self.subTest(case=found.case, seed=self.seed):
                self.assertEqual([], why)


class Rtt(relay.LinkTest):
    def measure(self, link, kind, family=4, seconds=SECONDS):
        """What the client found, and what netobsctl tcp said of it, over time."""
        process = self.start(link, "tcp", "--interval", "0.1")
        found = link.talk(kind, seconds, family)
        lines = [line for line in self.finish(process) if line["SrcPort"] == found["port"]]
        self.assertTrue(lines)
        self.assertEqual({("connection", relay.ADDRESSES[family], relay.PORT, "eth0")},
                         {(line["type"], (line["SrcAddr"], line["DstAddr"]),
                           line["DstPort"], line["Interface"]) for line in lines})
        return found, lines

    def test_a_slow_server_is_no_slow_path(self):
        link = relay.Link(self.lab, 10_000)
        link.serve(think_ms=THINK_MS)
        found, lines = self.measure(link, "pingpong")
        way = lines[-1]["ToServer"]
        # The client measures the same and what its scheduler adds.
        took = min(found["times"]) * 1000
        self.note(f"answers took {took / 1e6:.2f} ms at least, response time "
                  f"{way['MinResponseTimeNs'] / 1e6:.2f} ms, application latency "
                  f"{way['MinAppLatencyNs'] / 1e6:.2f} ms, round trip "
                  f"{way['MinRttNs'] / 1e6:.2f} ms")
        self.assertLess(abs(way["MinResponseTimeNs"] - took), SHARE * took)
        self.assertGreaterEqual(way["MinResponseTimeNs"], THINK_MS * 1_000_000)
        self.assertLess(abs(way["MinAppLatencyNs"] - THINK_MS * 1_000_000),
                        SHARE * THINK_MS * 1_000_000)
        self.assertLessEqual(abs(way["AppResponses"] - len(found["times"])), 1)
        self.assertLess(way["MinRttNs"], THINK_MS * 1_000_000)
        self.assertLess(abs(way["MinRttNs"] / 1000 - found["min"]), SHARE * found["min"])

    def wrong_latencies(self, lines, found, where):
        """What of a connection is not as its server noted it."""
        line = [line for line in lines if line["SrcPort"] == found["port"]][-1]
        there, back = line["ToServer"], line["ToClient"]
        noted, ours = min(found["thoughts"]) * 1000, there["MinAppLatencyNs"]
        self.note(f"at the {where}: server {noted / 1e6:.3f} ms at least, application latency "
                  f"{ours / 1e6:.3f} ms, response time {there['MinResponseTimeNs'] / 1e6:.3f} ms, "
                  f"client {back['MinClientThinkTimeNs'] / 1e6:.3f} ms")
        self.assertFalse([name for name in back if "App" in name or "Response" in name], back)
        self.assertFalse([name for name in there if "Think" in name], there)
        self.assertGreater(back["MinClientThinkTimeNs"], found["pause"] * 1e9)
        if abs(ours - noted) > max(SHARE * noted, THINK_LEAST_NS):
            yield f"at the {where}: {ours} ns, the server noted {noted}"

    def test_application_latency_is_what_the_server_takes(self):
        """Wherever it is observed, and for as long as the client rests."""
        link = relay.Link(self.lab, 20_000)
        kinds = {"pingpong": chat.PAUSE_S, "rest": chat.REST_S}
        for i, think_ms in enumerate(THINKS_MS):
            link.serve(think_ms=think_ms, port=relay.PORT + i)
        for kind, pause in kinds.items():
            for _ in range(TRIES):
                watchers = {where: self.start(link, "tcp", "--interval", "0.1", at=ns)
                            for where, ns in (("client", link.a), ("server", link.b))}
                with concurrent.futures.ThreadPoolExecutor(len(THINKS_MS)) as pool:
                    found = list(pool.map(lambda i, kind=kind: link.talk(
                        kind, SECONDS, port=relay.PORT + i), range(len(THINKS_MS))))
                lines = {where: self.finish(process) for where, process in watchers.items()}
                why = [text for where in lines for one in found
                       for text in self.wrong_latencies(lines[where], {**one, "pause": pause},
                                                        where)]
                if not why:
                    break
            self.assertEqual([], why)

    def test_round_trip_times_are_those_of_tshark(self):
        """Of all answers without a loss, by the packets that tcpdump saw at the same point."""
        link = relay.Link(self.lab, 5_000) # in the middle of a class: 4.19 to 8.39 ms
        link.serve()
        path = self.lab.path("rtt.pcap")
        dump = packets.Tcpdump(self.lab, link.a, "eth0", path, "tcp")
        _, lines = self.measure(link, "pingpong")
        dump.stop()
        way = lines[-1]["ToServer"]
        # Of SYN and data: tshark has a time for FIN, too.
        theirs = [float(text) * 1e9 for text in lab.run(
            "tshark", "-r", path, "-Y", f"tcp.srcport == {relay.PORT} && "
            f"tcp.ack >= 1 && tcp.ack <= {way['DataBytes'] + 1}", "-T", "fields",
            "-e", "tcp.analysis.ack_rtt").split()]
        self.note(f"{way['RttSamples']} samples, {len(theirs)} of tshark; least "
                  f"{way['MinRttNs']} ns, {min(theirs):.0f}; most {way['MaxRttNs']} ns, "
                  f"{max(theirs):.0f}; {way['Retransmits']} retransmits")
        self.assertGreater(len(theirs), 100)
        self.assertLess(abs(way["RttSamples"] - len(theirs)), SHARE * len(theirs))
        # tcpdump is behind netobs, which a busy host delays.
        self.assertLess(abs(way["MinRttNs"] - min(theirs)), SHARE * min(theirs))
        # tshark times retransmitted data from its first transmission on (unlike RFC 6298, 3).
        self.assertLess(way["MaxRttNs"] - max(theirs), SHARE * max(theirs))
        if not way["Retransmits"]:
            self.assertLess(max(theirs) - way["MaxRttNs"], SHARE * max(theirs))
        classes = collections.Counter(latency_class(value) for value in theirs)
        for i, ours in enumerate(way["RttClasses"]):
            self.assertLessEqual(abs(ours - classes[i]), SHARE * len(theirs),
                                 (i, way["RttClasses"], classes))

    def test_flow_records_have_what_was_measured(self):
        link = relay.Link(self.lab, 4_000, loss_ppm=20_000, seed=7)
        link.serve()
        process = self.start(link, "flows", "--rtt", "--interval", "0.5")
        found = link.talk("bulk", SECONDS)
        records = [record for record in self.finish(process) if record["Proto"] == 6]
        there = [record for record in records if record["SrcPort"] == found["port"]]
        back = [record for record in records if record["DstPort"] == found["port"]]
        self.assertTrue(there and back)
        for record in there + back:
            self.assertIn("Retransmits", record)
        self.assertTrue(all("HandshakeRttNs" in record for record in there[1:]))
        self.assertEqual(found["retransmits"],
                         sum(record["Retransmits"] for record in there))
        self.assertGreater(found["retransmits"], 0)
        self.assertGreater(sum(record["DuplicateAcks"] for record in back), 0)
        self.assertEqual(0, sum(record["Retransmits"] for record in back))
        rtt = statistics.median(record["TimeFlowRttNs"] for record in there
                                if "TimeFlowRttNs" in record) / 1000
        self.note(f"round trip {rtt:.0f} us, the kernel's "
                  f"{statistics.median(found['rtts']):.0f}")

    def test_echo_requests_have_round_trip_times(self):
        link = relay.Link(self.lab, 20_000)
        process = self.start(link, "flows", "--rtt", "--interval", "60")
        pings = {family: self.lab.spawn("ping", "-q", "-n", "-i", "0.2", "-c", 10, target,
                                        ns=link.a, stdout=subprocess.PIPE, text=True,
                                        enter=lab.run_first)
                 for family, (_, target) in relay.ADDRESSES.items()}
        said = {family: ping.communicate(timeout=lab.PATIENCE_S)[0] for family, ping in pings.items()}
        flows = {(record["Proto"], record.get("IcmpType")): record
                 for record in self.finish(process)}
        for family, proto, request, reply in (4, 1, 8, 0), (6, 58, 128, 129):
            there, back = flows[proto, request], flows[proto, reply]
            ours = there["MinRttNs"] / 1e6
            pings_least = float(re.search(r"= ([\d.]+)/", said[family])[1])
            self.note(f"IPv{family}: {ours:.3f} ms, ping says {pings_least:.3f}")
            self.assertEqual(10, there["RttSamples"])
            self.assertLess(abs(ours - pings_least), SHARE * pings_least)
            self.assertNotIn("RttSamples", back)
            for record in there, back:
                self.assertNotIn("Retransmits", record)


if __name__ == "__main__":
    lab.main()
