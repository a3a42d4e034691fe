#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Lock: drops, its flows fill the table of drops of the whole host.
"""flowgen sends the packets that it reports; other tests and benchmarks rely on that."""


from lib import lab
from lib import traffic
from lib import truth


class Flowgen(lab.LabTest):
    def setUp(self):
        super().setUp()
        self.a, self.b = self.lab.ns("a"), self.lab.ns("b")
        self.lab.wire(self.a, "eth0", ["192.0.2.1/24"], self.b, "eth0",
                      ["192.0.2.2/24"], offload=False)

    def flood(self, *arguments):
        return traffic.flood(self.lab, self.a, "eth0", *arguments)

    def assert_counted(self, sent):
        """By the interface; those that it refused, too."""
        counters = self.a.counters("eth0")["tx"]
        self.assertEqual(sent["packets"],
                         counters["packets"] + counters["dropped"])
        self.assertEqual(sent["refused"], counters["dropped"])

    def test_flows_take_turns(self):
        capture = truth.Capture(self.lab, self.a, "eth0")
        sent = self.flood("--flows", 1000, "--packets", 2500, "--payload", 33,
                          "--rate", 50000)
        capture.stop()
        sums = truth.sums(capture.file)
        self.assertEqual(1000, len(sums))
        self.assertEqual([2] * 500 + [3] * 500,
                         sorted(flow.packets for flow in sums.values()))
        self.assertEqual((sent["packets"], sent["bytes"], sent["l2_bytes"]), (
            sum(flow.packets for flow in sums.values()),
            sum(flow.bytes for flow in sums.values()),
            sum(flow.l2_bytes for flow in sums.values())))
        self.assertEqual((2500, 2500 * 75), (sent["packets"],
                                             sent["l2_bytes"]))
        self.assert_counted(sent)

    def test_number_of_packets_ends_it(self):
        sent = self.flood("--flows", 100000, "--packets", 123457, "--seconds",
                          1000, "--cpus", traffic.two_cpus())
        self.assertEqual(123457, sent["packets"])
        self.assert_counted(sent)

    def test_time_ends_it(self):
        sent = self.flood("--packets", 10 ** 12, "--seconds", 0.2)
        self.assertGreater(sent["packets"], 0)
        self.assert_counted(sent)


if __name__ == "__main__":
    lab.main()
