#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: jq libfixbuf-tools nfdump pmacct socat
"""
The examples of the manual pages and the README, pasted as they are into a shell of a
host that has no files of netobs. Only the time that netobsctl runs for is shorter.
"""

import json
import os
import re

from lib import capfile
from lib import certs
from lib import frames
from lib import lab
from lib import observer

SOURCES = ("README.md", "man/netobsctl-flows.8.scd", "man/netobs-sinks.7.scd",
           "docs/recipes.md", "man/netobsctl.8.scd") + tuple(
               f"man/netobsctl-{verb}.8.scd"
               for verb in ("top", "tcp", "sessions", "alerts", "capture", "check"))
VERBS = re.compile(r"^netobsctl (flows|top|tcp|sessions|alerts|capture|check)\b", re.M)
# What needs a reader, or another host: test_capture_listen.py.
ELSEWHERE = re.compile(r"--listen")
FENCE = re.compile(r"^```\w*\n(.*?)\n```$", re.M | re.S)
# The errors that are accepted where no server listens, and other tests make connections.
AWAY = re.compile(r"cannot (connect|send) to \S+: Connection refused; trying again$|"
                  r"kafka: .*Connection refused.*; trying again$|"
                  r"https?://\S+ does not accept records: Failed to connect .*; trying again$|"
                  r"\d+ records (were not delivered|wait in the spool for the next start)$|"
                  r"\d+ sessions lost$|"
                  r"warning: no interface to observe yet$")

# Files of the host can be read, and changes are gone when the shell ends. Its SysV IPC is
# private, as nfcapd finds others of its kind there. Each netobsctl runs for 3 seconds,
# while pings leave by eth0 that nothing answers. A collector of the recipe listens before,
# and has read all datagrams when the recipe ends it.
HOST = r"""
set -e
for dir in /var/log /var/lib /var/cache; do mount -t tmpfs tmpfs "$dir"; done
cp -a /etc "$LAB/etc" && mount --bind "$LAB/etc" /etc && cp -r "$CERTS" /etc/netobs
mount -t tmpfs tmpfs /run
echo '127.0.0.1 localhost collector.example broker.example flp.example
127.0.0.1 kafka.example kafka1.example kafka2.example vector.example loki.example
127.0.0.1 clickhouse.example elastic.example fluentbit.example rsyslog.example
127.0.0.1 otel.example' >/etc/hosts
mkdir bin
cat >bin/netobsctl <<END
#!/bin/sh
case "\$*" in
*' -r '* | check*) exec $NETOBSCTL "\$@" ;;
*--once*) exec $NETOBSCTL "\$@" --interval 2 ;;
esac
collector() { ss -Hlun 'sport = 4739'; }
case "\$RECIPE" in
*nfcapd* | *nfacctd*) until collector | grep -q .; do sleep 0.1; done ;;
esac
ping -q -c 1000 -i 0.1 192.0.2.2 >ping.log &
$NETOBSCTL "\$@" -d 3
status=\$?
kill \$!
while collector | grep -q 'UNCONN *[1-9]'; do sleep 0.1; done
exit \$status
END
chmod +x bin/netobsctl
PATH=$PWD/bin:$PATH:/usr/sbin
socat -u UNIX-LISTEN:/run/vector.sock,fork OPEN:lines,creat,append &
set +e
eval "$RECIPE"
[[ $RECIPE != */run/vector.sock* ]] || until [[ -s lines ]]; do sleep 0.1; done
kill $(jobs -p)
"""


def recipes():
    for source in SOURCES:
        path = os.path.join(os.environ["NETOBS_SOURCE"], source)
        if not os.path.exists(path):
            path += ".in"  # it has lists that are made
        blocks = FENCE.findall(lab.read(path).replace("\\_", "_"))
        yield from (block.replace("/proc/1234/", "/proc/self/") for block in blocks
                    if VERBS.search(block) and not ELSEWHERE.search(block))


