# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""The control socket of a service: its answers, who may ask, and that no client disturbs it."""

import grp
import json
import os
import socket
import threading

from lib import lab
from lib import metrics
from lib import observer
from lib import traffic
from lib.attackers import Attacked
from lib.service import ServiceTest

FAILED, USAGE = 1, 2
NOBODY = 65534


class ControlTest(ServiceTest):
    def ask(self, verb, *arguments, code=0, **options):
        return observer.run(verb, "-s", self.control, *arguments, code=code, **options)

    def connect(self):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(lab.PATIENCE_S)
        client.connect(self.control)
        return client

    def request(self, line):
        """The answer to @line, bytes."""
        with self.connect() as client:
            try:
                client.sendall(line)
                client.shutdown(socket.SHUT_WR)
            except OSError:
                pass # it was answered before
            return self.read_answer(client)

    @staticmethod
    def read_answer(client):
        text = b""
        while not text.endswith(b"\n"):
            more = client.recv(1 << 16, socket.MSG_PEEK)
            if not more:
                break
            text += client.recv(more.find(b"\n") + 1 or len(more)) # not what follows it
        return json.loads(text) if text else None

    def send(self, count, size=100):
        traffic.udp(self.a, self.A4, self.b, self.B4, [size] * count)

    def await_packets(self, count):
        return lab.wait_for(lambda: self.find_exported(count), f"{count} packets")

    def find_exported(self, count):
        status = self.status()
        return status if status["packets"]["exported"]["packets"] >= count else None


