# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Label: ecosystem
"""
Whom the verdicts of a fleet name most, in ClickHouse. Verdicts of 200 victims are random; the truth is what their
model blames. NETOBS_TEST_SEED repeats a run.
"""

import collections
import json
import os
import pathlib
import re

from lib import clickhouse
from lib import dashboards
from lib import lab

PACKAGING = pathlib.Path(os.environ["NETOBS_SOURCE"]) / "packaging"
VICTIMS, HOSTS = 200, 60
SINCE, UNTIL = 1_700_000_000_000, 1_700_000_600_000
CAUSES = {"client process": ("thinks", "stopped"), "client host": ("cpu", "qdisc", "drop"),
          "network": ("loss", "queue", "delay"), "server host": ("cpu", "conntrack", "qdisc"),
          "server process": ("thinks", "accept queue"), "beyond": ("loss", "delay"), "none": ("none",)}
Vote = collections.namedtuple("Vote", "victims verdicts certain likely")


class Fleet:
    """Hosts, their clients and services, and what verdicts say of them."""

    def __init__(self, random):
        self.random = random
        self.lines, self.blamed = [], 0
        self.votes = collections.defaultdict(lambda: [set(), 0, collections.Counter()])
        self.names = [f"host{number}" for number in range(HOSTS)]
        self.address = {name: f"10.0.{number}.1" if number % 3 else f"2001:db8::{number + 1:x}"
                        for number, name in enumerate(self.names)}

    def service(self, host, port):
        address = self.address[host]
        return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"

    def suspects(self, verdict, client, server, process):
        """@return (kind, name) of each; they share the blame within a kind"""
        port = f" {verdict['Interface']}" if "Interface" in verdict else ""
        links = [("link", f"{client}{port}"), ("link", f"{server}{port}")]
        own = {"client host": client, "server host": server}.get(verdict["Place"])
        if own:
            return [[("host", own)]] + ([[("link", f"{own}{port}")]] if port else [])
        return {"client process": [[("client", f"{process} on {client}")]], "network": [links],
                "server process": [[("service", self.service(server, verdict["DstPort"]))]],
                "beyond": [[("host", self.address[server]), ("link", self.address[server])]],
                "none": []}[verdict["Place"]]

    def add(self, client, server, port, place, sure=("certain", "likely", "not sure"), at=None):
        """A verdict on what @client has of a service of @server; @at: of its window's begin, ms"""
        pick, process = self.random.choice, self.random.choice(("curl", "nginx"))
        at = self.random.randint(SINCE, UNTIL) if at is None else at
        verdict = {
            "type": "verdict", "TimeMs": at, "TimeNs": at * 1_000_000 + self.random.randrange(1_000_000),
            "TotalNs": 10_000_000_000, "SrcAddr": self.address[client], "DstAddr": self.address[server],
            "DstPort": port, "Proto": 6, "Place": place, "Cause": pick(CAUSES[place]), "Certainty": pick(sure),
            "Missing": ["clock"], "Connections": 1, "Turns": self.random.randrange(1000),
            "BlamedNs": self.random.randrange(1_000_000, 5_000_000_000), "SrcNodeName": client, "SrcProcess": process,
            "Shares": [{"Amount": 5, "Proto": 17, "SrcAddr": "10.0.0.1", "Command": "iperf3"}, {"Amount": 3}],
            "Parts": [{"Place": place, "Cause": "cpu", "NowNs": 7}], "HostName": client}
        if place != "beyond":
            verdict["DstNodeName"] = server
        if place.endswith("host") or self.random.random() < .3:
            verdict["Interface"] = "eth0"
        line = json.dumps(verdict)
        self.lines += [line] * self.random.choice((1, 1, 1, 2))
        if SINCE <= at <= UNTIL and verdict["Certainty"] != "not sure" and place != "none":
            self.count(verdict, self.suspects(verdict, client, server, process), (client, server, port))

    def count(self, verdict, kinds, victim):
        self.blamed += verdict["BlamedNs"]
        for names in kinds:
            for key in names:
                victims, verdicts, ns = self.votes[key]
                victims.add(victim)
                self.votes[key][1] = verdicts + 1
                ns[verdict["Certainty"]] += verdict["BlamedNs"] // len(names)

    def scatter(self, number):
        """Verdicts that have nothing in common."""
        for _ in range(number):
            self.add(*self.random.sample(self.names, 2), self.random.randrange(1, 60_000),
                     self.random.choice(list(CAUSES)))

    def truth(self):
        return {key: Vote(len(victims), verdicts, ns["certain"], ns["likely"])
                for key, (victims, verdicts, ns) in self.votes.items()}


