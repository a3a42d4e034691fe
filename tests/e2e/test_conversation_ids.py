# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
Sessions and alerts have the id of their conversation that flow records have, at both ends of each kind
of NAT; sessions have none as long as the namespace of their end is not known. Rules and traffic are
random.
"""

import collections
import time

from lib import lab
from lib import nat
from lib import traffic
from lib.service import end_service, launch

CONNECTIONS = 300
TCP = 6
CONFIGURATION = """
[capture]
nat = {nat}
rtt = yes
{interfaces}
[flows]
interval = {interval}
[sessions]
enabled = yes
[alert "all"]
rule = rtt > 1ns limit 1000000/s
[sink "a"]
output = json:{records}
records = flow,session,alert
"""


class ConversationIds(nat.RandomNatTest):
    def setUp(self):
        super().setUp()
        self.records = self.lab.path("records")

    def make_services(self, count):
        services = super().make_services(count)
        return [one for one in services if one.proto == "tcp"]

    def observe_all(self, **options):
        self.observe(f"netns:{self.client.name}/eth0", f"netns:{self.server.name}/eth0", "rc", "rs",
                     "lo", **options)

    def observe(self, *interfaces, with_nat="yes", interval="1s"):
        self.service = launch(self, self.router, [CONFIGURATION.format(
            nat=with_nat, interval=interval, records=self.records,
            interfaces="\n".join(f"interface = {one}" for one in interfaces))])

    def wait_for_ends(self, services):
        """Until the newest sessions of both ends have ids. @return how many had none"""
        sessions = []

        def is_known():
            self.random.choice(services).ask(True)
            records = lab.json_lines(self.records, is_whole=False)
            sessions[:] = [one for one in records if one.get("type") == "session" and
                           one["NetnsInode"] in self.spaces()]
            newest = [[one for one in sessions if one["NetnsInode"] == ns.inode][-5:]
                      for ns in (self.client, self.server)]
            return all(len(some) == 5 and all("ConversationId" in one for one in some)
                       for some in newest)

        lab.wait_for(is_known, "sessions with ids of both ends")
        return sum(1 for one in sessions if "ConversationId" not in one)

    def spaces(self):
        return [ns.inode for ns in (self.client, self.router, self.server)]

    def stop(self):
        """{type: records of the namespaces of this test}"""
        lab.await_closed(self.client, self.router, self.server)
        time.sleep(0.5) # sessions end after the exchange
        end_service(self, self.service)
        spaces = self.spaces()
        found = collections.defaultdict(list)
        for record in lab.json_lines(self.records):
            kind = record.get("type", "flow")
            if record["Proto"] == TCP and (kind != "session" or record["NetnsInode"] in spaces):
                found[kind].append(record)
        return found

    @staticmethod
    def ids_of_flows(flows):
        """{tuple, in either direction: ids}, of all tuples that records name"""
        ids = collections.defaultdict(set)
        for record in flows:
            for face in (nat.tuple_of(record), nat.other_of(record, "Orig"),
                         nat.other_of(record, "Xlat")):
                if face:
                    ids[face].add(record["ConversationId"])
                    ids[face.back()].add(record["ConversationId"])
        return ids

    def check_ids(self, records, ids):
        """@return (how many have an id, how many have none)"""
        known = unknown = 0
        for record in records:
            face = nat.tuple_of(record)
            if face not in ids:
                continue # of a connection that flows know nothing of, such as one within a namespace
            if "ConversationId" not in record:
                unknown += 1
                continue
            self.assertEqual({record["ConversationId"]}, ids[face], record)
            known += 1
        return known, unknown

    def check(self, known):
        """Of a list of all interfaces, or not of all. @return (known sessions, those without)"""
        found = self.stop()
        ids = self.ids_of_flows(found["flow"])
        self.assertEqual({}, {face: some for face, some in ids.items() if len(some) > 1})
        for entry in known.entries:
            if entry.original.proto == TCP:
                self.assertEqual(1, len({one for face in entry.faces() for one in ids[face]}), entry)
        for record in found["flow"]:
            if nat.tuple_of(record) == nat.tuple_of(record).back(): # its directions are not told apart
                self.assertFalse({"TimeFlowRttNs", "Retransmits"} & set(record), record)
        alerts, none = self.check_ids(found["alert"], ids)
        self.assertLess(0, alerts)
        self.assertEqual(0, none, "alerts without an id")
        translated = sum(1 for one in found["session"] if nat.tuple_of(one) in
                         {face for face, _ in known.translated()})
        self.assertLess(0, translated)
        sessions = self.check_ids(found["session"], ids)
        self.note(f"{sessions[0]} sessions, {translated} of them with translated addresses, and "
                  f"{alerts} alerts have the ids of {len(set.union(*ids.values()))} conversations; "
                  f"{sessions[1]} sessions have none")
        return sessions

    def test_ends_in_namespaces_that_are_not_observed(self):
        """Where a namespace is, the context finds out: until then, sessions have the right id or none."""
        services = self.make_services(40)
        self.observe("rc", "rs", "lo")
        self.talk(services, 10)
        before = self.wait_for_ends(services)
        self.talk(services, lab.sized(CONNECTIONS))
        known, unknown = self.check(nat.connections(self.router))
        self.note(f"{before} of those without before the ends were known")
        self.assertLess(lab.sized(CONNECTIONS), known)
        self.assertLess(10 * (unknown - before), known)

    def test_drains_that_are_long(self):
        """
        Of both ends and the way. Flows of a flood, which no router forwards, are read all the time: alerts and
        sessions wait.
        """
        services = self.make_services(40)
        self.observe_all(interval="100ms")
        flood = traffic.begin_flood(self.lab, self.client, "eth0", "--flows", lab.sized(20000),
                                    "--rate", 20000)
        self.talk(services, lab.sized(CONNECTIONS))
        flood.terminate()
        flood.communicate()
        known, unknown = self.check(nat.connections(self.router))
        self.assertEqual(0, unknown, "sessions without an id")
        self.assertLess(2 * lab.sized(CONNECTIONS), known)

    def test_without_nat_there_are_none(self):
        services = self.make_services(20)
        self.observe("rc", "rs", with_nat="no")
        self.talk(services, 10)
        found = self.stop()
        for kind in "flow", "session", "alert":
            self.assertLess(0, len(found[kind]), kind)
            self.assertEqual([], [one for one in found[kind] if "ConversationId" in one])


if __name__ == "__main__":
    lab.main()
