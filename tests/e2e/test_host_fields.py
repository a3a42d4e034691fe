# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""What records in JSON say about the host: of the service, in all kinds that send JSON."""

import hashlib
import hmac
import json
import os

from lib import lab
from lib import traffic
from lib.configuration import Configured
from lib.record_sinks import Http, Lines, sink_section
from lib.service import AGAIN, ServiceTest

NETOBS = bytes.fromhex("612f6e4e06d642c8bc14afa3671d64fb")
HOSTILE = {"quotes": 'a "b" \\ c', "unicode": "gr\u00fc\u00df \u2713 \U0001f600", "tab": "a\tb",
           "percent": "100% & more?=x", "long": "x" * 300, "rack.u-1@b_2": "7"}
PACKETS = 20


def machine_id():
    try:
        return lab.read("/etc/machine-id").strip()
    except OSError:
        return None


def host_id():
    """As systemd makes it; None: this host has no machine ID."""
    try:
        machine = bytes.fromhex(machine_id() or "-")
    except ValueError:
        return None
    mac = bytearray(hmac.new(machine, NETOBS, hashlib.sha256).digest()[:16])
    mac[6] = mac[6] & 0x0f | 0x40
    mac[8] = mac[8] & 0x3f | 0x80
    return mac.hex()


class Config(Configured, lab.LabTest):
    def setUp(self):
        super().setUp()
        self.path = self.lab.path("netobs.conf")

    def test_wrong_fields_have_their_place(self):
        self.check_errors((
            ("[host]\nfield.Bytes = 1", "2:15: json: option field.Bytes: 'Bytes' is a field of flow records"),
            ("[host]\nfield.Alert = 1", "2:15: json: option field.Alert: 'Alert' is a field of alert records"),
            ("[host]\nfield.HostName = 1",
             "2:18: json: option field.HostName: 'HostName' is a field of all records"),
            ('[sink "a"]\noutput = json:/x\nlayout = ecs\nfield.@timestamp = 1',
             "4:20: json: option field.@timestamp: '@timestamp' is a field of ECS records"),
            ('[sink "a"]\noutput = json:/x\nlayout = ecs\nfield.source = 1',
             "4:16: json: option field.source: 'source.ip' is a field of ECS records"),
            (f"[host]\nfield.a = {'x' * 2048}", "2:1: json: fields take more than 2048 bytes"),
            ("[host]\nsite = b", "2:1: there is no key 'site': keys of [host] are "
             "container_names, container_root and field.NAME"),
            ('[host "x"]\nfield.a = b', "1:1: [host] has no name"),
            ('[sink "a"]\noutput = json:/x\nfield.Bytes = 1', "3:15: json: option field.Bytes: "),
            ("[hots]\nfield.a = b", "1:1: there is no section 'hots'; did you mean 'host'?"),
        ))
        lab.write(self.path, '[host]\nfield.Bytes = 1\n[sink "j"]\noutput = json:/x\n')
        self.assertEqual(1, self.config("check", self.path)[2].count("field.Bytes"))
        for many in 64, 65:
            lab.write(self.path, "[host]\n" + "".join(f"field.f{i} = {i}\n" for i in range(many)) +
                                 '[sink "n"]\noutput = json:/x\n')
            self.assertEqual(int(many > 64), self.config("check", self.path)[0])

    def test_the_last_of_several_counts_and_is_shown(self):
        lab.write(self.path, '[host]\nfield.a = 1\nfield.a = 2\nfield.b = 3\n[sink "n"]\noutput = null\n')
        code, out, errors = self.config("show", "-o", "json", self.path)
        self.assertEqual((0, ""), (code, errors))
        self.assertEqual({"field.a": "2", "field.b": "3"},
                         {entry["key"]: entry["value"] for entry in json.loads(out)
                          if entry["section"] == "host" and entry["key"].startswith("field.")})


class Service(ServiceTest):
    def configure(self, fields, *sinks):
        self.write("[host]", *(f"field.{name} = {value}" for name, value in fields.items()),
                   *sinks)

    def send(self):
        traffic.udp(self.a, self.A4, self.b, self.B4, [100] * PACKETS)

    def records(self, name):
        with open(self.lab.path(name), encoding="utf-8") as file:
            return [json.loads(line, object_pairs_hook=self.without_twins) for line in file]

    def without_twins(self, pairs):
        self.assertEqual(len(pairs), len(dict(pairs)), pairs)
        return dict(pairs)

    def check_host(self, records, fields):
        for record in records:
            self.assertEqual(os.uname().nodename, record["HostName"])
            self.assertEqual(host_id(), record.get("HostId"))
            self.assertNotIn(machine_id() or "no machine ID", json.dumps(record))
            self.assertEqual(fields, {name: value for name, value in record.items()
                                      if name in HOSTILE or name.startswith("own")})

    def test_each_kind_has_them(self):
        http = Http(self.a)
        self.addCleanup(http.stop)
        lines = Lines(self.a)
        self.configure(
            HOSTILE, *sink_section("own", f"json:{self.lab.path('own')}", "field.own = 1",
                                   "field.tab =", "field.quotes = mine"),
            *sink_section("none", f"json:{self.lab.path('none')}", "host = no"),
            *sink_section("tcp", f"json:tcp://127.0.0.1:{lines.port}"),
            *sink_section("http", f"http://127.0.0.1:{http.port}/"),
            *sink_section("ipfix", f"ipfix:file:{self.lab.path('ipfix')}"))
        self.start()
        self.send()
        lab.wait_for(lambda: os.path.getsize(self.lab.path("a")) and lines.found and http.lines,
                     "records")
        self.stop()
        self.check_host(self.records("a"), HOSTILE)
        own = HOSTILE | {"own": "1", "quotes": "mine"}
        del own["tab"]
        self.check_host(self.records("own"), own)
        for record in self.records("none"):
            self.assertNotIn("HostId", record)
            self.assertEqual(HOSTILE["long"], record["long"])
        for found in lines.found, http.lines:
            self.assertEqual({HOSTILE["quotes"]}, {record["quotes"] for record in found})
        for name in "a", "own", "none":
            self.assertEqual(PACKETS, self.packets(name))

    def test_a_reload_changes_them(self):
        sent = 0
        for value in "one", "two", "", "three":
            self.configure({"own": value})
            if sent:
                self.reload(AGAIN)
            else:
                self.start()
            self.send()
            sent += PACKETS
            lab.wait_for(lambda: os.path.exists(self.lab.path("a")) and
                         self.packets("a") == sent, "the records")
        self.stop()
        values = [record.get("own") for record in self.records("a")]
        self.assertEqual(["one", "two", None, "three"],
                         [value for i, value in enumerate(values) if not i or values[i - 1] != value])


if __name__ == "__main__":
    lab.main()
