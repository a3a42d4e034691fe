#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nfdump softflowd
# Alone: it names the owners of short-lived sockets.
"""netobsctl map annotate: what other exporters have seen behind NAT gets its inner tuple and process.

The truth is conntrack(8)'s table and what the processes that talked have noted. Rules, protocols and
traffic are random; a failure prints its seed, and NETOBS_TEST_SEED=SEED repeats it.
"""

import json
import os
import re
import signal
import subprocess

from lib import collectors
from lib import ipfix
from lib import lab
from lib import nat
from lib import observer
from lib import packets
from lib.observer import features
from lib.service import Supervisor
from lib.talkers import child, join

CONNECTIONS = 120


def of_nfdump(record):
    """The face of packets that a record of nfdump(1) has."""
    proto = record["proto"]
    return nat.Tuple(proto, record.get("src4_addr") or record["src6_addr"],
                     record.get("dst4_addr") or record["dst6_addr"], record.get("src_port", 0),
                     record.get("dst_port", record.get("icmp_type", 0)))


def of_ipfix(record):
    family = "IPv4" if "sourceIPv4Address" in record else "IPv6"
    proto, dport = record["protocolIdentifier"], record.get("destinationTransportPort", 0)
    return nat.Tuple(proto, record[f"source{family}Address"],
                     record[f"destination{family}Address"], record.get("sourceTransportPort", 0),
                     record.get(f"icmpTypeCode{family}", dport) >> 8 if proto in (1, 58) else dport)


def other_face(record, prefix, face):
    """What was added, as a face; of ICMP, the type is that of the record."""
    if f"{prefix}SrcAddr" not in record:
        return None
    return nat.Tuple(face.proto, record[f"{prefix}SrcAddr"], record[f"{prefix}DstAddr"],
                     record.get(f"{prefix}SrcPort", 0),
                     record.get(f"{prefix}DstPort", face.dport if face.proto in (1, 58) else 0))