class Control(ControlTest):
    def test_status_before_the_first_interval(self):
        self.write("[flows]", "interval = 1h")
        self.start()
        self.send(10)
        status, text = self.status(), self.ask("status").stdout
        self.assertEqual((status["interval_ms"], status["drains"]["total"]), (3600000, 0))
        self.assertIn("at the end of each interval of 1h00m; the first one has not ended yet", text)
        self.assertNotIn("accounted for", text)
        self.stop()

    def test_status(self):
        some = ['[filter "udp"]', "match = udp port 5002", "action = accept"]
        self.write(*some, more="default_action = reject")
        self.start()
        self.send(10)
        status = self.await_packets(10)
        self.assertEqual(self.pid, status["pid"])
        self.assertEqual([self.path], status["configuration"]["files"])
        self.assertEqual({"packets": 0, "bytes": 0}, status["difference"])
        sent = {"packets": 10, "bytes": 10 * 128}
        self.assertEqual([("eth0", {"seen": sent, "flows": sent})],
                         [(one["name"], one["egress"]) for one in status["interfaces"]])
        self.assertEqual([("accept", "udp port 5002", 10), ("reject", "default", 0)],
                         [(rule["action"], rule["filter"], rule["packets"])
                          for rule in status["rules"][:2]])
        sink, = status["sinks"]
        self.assertEqual(("a", "connected", 10), (sink["name"], sink["state"],
                                                  sink["delivered"]["packets"]))
        self.assertGreater(status["drains"]["total"], 0)
        self.assertGreater(status["drains"]["max_us"], 0)
        self.assertGreater(status["tables"]["kernel_memory"], 0)
        traffic.ping(self.a, self.B4, 5)
        lab.wait_for(lambda: self.status()["interfaces"][0]["egress"]["seen"]["packets"] == 15,
                     "what the default rejects")
        eth0, = self.status()["interfaces"]
        self.assertEqual([15, 10, 5], [eth0["egress"][name]["packets"]
                                       for name in ("seen", "flows", "filtered")])
        self.assertEqual([5, 5], [eth0["ingress"][name]["packets"]
                                  for name in ("seen", "filtered")])
        text = self.ask("status").stdout
        for words in (f"process {self.pid}", "    filtered", "All packets are accounted for.", "eth0 in",
                      "a: json:", "connected", "accept"):
            self.assertIn(words, text)
        self.stop()
        self.assertFalse(os.path.exists(self.control))

    def test_connections_that_have_a_place(self):
        self.write(more="rtt = yes\n[limits]\nmax_connections = 1024")
        self.start()
        for port in range(5001, 5008):
            traffic.tcp(self.a, self.A4, self.b, self.B4, 1000, port=port)
        table = self.status()["connections"]
        self.assertEqual((7, 1024, 7, 0, 0), tuple(table[name] for name in (
            "used", "max", "created", "refused_packets", "contended_packets")))
        self.assertEqual({"half_open": 0, "closed": 0, "idle": 0}, table["evicted"])
        self.assertEqual(1024 * (100 + 896 + 384), table["memory"]) # there may be alerts
        self.assertIn("Connections: 7 of 1024 places used", self.ask("status").stdout)
        self.stop()

    def test_metrics(self):
        """The clients that are served, possibly none."""
        self.write()
        self.start()
        self.send(10)
        self.await_packets(10)
        samples = metrics.Samples(self.ask("metrics").stdout)
        samples.check_identity()
        self.assertEqual(10, samples.value("netobs_seen_packets_total"))
        members = json.loads(self.ask("metrics", "-o", "json").stdout)
        self.assertEqual(10, members["netobs_seen_packets_total"])
        self.assertEqual(len(samples.series), len(members))
        self.stop()
        where = self.lab.path("metrics")
        self.write("[metrics]", f"listen = unix:{where}")
        self.start()
        served = metrics.Samples(metrics.get(where)[1])
        self.assertEqual(served.series.keys(),
                         metrics.Samples(self.ask("metrics").stdout).series.keys())
        self.stop()

    def test_metrics_of_a_filter_with_control_characters(self):
        """Labels have them as text; expressions may have any white space."""
        self.write('[filter "tab"]', "match = udp\tport 5002", "action = accept",
                   more="default_action = reject")
        self.start()
        samples = metrics.Samples(self.ask("metrics").stdout)
        members = json.loads(self.ask("metrics", "-o", "json").stdout)
        self.assertEqual(len(samples.series), len(members))
        self.assertTrue([name for name in members
                         if name.startswith("netobs_rule_packets_total{")
                         and r'filter="udp\\x09port 5002"' in name], members)
        self.stop()

    def test_outage_of_a_sink(self):
        where = self.lab.path("metrics")
        self.write('[sink "far"]', "output = json:tcp://127.0.0.1:9",
                   "[metrics]", f"listen = unix:{where}")
        self.start()
        self.send(1)
        def find():
            return [sink for sink in self.status()["sinks"] if sink["state"] == "outage"]
        sink, = lab.wait_for(find, "an outage")
        self.assertEqual("far", sink["name"])
        self.assertGreater(sink["outage_since_ms"], 1600000000000)
        self.assertIn("far: json:tcp://127.0.0.1:9: outage for", self.ask("status").stdout)
        self.assertEqual([0, 1], sorted(metrics.scrape(where).all_of(
            "netobs_sink_connected").values()))
        self.stop(code=FAILED) # its records are lost

    def test_reload_reports_the_outcome(self):
        self.write()
        self.start()
        self.assertEqual("", self.ask("reload").stderr)
        self.write(sinks=("a", "b"), more="direction = ingress")
        self.assertIn("warning: [capture] direction: the new value takes effect after a "
                      "restart", self.ask("reload").stderr)
        self.write("[flows]", "interval = 1ms")
        done = self.ask("reload", code=FAILED)
        self.assertIn(f"{self.path}:9:12: interval: it must be at least 10 ms", done.stderr)
        self.assertIn("netobsctl reload: the new configuration is not in use", done.stderr)
        self.assertEqual(1, done.stderr.count("not in use"), done.stderr)
        configuration = self.status()["configuration"]
        self.assertEqual((3, 1, False), (configuration["reloads"],
                                         configuration["failed_reloads"],
                                         configuration["last_reload_ok"]))
        self.send(5)
        self.await_packets(5)
        self.stop()
        self.assertEqual(5, self.packets("b"))

    def test_files_are_opened_anew(self):
        self.write('[sink "ipfix"]', f"output = ipfix:file:{self.lab.path('ipfix')}")
        self.start()
        for name in "a", "ipfix":
            os.rename(self.lab.path(name), self.lab.path(f"{name}.1"))
        self.ask("reopen")
        sizes = {name: os.path.getsize(self.lab.path(f"{name}.1")) for name in ("a", "ipfix")}
        self.send(5)
        self.await_packets(5)
        self.stop()
        self.assertEqual(5, self.packets("a"))
        for name, size in sizes.items():
            self.assertEqual(size, os.path.getsize(self.lab.path(f"{name}.1")))
        self.assertGreater(os.path.getsize(self.lab.path("ipfix")), 0)

    def test_files_that_cannot_be_opened(self):
        self.write()
        self.start()
        os.rename(self.lab.path("a"), self.lab.path("a.1"))
        os.mkdir(self.lab.path("a"))
        done = self.ask("reopen", code=FAILED)
        self.assertIn("cannot write to", done.stderr)
        self.assertIn("not all files could be opened again", done.stderr)
        os.rmdir(self.lab.path("a"))
        self.ask("reopen")
        self.send(5)
        self.await_packets(5)
        self.stop()
        self.assertEqual(5, self.packets("a"))

    def test_requests_that_are_wrong(self):
        self.write()
        self.start()
        for line, error in ((b"9 status\n", "protocol"), (b"nothing\n", "request"),
                            (b"\n", "request"), (b"1\n", "request"),
                            (b"status now\n", "request"),
                            (b"mappings x\n", "request"), (b"mappings 1x,icmp\n", "request"),
                            (b"mappings -1\n", "request"), (b"mappings 1" + b"0" * 30 + b"\n", "request"),
                            (b"mappings 0\n", "absent"),
                            (b"x" * 5000, "request"), (b"GET / HTTP/1.1\r\n\r\n", "request"),
                            (b"\0\n", "request")):
            answer = self.request(line)
            self.assertEqual((1, False, error), (answer["protocol"], answer["ok"],
                                                 answer["error"]), line)
        for line in b"status\n", b"1 status\n", b" 1\tstatus \r\n", b"status":
            self.assertTrue(self.request(line)["ok"])
        self.stop()

    def test_a_service_that_is_another_or_none(self):
        done = self.ask("status", code=FAILED)
        self.assertIn(f"no service listens at {self.control}: start one", done.stderr)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(self.control)
            server.listen()
            for answer, words in ((b'{"protocol":2,"version":"9.9.9","ok":true}\n',
                                   "the service has version 9.9.9 and protocol 2"),
                                  (b"hello\n", "it is not the socket of a netobs service"),
                                  (b"", "the service has closed the connection")):
                thread = threading.Thread(target=self.serve_once, args=(server, answer))
                thread.start()
                self.assertIn(words, self.ask("status", code=FAILED).stderr)
                thread.join()

    @staticmethod
    def serve_once(server, answer):
        client, _ = server.accept()
        with client:
            client.recv(4096)
            client.sendall(answer)

    def test_a_second_service_is_refused_its_socket(self):
        self.write()
        self.start()
        again = observer.run("run", "-c", self.path, code=FAILED)
        self.assertIn(f"there is no control socket {self.control}: Address already in use",
                      again.stderr)
        self.assertEqual(self.pid, self.status()["pid"])
        self.stop()

    def test_wrong_options(self):
        for verb, *arguments in (("status", "more"), ("reload", "more"), ("reopen", "more"),
                                 ("flows", "--live", "-i", "eth0"),
                                 ("flows", "--live", "tcp"),
                                 ("flows", "--live", "-o", "json:/x"),
                                 ("flows", "--socket", "/x")):
            self.assertIn(f"netobsctl {verb} -h", observer.run(verb, *arguments,
                                                           code=USAGE).stderr)
        for more, error in (("path = x", "path: it is neither an absolute path nor 'none'"),
                            (f"path = /{'x' * 200}", "path: it is too long")):
            self.write("[control]", more)
            self.control = "none"
            text = lab.read(self.path)
            lab.write(self.path, text[:text.rindex("[control]")])
            self.assertIn(f":9:8: {error}", observer.run("config", "check", self.path,
                                                     code=FAILED).stderr)