class Run:
    """One of them in a namespace of its own, with a directory of its own."""

    def __init__(self, where, peer, number, commands):
        self.commands = commands
        self.dir = where.path(f"host{number}")
        os.makedirs(self.path("work"))
        self.capture(self.path("work/trace.pcap"))
        self.ns = where.ns(f"r{number}")
        where.veth(self.ns, "eth0", peer, f"r{number}")
        self.ns.address("eth0", "192.0.2.1/24")
        self.ns.neighbour("eth0", "02:00:00:00:00:99", "192.0.2.2")
        with open(self.path("out"), "wb") as out, open(self.path("err"), "wb") as err:
            self.process = where.spawn(
                "unshare", "-m", "-i", "bash", "-c", HOST, ns=self.ns, stdout=out,
                stderr=err, cwd=self.path("work"),
                env=dict(os.environ, LAB=self.dir, RECIPE=commands,
                         CERTS=where.path("certs"),
                         NETOBSCTL=observer.netobsctl(release=True)))

    def path(self, name):
        return os.path.join(self.dir, name)

    @staticmethod
    def capture(path):
        packet = frames.ipv4("192.0.2.1", "192.0.2.2", frames.ICMP, bytes(8))
        frame = frames.ether("02:00:00:00:00:01", "02:00:00:00:00:02", frames.IPV4,
                             packet)
        with open(path, "wb") as file:
            file.write(capfile.pcap(capfile.ETHERNET, [(10**18, frame)]))

    def finish(self):
        """What it prints, and what it says of errors."""
        self.process.wait(60)
        return [self.read(name) for name in ("out", "err")]

    def read(self, name):
        with open(self.path(name), encoding="utf-8", errors="replace") as file:
            return file.read()


class Recipes(lab.LabTest):
    def make_secrets(self):
        made = certs.Certificates(self.lab.path("certs"))
        made.sign("cert", "DNS:host.example")
        os.rename(made.path("cert.key"), made.path("key.pem"))
        lab.write(made.path("kafka.password"), "secret\n")
        os.link(made.path("kafka.password"), made.path("clickhouse.password"))
        lab.write(made.path("elastic.headers"), "Authorization: ApiKey secret\n")

    def test_each_works_as_written(self):
        self.make_secrets()
        peer = self.lab.ns("peer")
        runs = [Run(self.lab, peer, number, commands)
                for number, commands in enumerate(recipes())]
        self.assertGreater(len(runs), 12)
        for run in runs:
            with self.subTest(run.commands):
                self.check(run, *run.finish())

    def check(self, run, out, err):
        errors = [line for line in err.splitlines()
                  if re.match(r"netobsctl( \w+)?: |bash|\S*/bin/", line)]
        self.assertEqual([], [line for line in errors if not AWAY.search(line)],
                         out + err)
        for word, check in (("nfdump -R", self.check_nfdump),
                            ("nfacctd -f", self.check_nfacctd),
                            ("ipfixDump", self.check_ipfixdump),
                            ("jq -s", self.check_jq),
                            ("vector.sock", self.check_lines)):
            if word in run.commands:
                check(run, out)

    def check_nfdump(self, _, out):
        self.assertRegex(out, r"ICMP +192\.0\.2\.1:0 +-> +192\.0\.2\.2:8\.0")
        self.assertRegex(out, r"total flows: [1-9]")

    def check_nfacctd(self, _, out):
        rows = [json.loads(line) for line in out.splitlines() if line[:1] == "{"]
        self.assertEqual({("192.0.2.1", "192.0.2.2")},
                         {(row["ip_src"], row["ip_dst"]) for row in rows})

    def check_ipfixdump(self, _, out):
        self.assertRegex(out, r"sourceIPv4Address : 192\.0\.2\.1")

    def check_jq(self, _, out):
        groups = json.loads("[" + re.sub(r"]\s*\[", "],[", out) + "]")
        self.assertGreater(min(octets for _, octets in groups), 0)

    def check_lines(self, run, _):
        self.assertGreater(os.path.getsize(run.path("work/lines")), 0)


if __name__ == "__main__":
    lab.main()