class Votes(lab.LabTest):
    def ask(self, fleet, *queries):
        """@return rows of the last query"""
        path = self.lab.path("verdicts")
        fleet.random.shuffle(fleet.lines)
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in fleet.lines)
        text = (PACKAGING / "clickhouse/netobs-verdicts.sql").read_text(encoding="utf-8")
        return clickhouse.query(self.lab.path("clickhouse"), *clickhouse.statements(text),
                                "TRUNCATE TABLE netobs_verdicts", "SET input_format_skip_unknown_fields = 1",
                                f"INSERT INTO netobs_verdicts FROM INFILE '{path}' FORMAT JSONEachRow", *queries)

    def check(self, fleet):
        """@return the votes, those with most blame first"""
        rows = self.ask(fleet, f"SELECT * FROM netobs_votes(since = {SINCE}, until = {UNTIL})")
        found = {(row["Kind"], row["Name"]): Vote(*(int(row[name]) for name in (
            "Victims", "Verdicts", "CertainNs", "LikelyNs"))) for row in rows}
        self.assertEqual(fleet.truth(), found)
        self.assertEqual(len(rows), len(found))
        for row in rows:
            ns = int(row["CertainNs"]) + int(row["LikelyNs"])
            self.assertAlmostEqual(ns / fleet.blamed, row["Share"])
        totals = [vote.certain + vote.likely for vote in found.values()]
        self.assertEqual(sorted(totals, reverse=True), totals)
        return rows

    def make(self, kind):
        """@return a fleet in which three of four victims share a suspect, and it"""
        fleet = Fleet(self.random)
        shared, port = self.random.choice(fleet.names), self.random.randrange(1, 60_000)
        others = [name for name in fleet.names if name != shared]
        for number in range(VICTIMS * 3 // 4):
            other, is_client = self.random.choice(others), self.random.random() < .5
            if kind == "service":
                fleet.add(other, shared, port, "server process", ("certain", "likely"))
                continue
            ends = (shared, other) if is_client else (other, shared)
            place = f"{'client' if is_client else 'server'} host" if kind == "host" else "network"
            fleet.add(*ends, number + 1, place, ("certain", "likely"))
        fleet.scatter(VICTIMS - VICTIMS * 3 // 4)
        for at in SINCE - 1, UNTIL + 1:
            fleet.add(shared, others[0], 1, "client host", at=at)
        return fleet, fleet.service(shared, port) if kind == "service" else shared

    def test_a_shared_host_link_or_service_is_named_most(self):
        for kind in "host", "link", "service":
            fleet, name = self.make(kind)
            with self.subTest(kind=kind, seed=self.seed):
                rows = [row for row in self.check(fleet) if row["Kind"] == kind]
                own = [row for row in rows if row["Name"].split()[0] == name]
                self.assertEqual(rows[0], own[0])
                self.assertGreater(int(own[0]["CertainNs"]), 0)
                self.assertGreater(int(own[0]["LikelyNs"]), 0)
                if kind != "link":
                    self.assertGreaterEqual(int(own[0]["Victims"]), VICTIMS // 5, own)

    def test_nobody_is_when_nothing_is_shared(self):
        fleet = Fleet(self.random)
        fleet.scatter(VICTIMS)
        for row in self.check(fleet):
            self.assertLess(row["Share"], .25, f"seed {self.seed}: {row}")

    def alert(self, fleet):
        """The names for which the example of an alert fires, at the time of the model."""
        text = (PACKAGING / "grafana/netobs-votes-alert.yaml").read_text(encoding="utf-8")
        query = re.search(r"rawSql: >-\n((?: {16}.*\n)+)", text)[1]
        query, n = re.subn(r"now64\(3\)", f"fromUnixTimestamp64Milli({UNTIL})", query)
        self.assertEqual(n, 2)
        threshold = float(re.search(r"params: \[([\d.]+)\]", text)[1])
        return [row["Name"] for row in self.ask(fleet, query) if row["Share"] > threshold]

    def test_the_alert_names_what_is_shared(self):
        fleet, name = self.make("service")
        self.assertEqual(self.alert(fleet), [name], f"seed {self.seed}")

    def test_the_alert_is_silent_when_nothing_is_shared(self):
        fleet = Fleet(self.random)
        fleet.scatter(VICTIMS)
        self.assertEqual(self.alert(fleet), [], f"seed {self.seed}")

    def test_the_dashboard_asks(self):
        queries = [text for text in dashboards.queries("netobs-traffic") if "netobs_v" in text]
        self.assertEqual(len(queries), 2)
        fleet, name = self.make("host")
        moved = [query.replace("now64(3)", f"fromUnixTimestamp64Milli({UNTIL})") for query in queries]
        votes = self.ask(fleet, moved[0])
        self.assertTrue(any(name in row.values() for row in votes), votes)
        self.assertTrue(clickhouse.query(self.lab.path("clickhouse"), moved[1]))

    def test_turns_and_queues_have_what_is_absent(self):
        turn = {"type": "turn", "TimeMs": 5, "Bytes": 600, "Sends": True, "SrcAddr": "10.0.0.2", "DstAddr": "10.0.0.3",
                "SrcPort": 7, "DstPort": 8, "NetnsInode": 9, "UplinkIfIndex": 2, "WireDstPort": 0, "SentBytes": 1200,
                "PartsNs": [0, 5], "Pid": 3}
        queue = {"type": "queue", "TimeMs": 5, "Kind": "qdisc", "Shares": [{"Amount": 5, "SrcAddr": "10.0.0.2"}]}
        inserts = [f"INSERT INTO {table} FORMAT JSONEachRow {json.dumps(row)}"
                   for table, row in (("netobs_turns", turn), ("netobs_queues", queue))]
        text = (PACKAGING / "clickhouse/netobs-verdicts.sql").read_text(encoding="utf-8")
        place, statements = self.lab.path("clickhouse"), clickhouse.statements(text)
        found, = clickhouse.query(place, *statements, *inserts, "SELECT * FROM netobs_turns")
        self.assertEqual(
            {"OneOf": 1, "UplinkNetnsInode": 9, "WireSrcAddr": "::ffff:10.0.0.2", "WireDstAddr": "::ffff:10.0.0.3",
             "WireSrcPort": 7, "WireDstPort": 0, "LargestOut": 600, "LargestIn": 0, "Tid": 3, "ReaderTid": 0},
            {name: found[name] for name in ("OneOf", "UplinkNetnsInode", "WireSrcAddr", "WireDstAddr", "WireSrcPort",
                                            "WireDstPort", "LargestOut", "LargestIn", "Tid", "ReaderTid")})
        self.assertEqual((1200, 0), tuple(int(found[name]) for name in ("OutBytes", "SegmentBytes")))
        found, = clickhouse.query(place, "SELECT Shares.Amount[1] AS amount, Kind FROM netobs_queues")
        self.assertEqual((5, "qdisc"), (int(found["amount"]), found["Kind"]))


if __name__ == "__main__":
    lab.main()
