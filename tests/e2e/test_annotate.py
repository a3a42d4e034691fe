# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: jq nfdump softflowd
# Lock: sockets, it names the owners of short-lived sockets.
"""netobsctl map annotate: what other programs have seen behind NAT gets its inner tuple and process.

The truth is conntrack(8)'s table and what the processes that talked have noted. Rules, protocols and
traffic are random.
"""

import json
import os
import re
import subprocess

from lib import collectors
from lib import lab
from lib import nat
from lib import observer
from lib import packets
from lib.observer import features
from lib.service import end_service, launch
from lib.talkers import child, join

CONNECTIONS = 120


def of_nfdump(record):
    """The face of packets that a record of nfdump(1) has."""
    proto = record["proto"]
    return nat.Tuple(proto, record.get("src4_addr") or record["src6_addr"],
                     record.get("dst4_addr") or record["dst6_addr"], record.get("src_port", 0),
                     record.get("dst_port", record.get("icmp_type", 0)))


def of_pmacct(record):
    """The face of packets that a record of pmacctd(8) has, with numbers or names."""
    proto = record["ip_proto"]
    return nat.Tuple(nat.NUMBERS.get(proto) or int(proto), record["ip_src"], record["ip_dst"],
                     record["port_src"], record["port_dst"])


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
        self.service = launch(self, self.router, (
            "[capture]", "nat = yes", "process = yes", "[flows]", "interval = 500ms", "[control]",
            f"path = {self.socket}", "[sessions]", "enabled = yes", '[sink "a"]',
            f"output = json:{self.records}", "records = flow,mapping,session"))

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

    def has_read(self, port):
        """Whether no datagram waits."""
        return re.search(rf"^\S+ +0 .*:{port} ", self.router.run("ss", "-Hanu"), re.M)

    def nfdump_files(self, capture):
        """@return files with what nfdump(1) prints, and how many records they have"""
        collector = collectors.NfCapd(self.lab, self.router, 9995)
        count, _ = self.softflowd(capture, 9995)
        lab.wait_for(lambda: "New ipfix exporter" in collector.messages() and
                     self.has_read(9995), "records at nfcapd")
        self.assertEqual(count, len(collector.stop()))
        files = []
        for name in sorted(os.listdir(collector.dir)):
            if name.startswith("nfcapd.2"):
                files.append(self.lab.path(f"{name}.json"))
                records = subprocess.run(
                    ["nfdump", "-r", os.path.join(collector.dir, name), "-o", "json"],
                    check=True, stdout=subprocess.PIPE, timeout=60).stdout
                with open(files[-1], "wb") as out:
                    subprocess.run(["jq", "-c", ".[]"], input=records, check=True, stdout=out,
                                   timeout=60)
        return files, count

    def pmacct_file(self, name, capture, *more):
        """@return what pmacctd(8) prints of the packets, and how many records that is"""
        out, config = self.lab.path(f"{name}.json"), self.lab.path(f"{name}.conf")
        with open(config, "w", encoding="ascii") as file:
            file.write("plugins: print\nprint_output: json\nprint_refresh_time: 60\n"
                       "aggregate: src_host,dst_host,src_port,dst_port,proto,timestamp_start\n"
                       f"print_output_file: {out}\n")
            file.writelines(f"{line}: true\n" for line in more)
        # The processes that write the file have this output, too.
        subprocess.run(["pmacctd", "-I", capture, "-f", config], check=True, timeout=60,
                       capture_output=True)
        with open(out, encoding="ascii") as file:
            return out, len(file.readlines())

    def lines_file(self, records):
        path = self.lab.path("outer.json")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)
        return path

    # ---- Annotating ------------------------------------------------------------------

    def run_annotate(self, *arguments, code=0, text=None):
        """@text: standard input. @return standard output, in bytes, and messages"""
        result = subprocess.run(
            self.router.command(observer.netobsctl(), "map", "annotate", *arguments), check=False,
            input=text, capture_output=True, timeout=120)
        errors = result.stderr.decode()
        observer.check_sanitizer(errors)
        self.assertEqual(code, result.returncode, errors)
        return result.stdout, errors

    def annotate(self, *arguments):
        out, errors = self.run_annotate(*arguments)
        return [json.loads(line) for line in out.splitlines()], errors

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
        end_service(self, self.service)

    OUTER = ('{ "SrcAddr":"203.0.113.1","SrcPort":9, "\\u0041" : 1.50,"DstAddr":"198.51.100.1",'
             '"DstPort":8,"Proto":17,"TimeFlowStartMs":1500,"TimeFlowEndMs":1500 }')
    ADDED = (',"OrigSrcAddr":"192.0.2.1","OrigDstAddr":"198.51.100.1","OrigSrcPort":7,'
             '"OrigDstPort":8,"SrcPid":5,"SrcProcess":"x,}\\""}')

    def known_file(self):
        """A flow whose packets have the face of OUTER behind NAT."""
        flow = {"SrcAddr": "192.0.2.1", "DstAddr": "198.51.100.1", "SrcPort": 7, "DstPort": 8,
                "Proto": 17, "TimeFlowStartMs": 1000, "TimeFlowEndMs": 2000}
        path = self.lab.path("known")
        lab.write(path, json.dumps(flow | {"SrcPid": 5, "SrcProcess": "x,}\"", "type": "flow",
                                           "XlatSrcAddr": "203.0.113.1", "XlatSrcPort": 9,
                                           "XlatDstAddr": "198.51.100.1", "XlatDstPort": 8}))
        return path

    def test_lines_keep_their_bytes(self):
        lines = f"{self.OUTER}\r\nnonsense\n\n{{}}\n[1]\n\0\xff\n{self.OUTER[:50]}"
        for arguments in (), ("-",):
            out, errors = self.run_annotate("--records", self.known_file(), *arguments,
                                            text=lines.encode())
            self.assertEqual(lines.replace(self.OUTER, self.OUTER[:-1] + self.ADDED).encode(), out)
            self.assertEqual(["netobsctl map: 6 records: 1 annotated, 5 of which nothing is known, "
                              "0 ambiguous", "netobsctl map: 5 of 6 lines have no addresses in a "
                              "known layout"], errors.splitlines())

    def test_lines_are_passed_on_as_they_come(self):
        process = self.lab.spawn(
            observer.netobsctl(), "map", "annotate", "--records", self.known_file(),
            ns=self.router, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL)
        for _ in range(3):
            process.stdin.write(f"{self.OUTER}\n".encode())
            process.stdin.flush()
            self.assertEqual(f"{self.OUTER[:-1]}{self.ADDED}\n".encode(),
                             process.stdout.readline())
        process.stdin.close()
        self.assertEqual(0, process.wait(60))
        process.stdout.close()

    def test_refusals(self):
        empty = self.lab.path("empty")
        with open(empty, "wb"):
            pass
        for code, arguments, word in (
                (1, ("--records", self.lab.path("none"), empty), "none: No such file"),
                (1, ("--records", empty, self.lab.path("none")), "none: No such file"),
                (1, ("--records", empty, self.lab.dir), "Is a directory"),
                (2, ("--records", "-"), "-: standard input can be read only once"),
                (2, ("--records", "-", "-"), "-: standard input can be read only once")):
            _, messages = self.run_annotate(*arguments, code=code)
            self.assertIn(word, messages)

    def test_records_of_other_programs(self):
        self.start_service()
        capture, far = self.talk_outside()
        end_service(self, self.service)
        sources = ("--records", self.records)
        nfdump = self.nfdump_files(capture)
        names = self.pmacct_file("names", capture)
        numbers = self.pmacct_file("numbers", capture, "num_protos", "timestamps_since_epoch")
        for paths, face_of, count in ((nfdump[0], of_nfdump, nfdump[1]),
                                      ([names[0]], of_pmacct, names[1]),
                                      ([numbers[0]], of_pmacct, numbers[1]),
                                      ([self.lines_file(far)], nat.tuple_of, len(far))):
            records = []
            for path in paths:
                more, summary = self.annotate(*sources, path)
                records += more
                self.assertIn(f"{len(more)} records: ", summary)
                self.assertNotIn("in a known layout", summary)
                with open(path, "rb") as file:
                    text = file.read()
                self.assertEqual(text, self.run_annotate("--records", os.devnull, path)[0])
            self.assertEqual(count, len(records), paths)
            if face_of is of_pmacct:  # which has no types of ICMP
                records = [record for record in records
                           if record["ip_proto"] in ("tcp", "udp", "6", "17")]
            translated, named = self.check(records, face_of)
            self.assertLess(20, translated)
            self.assertLess(20, named)
            self.note(f"{os.path.basename(paths[0])}: {len(records)} records, {translated} "
                      f"translated, {named} processes")


if __name__ == "__main__":
    lab.main("TCP sockets that programs follow", lambda: features().get("sessions"))
