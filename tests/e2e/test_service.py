#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
netobsctl run: its configuration, what it reports to systemd, and changes of everything that can
change in a flood, without a packet that is lost or counted twice.
"""

import json
import os
import re
import signal
import time

from lib import lab
from lib import metrics
from lib import observer
from lib import traffic
from lib.configuration import Configured
from lib.service import AGAIN, ServiceTest

RELOADS = int(os.environ.get("NETOBS_TEST_RELOADS", "20"))
RATE = lab.sized(20000)
REFUSED = "the new configuration is not in use"


class Config(Configured, lab.LabTest):
    """netobsctl config: it needs no privileges and opens nothing."""

    def setUp(self):
        super().setUp()
        self.path = self.lab.path("netobs.conf")

    def write(self, text, path=None):
        lab.write(path or self.path, text)

    def check(self, text):
        self.write(text)
        code, out, errors = self.config("check", self.path)
        self.assertEqual("", out)
        self.assertEqual(int(bool(errors)), code)
        return errors

    def test_each_error_has_its_place(self):
        cases = (
            ("[capture]\ninterface = eth*", "2:13: interface: no such interface; patterns"),
            ("[capture]\ninterface = /a(/", "2:13: "),
            ("[capture]\ndirection = in", "2:13: direction: 'in' is not both|ingress"),
            ("[capture]\nsampling = flow:x", "2:12: sampling: 'flow:x' is not"),
            ("[capture]\nfilter = udp prt 5", "2:10: "),
            ("[capture]\nrules = /nosuchfile", "2:9: /nosuchfile: No such file"),
            ("[capture]\ninterval = 5", "2:1: 'interval' belongs to [flows]"),
            ("[flows]\nactive_timout = 5",
             "2:1: there is no key 'active_timout'; did you mean 'active_timeout'?"),
            ("[flows]\ninterval = 1ms", "2:12: interval: it must be at least 10 ms"),
            ("[flows]\nper_interface = maybe", "2:17: per_interface: 'maybe' is not yes"),
            ("[flow]\n", "1:1: there is no section 'flow'; did you mean 'flows'?"),
            ('[flows "x"]\n', "1:1: [flows] has no name"),
            ("[sink]\n", '1:1: it needs a name: [sink "NAME"]'),
            ('[sink "x"]\n', "1:1: [sink \"x\"] needs 'output'"),
            ('[sink "x"]\noutput = jsn:/x', "2:10: 'jsn:/x': there is no such kind"),
            ('[sink "x"]\noutput = table', "2:10: a table is for people"),
            ('[sink "x"]\noutput = json:/x\nrotate.bites = 1M',
             "3:1: json: unknown option 'rotate.bites'; did you mean 'rotate.bytes'?"),
            ('[sink "x"]\noutput = json:/x\nrotate.bytes = many',
             "3:16: json: option rotate.bytes: 'many' is not"),
            ('[sink "x"]\noutput = json\n[sink "y"]\noutput = json',
             "4:1: only one sink can write to standard output"),
            ('[sink "x"]\noutput = json:/x?spool=disk:/s\n'
             '[sink "y"]\noutput = json:/y?spool=disk:/s',
             '4:1: [sink "x"] has the same file or spool'),
            ('[sink "x"]\noutput = json:/x\n[sink "y"]\noutput = json:/x\nrecords = alert',
             '4:1: [sink "x"] has the same file or spool'),
            ('[filter "x"]\nmatch = tcp\naction = drop', "3:10: action: 'drop' is not"),
            ('[filter "x"]\nmatch = tcp', "1:1: [filter \"x\"] needs 'action'"),
            ('[filter "x"]\nmatch = tcp prt 5\naction = accept', "2:9: "),
            ("", " there is no [sink \"NAME\"] with an output"),
        )
        for text, error in cases:
            with self.subTest(text):
                rest = "" if "sink" in text or not text else '\n[sink "n"]\noutput = null'
                self.assertIn(f"{self.path}:{error}", self.check(text + rest))
        errors = self.check("[flow]\nx = 1\n[flows]\ninterval = x\nactive_timeout = y\n"
                            '[sink "n"]\noutput = null')
        self.assertEqual(3, errors.count("\n"))

    def test_sinks_may_share_what_is_no_file(self):
        os.mkfifo(self.lab.path("pipe"))
        for target in ("/dev/null", f"unix:{self.lab.path('socket')}", "tcp://127.0.0.1:9",
                       self.lab.path("pipe")):
            self.assertEqual("", self.check("".join(
                f'[sink "{name}"]\noutput = json:{target}\n' for name in "ab")))

    def test_link_to_no_file_is_an_error(self):
        os.mkdir(f"{self.path}.d")
        drop_in = f"{self.path}.d/10-local.conf"
        os.symlink("/nosuchfile", drop_in)
        self.assertEqual(f"{drop_in}: the link leads to no file\n",
                         self.check('[sink "n"]\noutput = null'))

    def test_usage(self):
        for arguments in (), ("chek",), ("check", "a", "b"), ("check", "-o", "json"):
            code, _, errors = self.config(*arguments)
            self.assertEqual(2, code)
            self.assertIn("netobsctl config -h", errors)
        code, _, errors = self.config("check", "/nosuchfile")
        self.assertEqual((1, "/nosuchfile: No such file or directory\n"), (code, errors))

    def test_filters_in_the_page_about_netobserv(self):
        page = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "netobserv.md")
        part = lab.read(page).split("\n## Filters\n")[1].split("\n## ")[0]
        rows = [line.split(" | ") for line in part.split("\n") if line.startswith("| `")]
        spans = [(number, span) for row in rows for number, cell in enumerate(row[1:])
                 for span in re.findall("`(?:match = )?([^`]*)`", cell)]
        matches = [span for number, span in spans if number == 0 or " " in span
                   if not span.startswith(("action", "sample", "[capture]"))]
        self.assertGreater(len(matches), 30)
        for match in matches:
            with self.subTest(match):
                self.assertEqual("", self.check('[capture]\ndefault_action = reject\n[filter "x"]\n'
                                                f'match = {match}\naction = accept\n'
                                                '[sink "n"]\noutput = null'))
        example, = re.findall(r"```\n(\[capture\].*?)```", part, re.DOTALL)
        self.assertEqual("", self.check(f'{example}[sink "n"]\noutput = null'))

    def test_show_hides_secrets(self):
        self.write('[sink "a"]\noutput = https://loki.example/push\n'
                   "proxy = http://me:hunter2@proxy.example:3128\nheader.Authorization = hunter2\n"
                   "param.password = hunter2\nparam.user = me\n"
                   '[sink "b"]\noutput = kafka://b/t\nrdkafka.ssl.key.password = hunter2\n',
                   self.path)
        for arguments in ((), ("-o", "json")):
            code, out, errors = self.config("show", *arguments, self.path)
            self.assertEqual((0, ""), (code, errors))
            self.assertNotIn("hunter2", out)
            self.assertIn("http://(hidden)@proxy.example:3128", out)
            self.assertEqual(4, out.count("(hidden)"))
        self.write('[sink "b"]\noutput = kafka://b/t\nrdkafka.sasl.password = hunter2\n', self.path)
        code, _, errors = self.config("check", self.path)
        self.assertEqual(1, code)
        self.assertIn("use password_file", errors)
        self.assertNotIn("hunter2", errors)

    def test_noise(self):
        with open(self.path, "wb") as file:
            file.write(os.urandom(1 << 20).replace(b"\0", b"\n"))
        code, _, errors = self.config("check", self.path)
        self.assertEqual(1, code)
        self.assertEqual(101, errors.count("\n"))

    def test_drop_ins_and_origins(self):
        self.write("[capture]\ninterface = eth0\ninterface = eth1\nexclude = x\n"
                   '[flows]\ninterval = 10s\n[sink "a"]\noutput = json:/nosuchdir/a\n'
                   '[sink "b"]\noutput = null\n')
        os.mkdir(f"{self.path}.d")
        drop_in = f"{self.path}.d/10-local.conf"
        self.write("[capture]\ninterface =\ninterface = eth2\n[flows]\ninterval =\n"
                   '[sink "a"]\noutput =\n[sink "b"]\nrecords = flow,stats\n', drop_in)
        code, out, errors = self.config("show", "-o", "json", self.path)
        self.assertEqual((0, ""), (code, errors))
        shown = {(one["section"], one.get("name"), one["key"]):
                 (one["value"], one["origin"]) for one in json.loads(out)}
        self.assertEqual(("eth2", f"{drop_in}:3"), shown["capture", None, "interface"])
        self.assertEqual(("x", f"{self.path}:4"), shown["capture", None, "exclude"])
        self.assertEqual(("5", "default"), shown["flows", None, "interval"])
        self.assertEqual(("null", f"{self.path}:10"), shown["sink", "b", "output"])
        self.assertNotIn(("sink", "a", "output"), shown)
        # What it prints is a configuration that has the same effect.
        again, text = self.lab.path("again.conf"), self.config("show", self.path)[1]
        self.assertIn("\ninterval = 5\n", text)
        self.assertNotIn("# default", text)
        self.write(text, again)
        _, out, errors = self.config("show", "-o", "json", again)
        self.assertEqual("", errors)
        self.assertEqual({key: value for key, (value, _) in shown.items()},
                         {(one["section"], one.get("name"), one["key"]): one["value"]
                          for one in json.loads(out)})


class Service(ServiceTest):
    def test_it_delivers_and_reports(self):
        self.write()
        self.start(WATCHDOG_USEC="200000")
        traffic.udp(self.a, self.A4, self.b, self.B4, [100] * 7)
        self.supervisor.wait("STATUS=Observing 1 interfaces: 7 packets, 0 lost")
        for _ in range(3):
            self.supervisor.wait("WATCHDOG=1")
        # What the interval under way has seen comes, too.
        traffic.udp(self.a, self.A4, self.b, self.B4, [100] * 5)
        self.stop()
        self.assertEqual(12, self.packets("a"))
        self.assertEqual(12, self.exported())

    def test_what_is_left_in_a_spool_on_disk_is_no_failure(self):
        where = self.lab.path("far")
        self.write('[sink "far"]',
                   f"output = json:unix:{where}?spool=disk:{self.lab.path('spool')}", sinks=())
        self.start()
        traffic.ping(self.a, self.B4, 5)
        self.stop()
        self.assertRegex(self.messages(), r"far: \d+ records wait in the spool for the next start")

    def test_a_wrong_configuration_is_no_start(self):
        self.write("[flos]")
        done = observer.run("run", "-c", self.path, code=2)
        self.assertIn(f"{self.path}:8:1: there is no section 'flos'; did you mean 'flows'?",
                      done.stderr)

    def test_reloads_that_are_refused_change_nothing(self):
        self.write()
        self.start()
        cases = (
            ({"parts": ["nonsense"]}, ["'=' is missing"]),
            ({"parts": ["[sessions]", "enabled = yes", "interval = 10ms"]}, ["interval: it is less than 100"]),
            ({"parts": ['[alert "a"]', "rule = rtt > 1ms where prt 1"]}, ["rule: column 17: "]),
            ({"parts": ["[host]", "field.Bytes = 1"]}, ["'Bytes' is a field of flow records"]),
            ({"interfaces": ["nosuchif"]}, ["nosuchif"]),
            ({"sinks": ["a", "/nosuchdir/b"]},
             ["cannot write to", f"{self.path}:11:10: sink \"/nosuchdir/b\" cannot be opened"]),
        )
        for change, words in cases:
            self.write(*change.pop("parts", ()), **change)
            self.reload(*words, f"{REFUSED}: nothing was changed; "
                        "still using the configuration of ")
        traffic.udp(self.a, self.A4, self.b, self.B4, [100] * 5)
        self.stop()
        self.assertEqual(5, self.packets("a"))

    def test_what_takes_a_restart_is_named(self):
        self.write()
        self.start()
        self.write("[limits]", "max_flows = 1000", more="direction = ingress\nfilter = tcp")
        self.reload("[capture] direction: the new value takes effect after a restart",
                    "[limits] max_flows: the new value takes effect after a restart",
                    "the first filter, and none after one, take effect after a restart",
                    AGAIN)
        traffic.udp(self.a, self.A4, self.b, self.B4, [100] * 5)
        self.stop()
        self.assertEqual(5, self.packets("a"))

    def test_sinks_beside_those_that_change_stay(self):
        """Each has a file and a spool of its own."""
        def sink(name, more=""):
            return [f'[sink "{name}"]', f"output = json:{self.lab.path(name)}",
                    f"spool = disk:{self.lab.path(f'spool-{name}')}", more]

        self.write(*sink("one"), sinks=())
        self.start()
        for count, sinks in ((3, [*sink("one"), *sink("two")]),
                             (4, [*sink("one"), *sink("two", "spool.max_bytes = 9M")])):
            self.write(*sinks, sinks=())
            self.reload(AGAIN)
            traffic.udp(self.a, self.A4, self.b, self.B4, [100] * count)
        self.stop()
        self.assertEqual(2 * (3 + 4), self.packets("one", "two"))

    def test_filters_change(self):
        some = ['[filter "dns"]', "match = udp port 5002", "action = accept"]
        self.write(*some, more="default_action = reject")
        self.start()
        traffic.udp(self.a, self.A4, self.b, self.B4, [100] * 5)
        self.write(*some, '[filter "one"]', f"match = host {self.B4} \\", " and greater 500",
                   "action = reject", more="default_action = accept")
        self.reload(AGAIN)
        traffic.udp(self.a, self.A4, self.b, self.B4, [800] * 3) # by the first filter
        for size, count in ((800, 4), (100, 7)): # by the second one; by none
            traffic.udp(self.a, self.A4, self.b, self.B4, [size] * count, port=5003)
        # One that cannot be used is named by its place.
        self.write(*some, '[filter "one"]', "match = udp prt 1", "action = reject",
                   more="default_action = accept")
        self.reload(f"{self.path}:12:9: ", REFUSED)
        self.stop()
        self.assertEqual(5 + 3 + 7, self.packets("a"))
        self.assertEqual(self.packets("a"), self.exported())

    def test_sampling_changes(self):
        """Sinks are replaced, and announce it; nothing is counted twice or by the wrong rate."""
        self.write(more="sampling = 1")
        self.start()
        traffic.udp(self.a, self.A4, self.b, self.B4, [100] * 40)
        self.write(more="sampling = 4000000000")
        self.reload(AGAIN)
        traffic.udp(self.a, self.A4, self.b, self.B4, [100] * 50, port=5002)
        self.write(more="sampling = 1")
        self.reload(AGAIN)
        traffic.udp(self.a, self.A4, self.b, self.B4, [100] * 30, port=5003)
        self.stop()
        self.assertEqual(70, self.packets("a"))

    def test_metrics(self):
        """Sinks that come have series with their names; of those that go, counts stay."""
        where = self.lab.path("metrics")
        served = ["[metrics]", f"listen = unix:{where}",
                  f"textfile = {self.lab.path('textfile')}"]
        self.write(*served)
        self.start()
        known = set()
        for names in ("a",), ("a", "b"), ("b",):
            self.write(*served, sinks=names)
            self.reload(AGAIN)
            traffic.udp(self.a, self.A4, self.b, self.B4, [100] * 5)
            self.supervisor.wait("STATUS=")
            time.sleep(0.2) # metrics are kept for a moment
            samples = metrics.Samples(metrics.get(where)[1])
            known.update(names)
            for metric, outputs in (("netobs_sink_connected", set(names)),
                                    ("netobs_sink_taken_records_total", known)):
                self.assertEqual(outputs, {dict(labels)["output"] for name, labels
                                           in samples.series if name == metric})
        self.write("[metrics]", "listen = 127.0.0.1:9436")
        self.reload("[metrics] listen: the new value takes effect after a restart",
                    "[metrics] textfile: the new value takes effect after a restart")
        # They do not grow, however many configurations have been replaced.
        self.write("[metrics]", "listen = 127.0.0.1:9436")
        self.reload("[metrics] listen: the new value takes effect after a restart")
        self.assertEqual(200, metrics.get(where)[0].status)
        self.stop()
        total = metrics.Samples(lab.read(self.lab.path("textfile"))).value("netobs_exported_packets_total")
        self.assertEqual(15, total)

    def test_reloads_in_a_flood(self):
        """Interfaces, rules, time-outs and all kinds of sinks change."""
        spool = self.lab.path("spool")
        self.lab.wire(self.a, "eth1", ["198.51.100.1/24"], self.b, "eth1",
                      ["198.51.100.2/24"])
        accept = ['[filter "all"]', "match = ip or not ip", "action = accept"]
        kept = ['[sink "spooled"]', f"output = json:{self.lab.path('spooled')}",
                f"spool = disk:{spool}"]
        shapes = (
            lambda: self.write(*accept, *kept, more="default_action = reject"),
            lambda: self.write(*accept, *kept, "mode = 600", '[flows]', "interval = 50ms",
                               interfaces=("eth1", "eth0"), sinks=("b",),
                               more="default_action = accept"),
            lambda: self.write('[filter "udp"]', "match = udp", "action = accept", *accept,
                               *kept, '[flows]', "active_timeout = 1s", sinks=("a", "c"),
                               more="default_action = accept"),
        )
        shapes[0]()
        self.start()
        flood = traffic.begin_flood(self.lab, self.a, "eth0", "--flows", 5000,
                                    "--rate", RATE, "--dest", self.B4)
        for i in range(1, RELOADS + 1):
            shapes[i % len(shapes)]()
            self.reload(AGAIN)
        flood.send_signal(signal.SIGTERM)
        sent = json.loads(flood.communicate(timeout=60)[0])["packets"]
        self.stop()
        exported = self.exported()
        self.note(f"{RELOADS} reloads, {sent} packets")
        self.assertEqual(sent, self.stats()["seen"]["packets"])
        self.assertEqual(exported, self.packets("spooled"))
        self.assertEqual(exported, self.packets("a", "b"))


if __name__ == "__main__":
    lab.main()
