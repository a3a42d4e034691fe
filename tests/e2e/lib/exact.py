# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""What tests of exact counts share: observe, capture, compare."""

from lib import lab
from lib import truth
from lib.observer import Observer


class ExactTest(lab.LabTest):
    """Two namespaces, a and b, joined by a wire with IPv4 and IPv6."""

    A4, B4 = "192.0.2.1", "192.0.2.2"
    A6, B6 = "2001:db8::1", "2001:db8::2"

    def join(self, offload=True, ipv6=True):
        self.a = self.lab.ns("a", ipv6)
        self.b = self.lab.ns("b", ipv6)
        nets_a = [f"{self.A4}/24"] + [f"{self.A6}/64"] * ipv6
        nets_b = [f"{self.B4}/24"] + [f"{self.B6}/64"] * ipv6
        self.mac_a, self.mac_b = self.lab.wire(
            self.a, "eth0", nets_a, self.b, "eth0", nets_b, offload=offload)

    def watch(self, traffic, points, captures, *arguments):
        """
        Run @traffic under an observer of each of @points and a capture at each
        of @captures, all (namespace, interface). Returns their results and
        the capture files' names.
        """
        taps = [truth.Capture(self.lab, *point) for point in captures]
        observers = [Observer(self.lab, ns, "-i", name, *arguments)
                     for ns, name in points]
        for observer, point in zip(observers, points):
            observer.wait_attached(point)
        traffic()
        for tap in taps:
            tap.stop()
        results = [observer.stop() for observer in observers]
        for result in results:
            result.check_conservation()
        return results, [tap.file for tap in taps]

    def assert_exact(self, result, real, what=""):
        ours = truth.record_sums(result.records)
        self.assertEqual([], truth.differences(ours, real))
        self.assertGreater(len(real), 0)
        self.note(f"{what} exact: {truth.summary(real)}")

    def assert_l2_exact(self, result, real):
        ours = truth.record_sums(result.records)
        self.assertEqual({key: total.l2_bytes for key, total in real.items()},
                         {key: total.l2_bytes for key, total in ours.items()})