class Annotate(nat.RandomNatTest):
    def setUp(self):
        super().setUp()
        self.socket, self.records = self.lab.path("control.sock"), self.lab.path("records")
        self.pids = {}  # of a face before NAT: who sent its first packet
        self.hidden = set()  # of these: datagrams of the router, which no record has as they were

    # ---- Those who know --------------------------------------------------------------

    def start_service(self):
        supervisor = Supervisor(self.lab)
        self.addCleanup(supervisor.close)
        path = self.lab.path("netobs.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(("[capture]", "nat = yes", "process = yes", "[flows]",
                                  "interval = 500ms", "[control]", f"path = {self.socket}",
                                  "[sessions]", "enabled = yes", '[sink "a"]',
                                  f"output = json:{self.records}",
                                  "records = flow,mapping,session", "")))
        self.service = self.lab.spawn(
            observer.netobsctl(), "run", "-c", path, ns=self.router, stdout=subprocess.DEVNULL,
            env=os.environ | {"NOTIFY_SOCKET": supervisor.path})
        supervisor.wait("READY=1")

    def stop_service(self):
        self.service.send_signal(signal.SIGTERM)
        self.assertEqual(0, self.service.wait(60))

    # ---- Those who talk --------------------------------------------------------------

    def ask(self, service):
        """One question, by a process of its own."""
        ready, told = os.pipe()

        def question():
            with service.make(service.asker) as sock:
                sock.connect((service.asked, service.port))
                sock.send(b"question")
                sock.recv(100)
                name, peer = sock.getsockname(), sock.getpeername()
                os.write(told, json.dumps([name[0], peer[0], name[1], peer[1]]).encode())

        pid = child(question)
        if service.proto == "tcp":
            end, _ = service.listener.accept()
            with end:
                end.settimeout(lab.PATIENCE_S)
                end.recv(100)
                end.send(b"answer")
                end.recv(100)
        else:
            _, peer = service.listener.recvfrom(100)
            service.listener.sendto(b"answer", peer)
        join([pid])
        src, dst, sport, dport = json.loads(os.read(ready, 1000))
        face = nat.Tuple(nat.NUMBERS[service.proto], src, dst, sport, dport)
        self.pids[face] = pid
        if service.kind == "local" and service.proto == "udp":
            self.hidden.add(face)
        for end in ready, told:
            os.close(end)

    def talk_outside(self):
        """@return what was captured at the outer interface, and records of a program there"""
        services = self.make_services(24)
        capture = packets.Tcpdump(self.lab, self.router, "rs", self.lab.path("outer.pcap"))
        far = observer.Observer(self.lab, self.server, "-i", "eth0", "--interval", "1")
        far.wait_attached((self.server, "eth0"))
        for service in services:
            self.ask(service)
        for _ in range(lab.sized(CONNECTIONS)):
            self.ask(self.random.choice(services))
        for address in self.SERVER, self.SERVER6:
            self.client.run("ping", "-c", "1", address)
        capture.stop()
        self.table = nat.connections(self.router)
        return self.lab.path("outer.pcap"), far.stop().records

    # ---- What other exporters make of it ---------------------------------------------

    def softflowd(self, capture, port):
        """@return how many records, and messages, it has sent"""
        result = subprocess.run(
            self.router.command("softflowd", "-6", "-A", "milli", "-v", "10", "-r", capture, "-n",
                                f"127.0.0.1:{port}", "-d"),
            check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        return map(int, re.search(r"\((\d+) records\) in (\d+) packets", result.stdout).groups())

    def nfcapd_files(self, capture):
        collector = collectors.NfCapd(self.lab, self.router, 9995)
        count, _ = self.softflowd(capture, 9995)
        lab.wait_for(lambda: "New ipfix exporter" in collector.messages() and
                     re.search(r"^\S+ +0 .*:9995 ", self.router.run("ss", "-Hanu"), re.M),
                     "records at nfcapd")
        self.assertEqual(count, len(collector.stop()))
        return [os.path.join(collector.dir, name) for name in sorted(os.listdir(collector.dir))
                if name.startswith("nfcapd.2")], count

    def ipfix_file(self, capture):
        with self.router:
            receiver = ipfix.Receiver()
        self.addCleanup(receiver.close)
        _, messages = self.softflowd(capture, receiver.port)
        lab.wait_for(lambda: len(receiver.datagrams) == messages, "IPFIX messages")
        path = self.lab.path("outer.ipfix")
        with open(path, "wb") as file:
            file.write(b"".join(receiver.datagrams))
        return path

    def lines_file(self, records):
        path = self.lab.path("outer.json")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)
        return path

    # ---- Annotating ------------------------------------------------------------------

    def annotate(self, *arguments, code=0):
        result = subprocess.run(
            self.router.command(observer.netobsctl(), "map", "annotate", *arguments), check=False,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
        observer.check_sanitizer(result.stderr)
        self.assertEqual(code, result.returncode, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()], result.stderr

    def truth_of(self, face):
        """(before NAT, after it) of what the router translates; None: it is not, or not unique."""
        found = []
        for faces in self.table.after, self.table.before:
            others = faces.get(face, set()) - {face}
            found.append(next(iter(others)) if len(others) == 1 else None)
        return found

    def check(self, records, face_of, has_processes=True):
        """@return how many have another face, how many processes those have that asked"""
        translated = named = 0
        for record in records:
            face = face_of(record)
            before, after = self.truth_of(face)
            self.assertEqual((before, after), (other_face(record, "Orig", face),
                                               other_face(record, "Xlat", face)), record)
            translated += before is not None or after is not None
            if face.proto not in (6, 17):
                self.assertNotIn("SrcPid", record)
                self.assertNotIn("DstPid", record)
                continue
            inner = before or after or face
            for end, key in ("Src", inner), ("Dst", inner.back()):
                pid = record.get(f"{end}Pid")
                if not has_processes:
                    self.assertIsNone(pid, record)
                elif key in self.hidden:
                    self.assertIn(pid, (None, self.pids[key]), record)
                elif key in self.pids:
                    self.assertEqual(self.pids[key], pid, record)
                    named += 1
                else:
                    self.assertIn(pid, (None, os.getpid()), record)  # who answers
        return translated, named

    def test_mappings_know_inner_tuples_but_no_processes(self):
        self.router.sysctl("netfilter/nf_conntrack_timestamp", 1)
        self.start_service()
        _, far = self.talk_outside()
        path = self.lines_file(far)
        # What the kernel has now began at a known time; the records are of before.
        for source in ("-s", self.socket), ("--netns", self.router.name):
            records, _ = self.annotate(*source, path)
            self.assertEqual(len(far), len(records))
            self.assertLess(20, self.check(records, nat.tuple_of, has_processes=False)[0])
        # Long before: none of these mappings existed.
        for record in far:
            record["TimeFlowStartMs"] -= 3600000
            record["TimeFlowEndMs"] -= 3600000
        for source in ("-s", self.socket), ("--netns", self.router.name):
            records, summary = self.annotate(*source, self.lines_file(far))
            self.assertEqual(far, records)
            self.assertIn(f" 0 annotated, {len(far)} of which nothing is known", summary)
        self.stop_service()

    def test_lines_keep_their_bytes_and_faults_are_reported(self):
        flow = {"SrcAddr": "192.0.2.1", "DstAddr": "198.51.100.1", "SrcPort": 7, "DstPort": 8,
                "Proto": 17, "TimeFlowStartMs": 1000, "TimeFlowEndMs": 2000}
        known = self.lab.path("known")
        with open(known, "w", encoding="utf-8") as file:
            file.write(json.dumps(flow | {"SrcPid": 5, "SrcProcess": "x,}\"", "type": "flow",
                                          "XlatSrcAddr": "203.0.113.1", "XlatSrcPort": 9,
                                          "XlatDstAddr": "198.51.100.1", "XlatDstPort": 8}))
        path = self.lab.path("lines")
        outer = ('{ "SrcAddr":"203.0.113.1","SrcPort":9, "\\u0041" : 1.50,"DstAddr":"198.51.100.1",'
                 '"DstPort":8,"Proto":17,"TimeFlowStartMs":1500,"TimeFlowEndMs":1500 }')
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"{outer}\nnonsense\n\n{{}}\n[1]\n{outer[:50]}")
        result = subprocess.run(
            [observer.netobsctl(), "map", "annotate", "--records", known, path], check=False,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        observer.check_sanitizer(result.stderr)
        self.assertEqual(1, result.returncode)
        added = (',"OrigSrcAddr":"192.0.2.1","OrigDstAddr":"198.51.100.1","OrigSrcPort":7,'
                 '"OrigDstPort":8,"SrcPid":5,"SrcProcess":"x,}\\""}')
        self.assertEqual(f"{outer[:-1]}{added}\n{{}}\n", result.stdout)
        self.assertEqual([f"netobsctl map: {path}:{line}: it is no JSON object"
                          for line in (2, 5, 6)] +
                         ["netobsctl map: 2 records: 1 annotated, 1 of which nothing is known, "
                          "0 ambiguous; 3 lines are no records"], result.stderr.splitlines())

    def test_refusals(self):
        path = self.lab.path("broken")
        with open(path, "wb") as file:
            file.write(b"\x0c\xa5" + bytes(500))
        empty = self.lab.path("empty")
        with open(empty, "wb"):
            pass
        for arguments, word in (
                ((), "lookup TUPLE' or 'annotate FILE"),
                (("--records", empty, path), f"{path}: nfdump has failed: "),
                (("--records", path, empty), f"{path}: it has no records of netobs"),
                (("--records", empty, self.lab.path("none")), "none: No such file"),
                (("--records", "-", "-"), "-: standard input can be read only once")):
            code = 1 if arguments and "-" not in arguments else 2
            _, messages = self.annotate(*arguments, code=code)
            self.assertIn(word, messages)
        result = subprocess.run(
            [observer.netobsctl(), "map", "annotate", "--records", empty, path], check=False,
            env=os.environ | {"PATH": self.lab.dir}, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(1, result.returncode)
        self.assertIn("nfdump, which reads files of nfcapd, is not installed", result.stderr)

    def test_records_of_other_exporters(self):
        self.start_service()
        capture, far = self.talk_outside()
        self.stop_service()
        files, count = self.nfcapd_files(capture)
        sources = ("--records", self.records)
        for paths, face_of, count in ((files, of_nfdump, count),
                                      ([self.ipfix_file(capture)], of_ipfix, count),
                                      ([self.lines_file(far)], nat.tuple_of, len(far))):
            records, summary = self.annotate(*sources, *paths)
            self.assertEqual(count, len(records), paths)
            translated, named = self.check(records, face_of)
            self.assertLess(20, translated)
            self.assertLess(20, named)
            self.assertIn(f"{len(records)} records: ", summary)
            self.note(f"{os.path.basename(paths[0])}: {len(records)} records, {translated} "
                      f"translated, {named} processes")


if __name__ == "__main__":
    lab.main("TCP sockets that programs follow", lambda: features().get("sessions"))
