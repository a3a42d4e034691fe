# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""What is tested with brokers of several versions."""

import contextlib
import ipaddress
import json
import os
import re
import signal
import subprocess
import time

from lib import kafka
from lib import lab
from lib import netobs_proto
from lib import observer
from lib import pbflow
from lib import traffic
from lib.record_sinks import take_host
from lib.sinkfeed import Feed

USER, PASSWORD = "netobs", "correct-horse"


def address_bytes(text):
    """16 bytes, also of IPv4."""
    address = ipaddress.ip_address(text)
    return address.packed if address.version == 6 else \
        bytes(10) + b"\xff\xff" + address.packed


def fnv1a(key):
    value = 0x811c9dc5
    for byte in key:
        value = (value ^ byte) * 0x01000193 & 0xffffffff
    return value


def netobserv_partition(key, count):
    """As kafka-go's Hash balancer: a signed remainder, then its absolute value."""
    value = fnv1a(key)
    return (value if value < 1 << 31 else (1 << 32) - value) % count


def murmur2(key):
    mask, m = 0xffffffff, 0x5bd1e995
    value = 0x9747b28c ^ len(key)
    whole = len(key) & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(key[at:at + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        value = value * m & mask ^ k
    if len(key) > whole:
        value = (value ^ int.from_bytes(key[whole:], "little")) * m & mask
    value = (value ^ value >> 13) * m & mask
    return value ^ value >> 15


def java_partition(key, count):
    return (murmur2(key) & 0x7fffffff) % count


class KafkaTests:
    """Needs `version`, and to be mixed with lab.LabTest."""

    @classmethod
    def setUpClass(cls):
        cls.where = lab.Lab()
        cls.addClassCleanup(cls.where.close)
        cls.ns, cls.peer = cls.where.ns("k", ipv6=True), \
            cls.where.ns("p", ipv6=True)
        cls.where.wire(cls.ns, "eth0", ["192.0.2.1/24", "2001:db8::1/64"],
                       cls.peer, "eth0", ["192.0.2.2/24", "2001:db8::2/64"])
        cls.broker = kafka.Broker(
            cls.where, cls.version, ns=cls.ns, users={USER: PASSWORD},
            settings={"listener.name.ssl.ssl.client.auth": "required"})
        cls.broker.start()

    def topic(self, tag=""):
        return f"{self._testMethodName}{tag}"

    def spec(self, topic, listener="PLAINTEXT", **options):
        text = "&".join(f"{name}={value}" for name, value in options.items())
        return f"kafka://{self.broker.address(listener)}/{topic}" + \
            (f"?{text}" if text else "")

    def password_file(self, password=PASSWORD):
        path = self.lab.path(f"password-{password}")
        lab.write(path, password + "\n")
        return path

    def feed(self, spec, *arguments):
        return Feed(self.lab, spec, *arguments, ns=self.ns)

    def check_fed(self, result, topic):
        """Each record that was written is there, and there once."""
        values = [message.value for message in self.broker.messages(topic)]
        self.assertEqual(result["written"], len(set(values)), "lost")
        self.assertEqual(len(set(values)), len(values), "duplicates")
        self.assertEqual(result["written"],
                         result["stats"]["delivered"]["records"])

    # ---- What is in a message

    def observe(self, topics):
        """{name: messages} and the lines of a file, of the same traffic."""
        path = self.lab.path("lines")
        outputs = [f"json:{path}"] + [self.spec(self.topic(name), **options)
                                      for name, options in topics.items()]
        process = self.lab.spawn(
            observer.netobsctl(), "flows", "-i", "eth0", "--interval", "0.5",
            *(part for output in outputs for part in ("-o", output)),
            "--stats", ns=self.ns, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        lab.wait_for(lambda: observer.bpf.attached(self.ns, "eth0") == 2,
                     "netobsctl")
        traffic.ping(self.ns, "192.0.2.2", 3)
        traffic.ping(self.ns, "2001:db8::2", 3)
        traffic.tcp(self.ns, "192.0.2.1", self.peer, "192.0.2.2", 1 << 16)
        for port in range(5001, 5010):
            for client, source, server, dest in (
                    (self.ns, "192.0.2.1", self.peer, "192.0.2.2"),
                    (self.peer, "192.0.2.2", self.ns, "192.0.2.1")):
                traffic.udp(client, source, server, dest, [100] * 3,
                            port=port, sport=port)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        observer.check_sanitizer(errors)
        self.assertEqual(0, process.returncode, errors)
        lines = list(take_host(lab.json_lines(path)))
        return {name: self.broker.messages(self.topic(name))
                for name in topics}, lines

    def test_messages_are_the_records_of_a_file(self):
        found, lines = self.observe({
            "-json": {"encoding": "json"},
            "-protobuf": {"agent_ip": "192.0.2.1"},
            "-flow": {"encoding": "json", "key": "flow"},
            "-host": {"encoding": "json", "key": "host"},
            "-none": {"encoding": "json", "key": "none"}})
        self.assertGreater(len(lines), 20)
        for name in ("-json", "-flow", "-host", "-none"):
            values = list(take_host(json.loads(message.value) for message in found[name]))
            self.assertEqual(self.in_order(lines), self.in_order(values))
        records = [pbflow.decode(message.value)
                   for message in found["-protobuf"]]
        self.compare(lines, records)
        self.check_netobserv_keys(found["-json"])
        self.check_flow_keys(found["-flow"])
        host = os.uname().nodename.encode()
        self.assertEqual({host}, {m.key for m in found["-host"]})
        self.assertEqual({java_partition(host, 3)},
                         {m.partition for m in found["-host"]})
        self.assertEqual({None}, {m.key for m in found["-none"]})
        self.note(f"{len(lines)} records in 5 topics")

    def watch(self, verb, *arguments):
        """What the verb reports of connections: lines of a file, and messages."""
        path = self.lab.path(verb)
        spec = self.spec(self.topic(f"-{verb}"), agent_ip=netobs_proto.AGENT)
        process = self.lab.spawn(
            observer.netobsctl(), verb, *arguments, "-v", "-o", f"json:{path}", "-o", spec,
            ns=self.ns, stderr=subprocess.PIPE, text=True)
        errors = process.stderr.readline()
        while not re.search("following|observing 1", errors.rsplit("\n", 2)[-2]):
            line = process.stderr.readline()
            self.assertTrue(line, errors)
            errors += line
        for port in range(5001, 5005):
            traffic.tcp(self.ns, "192.0.2.1", self.peer, "192.0.2.2", 1 << 16, answer=1000,
                        port=port)
        process.send_signal(signal.SIGINT)
        errors += process.communicate(timeout=60)[1]
        observer.check_sanitizer(errors)
        self.assertEqual(0, process.returncode, errors)
        schema = netobs_proto.load(self.lab)
        lines = list(take_host(lab.json_lines(path)))
        return lines, [netobs_proto.decoded(schema.Record.FromString(message.value))
                       for message in self.broker.messages(self.topic(f"-{verb}"))]

    def test_sessions_and_alerts_are_the_records_of_a_file(self):
        for verb, *arguments in (
                ("sessions",),
                ("alerts", "-i", "eth0", "--rule", "each=rtt > 0ns hold 0s limit none")):
            lines, found = self.watch(verb, *arguments)
            self.assertGreater(len(lines), 1, verb)
            self.assertEqual(netobs_proto.lines(lines), netobs_proto.lines(found))
            self.assertEqual({verb.rstrip("s")}, {one["type"] for one in found})

    @staticmethod
    def in_order(records):
        return sorted(json.dumps(record, sort_keys=True) for record in records)

    def compare(self, lines, records):
        """What protobuf has is what JSON has."""
        self.assertEqual(len(lines), len(records))
        self.assertEqual({"192.0.2.1"}, {r["AgentIP"] for r in records})
        for record in records:
            del record["AgentIP"]
            self.assertEqual(0, record.pop("Sampling"))
        names = list(records[0])
        nothing = {"SrcMac": "00:00:00:00:00:00",
                   "DstMac": "00:00:00:00:00:00"}
        same = [{name: line.get(name, nothing.get(name, 0)) for name in names}
                for line in lines]
        self.assertEqual(self.in_order(same), self.in_order(records))

    def check_netobserv_keys(self, messages):
        for message in messages:
            record = json.loads(message.value)
            ends = sorted(map(address_bytes,
                              (record["SrcAddr"], record["DstAddr"])))
            self.assertEqual(b"".join(ends), message.key)
            self.assertEqual(netobserv_partition(message.key, 3),
                             message.partition)

    def check_flow_keys(self, messages):
        """Both directions have one key, and other flows have others."""
        keys = {}
        for message in messages:
            record = json.loads(message.value)
            ends = sorted((address_bytes(record[f"{side}Addr"]),
                           record.get(f"{side}Port", 0))
                          for side in ("Src", "Dst"))
            flow = (*ends, record["Proto"])
            self.assertEqual(keys.setdefault(flow, message.key), message.key)
            self.assertEqual(java_partition(message.key, 3),
                             message.partition)
        self.assertEqual(len(keys), len(set(keys.values())))
        self.assertGreater(len({java_partition(key, 3)
                                for key in keys.values()}), 1)

    # ---- Who may send

    def check_secure(self, listener, tag, **options):
        topic = self.topic(tag)
        feed = self.feed(self.spec(topic, listener, **options), "--records",
                         1000, "--drain", 60)
        result = feed.finish()
        self.check_fed(result, topic)
        return feed

    def test_tls(self):
        ca = self.broker.path("ca.pem")
        mutual = {"cert": self.broker.path("client.pem"),
                  "key_file": self.broker.path("client.key")}
        self.check_secure("SSL", "-mutual", tls="yes", ca=ca, **mutual)
        self.check_secure("SSL", "-unverified", tls="unverified", **mutual)

    def test_tls_of_somebody_else(self):
        """A certificate that the system's authorities know nothing of."""
        feed = self.feed(self.spec(self.topic(), "SSL", tls="yes"),
                         "--records", 10, "--drain", 5)
        result = feed.finish(code=1)
        self.assertEqual(0, result["stats"]["delivered"]["records"])
        self.assertEqual(1, len(feed.matching("certificate|[Vv]erif")),
                         feed.lines)

    def login(self, mechanism, password=PASSWORD):
        return {"sasl": mechanism, "user": USER,
                "password_file": self.password_file(password)}

    def test_plain(self):
        self.check_secure("SASL_SSL", "-tls", tls="yes",
                          ca=self.broker.path("ca.pem"), **self.login("plain"))
        feed = self.check_secure("SASL_PLAINTEXT", "-bare",
                                 **self.login("plain"))
        self.assertEqual(1, len(feed.matching("shows the password")))


class KafkaFailureTests:
    """Brokers that are away; to be mixed with KafkaTests and lab.LabTest."""

    def test_broker_that_is_away_at_first(self):
        self.broker.stop()
        with contextlib.ExitStack() as undo:
            undo.callback(self.ensure_running)
            feed = self.feed(self.spec(self.topic()), "--rate", 1000,
                             "--seconds", 3)
            feed.wait_line("trying again")
        result = feed.finish()
        self.check_fed(result, self.topic())
        # A slow broker may say afterwards that the topic is not there yet.
        self.assertEqual(1, len(feed.matching("Connection refused")),
                         feed.lines)
        self.assertEqual(1, len(feed.matching("accepts records again")),
                         feed.lines)

    def ensure_running(self):
        if self.broker.process.poll() is not None:
            self.broker.start()

    def test_broker_that_is_killed(self):
        """Again and again, while 25,000 records come in a second."""
        kills = int(os.environ.get("NETOBS_KAFKA_KILLS", "3"))
        feed = self.feed(self.spec(self.topic(), **{"spool.max_bytes": "2G"}),
                         "--rate", 25000, "--seconds", 6 * kills, "--drain",
                         300)
        start = time.monotonic()
        for count in range(kills):
            time.sleep(max(start + 6 * count + 2 - time.monotonic(), 1.5))
            self.broker.kill()
            self.broker.start()
        killing = time.monotonic() - start
        result = feed.finish()
        self.check_fed(result, self.topic())
        for reason in result["stats"]["dropped"].values():
            self.assertEqual(0, reason["records"])
        self.note(f"{kills} kills in {killing:.0f} s, {result['written']} "
                  f"records in "
                  f"{result['seconds']} s: "
                  f"{result['stats']['counters']}")