class Permissions(ControlTest):
    """By credentials and groups, also where the socket's mode allows more."""

    def start_shared(self):
        self.group = next(group for group in grp.getgrall() if group.gr_gid not in (0, NOBODY))
        os.chmod(self.lab.dir, 0o755)
        groups = self.lab.path("group")
        with open(groups, "w", encoding="ascii") as file:
            file.write(f"netobs:x:{self.group.gr_gid}:\n")
        self.write()
        self.start("unshare", "--mount", "sh", "-c", f'mount --bind {groups} /etc/group && exec "$@"', "sh")
        self.assertEqual(self.group.gr_gid, os.stat(self.control).st_gid)
        self.program = observer.program_for_all(self.lab)

    def ask_as(self, groups, verb, *arguments, code=0):
        return self.ask(verb, *arguments, code=code, program=self.program, user=NOBODY,
                        group=NOBODY, extra_groups=groups).stderr

    def test_of_strangers_and_members(self):
        self.start_shared()
        self.assertIn(f"members of the group '{self.group.gr_name}'",
                      self.ask_as([], "status", code=FAILED))
        self.ask_as([self.group.gr_gid], "status")
        os.chmod(self.control, 0o666)
        self.assertIn("only root, the user of the service and members of its group",
                      self.ask_as([], "status", code=FAILED))
        self.ask_as([self.group.gr_gid], "status")
        for command in "reload", "reopen":
            self.assertIn("only root and the user of the service may do that",
                          self.ask_as([self.group.gr_gid], command, code=FAILED))
        self.stop()


class Live(ControlTest):
    def follow(self, *arguments):
        process = self.lab.spawn(observer.netobsctl(), "flows", "--live", "--socket",
                                 self.control, *arguments, stdout=-1, stderr=-1, text=True)
        return process

    def await_live(self, *arguments):
        """A client that the service knows of."""
        live = self.status()["clients"]["live"]
        process = self.follow(*arguments)
        lab.wait_for(lambda: self.status()["clients"]["live"] > live, "the client")
        return process

    def test_records_are_those_of_the_sinks(self):
        self.write()
        self.start()
        clients = [self.await_live("-o", "json", "-n", "3"),
                   self.await_live("-o", "table", "-n", "3"),
                   self.await_live("-o", "table", "-n", "3", "--by", "proto")]
        for port in 5002, 5003, 5004:
            traffic.udp(self.a, self.A4, self.b, self.B4, [100] * 5, port=port)
        lines, table, groups = [client.communicate(timeout=60) for client in clients]
        self.stop()
        self.assertEqual(["", "", ""], [lines[1], table[1], groups[1]])
        records = lab.json_lines(self.lab.path("a"))
        for record in records: # a client knows which host it asks
            self.assertEqual(os.uname().nodename, record.pop("HostName"))
            record.pop("AgentIP", None)
            record.pop("HostId", None)
        self.assertEqual(records, [json.loads(line) for line in lines[0].splitlines()])
        self.assertEqual(4, table[0].count("\n"))
        self.assertEqual(3, table[0].count(f"{self.A4}:"))
        self.assertIn("eth0 out", table[0])
        self.assertIn("UDP", groups[0])

    def test_a_slow_client_misses_records_and_sinks_none(self):
        self.write()
        self.start(release=True)
        with self.connect() as client:
            client.sendall(b"flows\n")
            self.assertTrue(self.read_answer(client)["ok"])
            flood = traffic.start_flood(self.lab, self.a, "eth0", "--flows", 40000,
                                        "--packets", 40000, "--dest", self.B4)
            flood.wait(timeout=60)
            self.await_packets(40000)
            marks, records = self.read_until_mark(client, 40000)
        self.stop()
        self.assertGreater(marks["missed"], 0)
        self.assertEqual(marks["sent"], records)
        self.assertEqual(40000, self.packets("a"))
        with open(self.lab.path("a"), encoding="utf-8") as file:
            self.assertEqual(sum(1 for _ in file), marks["sent"] + marks["missed"])

    @staticmethod
    def read_until_mark(client, total):
        """The last mark, of all records, and the records before it."""
        records = 0
        for line in client.makefile(encoding="utf-8"):
            value = json.loads(line)
            if "interval" not in value:
                records += 1
            elif value["interval"]["sent"] + value["interval"]["missed"] >= total:
                return value["interval"], records
        raise AssertionError("the service has closed the connection")

    def test_clients_end_with_the_service(self):
        self.write()
        self.start()
        client = self.await_live("-o", "json")
        self.send(5)
        self.stop()
        lines, errors = client.communicate(timeout=60)
        self.assertEqual(5, sum(json.loads(line)["Packets"] for line in lines.splitlines()))
        self.assertIn("the service has ended", errors)

    def test_output_that_cannot_be_written(self):
        self.write()
        self.start()
        with open("/dev/full", "w", encoding="ascii") as full:
            client = self.lab.spawn(
                observer.netobsctl(), "flows", "--live", "--socket", self.control, "-o",
                "json", "-n", "1", stdout=full, stderr=-1, text=True)
        lab.wait_for(lambda: self.status()["clients"]["live"], "the client")
        self.send(5)
        errors = client.communicate(timeout=60)[1]
        self.assertEqual(FAILED, client.returncode)
        self.assertEqual("netobsctl flows: cannot write to standard output: "
                         "No space left on device\n", errors)
        self.stop()

    def test_a_reader_that_leaves_ends_it_without_traffic(self):
        self.write()
        self.start()
        clients = [self.await_live("-o", kind) for kind in ("json", "table")]
        for client in clients:
            client.stdout.close()
            self.assertEqual(0, client.wait(60))
            self.assertEqual("", client.stderr.read())
        self.stop()

    def test_only_some_can_follow(self):
        self.write()
        self.start()
        clients = [self.connect() for _ in range(9)]
        for client in clients:
            client.sendall(b"flows\n")
        answers = [self.read_answer(client) for client in clients]
        self.assertEqual([None] * 8 + ["busy"], [one.get("error") for one in answers])
        clients.pop(0).close()
        lab.wait_for(lambda: self.request_live(), "a place")
        for client in clients:
            client.close()
        self.stop()

    def request_live(self):
        with self.connect() as client:
            client.sendall(b"flows\n")
            return self.read_answer(client)["ok"]


class Hostile(Attacked, ControlTest):
    def reach(self):
        return self.connect()

    def malformed(self):
        kind = self.random.randrange(5)
        if kind == 0:
            return self.random.randbytes(self.random.randrange(1, 6000))
        if kind == 1:
            return b"status " * self.random.randrange(1, 900)
        if kind == 2:
            return b"flows" # and closes the connection
        line = bytearray(b"1 status\n")
        line[self.random.randrange(len(line))] = self.random.randrange(256)
        return bytes(line)

    def ask(self):
        status = self.request(b"status\n")
        if status: # or it made room for another
            self.assertEqual({"packets": 0, "bytes": 0}, status["status"]["difference"])
        return bool(status)

    def test_counting_goes_on_under_attack(self):
        self.write()
        self.start(release=True)
        packets = lab.sized(100000)
        most = self.withstand(self.pid, lambda: self.memory() << 10, b"stat", "--packets", packets, "--dest", self.B4)
        self.await_packets(packets)
        self.stop()
        self.assertLessEqual(most, 70)
        self.assertEqual(packets, self.packets("a"))


if __name__ == "__main__":
    lab.main(at_once=3)
