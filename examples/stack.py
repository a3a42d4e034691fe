#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
stack.py [SECONDS]: netobs, a real Kafka broker, and a consumer of its topic that prints the
flows of some traffic, until ^C. All of it is in network namespaces of its own.
"""

import atexit
import json
import os
import signal
import sys
import threading
import time

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "tests", "e2e"))
# pylint: disable=wrong-import-position
from lib import kafka
from lib import lab

TOPIC = "network-flows"
SERVER = "192.0.2.2"
PORT = 7
EXIT_INTERRUPTED = 130
CONFIGURATION = """
[capture]
exclude = lo
[flows]
interval = 1
[sink "kafka"]
output = kafka://{broker}/{topic}
encoding = json
rdkafka.linger.ms = 5
"""
PROTOCOLS = {1: "ICMP", 6: "TCP", 17: "UDP"}


class Stack(lab.Lab):
    """Its processes get no signal of the terminal: it ends them in their order."""

    def spawn(self, *command, **options): # pylint: disable=arguments-differ
        return super().spawn(*command, start_new_session=True, **options)

    def __init__(self):
        super().__init__()
        self.host, self.peer = self.ns("host"), self.ns("peer")
        self.wire(self.host, "eth0", ["192.0.2.1/24"], self.peer, "eth0", [f"{SERVER}/24"])
        self.broker = kafka.Broker(self, ns=self.host).start()
        self.broker.make_topic(TOPIC)
        with open(self.path("netobs.conf"), "w", encoding="ascii") as file:
            file.write(CONFIGURATION.format(broker=self.broker.address(), topic=TOPIC))
        self.consumer = self.spawn(
            "kcat", "-C", "-q", "-u", "-b", self.broker.address(), "-t", TOPIC,
            ns=self.host, stdout=-1)
        self.service = self.spawn(os.environ["NETOBSCTL"], "run", "-c",
                                  self.path("netobs.conf"), ns=self.host)

    def talk(self):
        """Echoes over TCP beside a ping."""
        quiet = {"stdout": -3, "stderr": -3}
        self.spawn("socat", f"TCP-LISTEN:{PORT},fork,reuseaddr", "PIPE", ns=self.peer)
        self.spawn("ping", "-i", "0.5", SERVER, ns=self.host, **quiet)
        self.spawn("sh", "-c", f"while sleep 1; do head -c 100000 /dev/zero | "
                   f"socat -t 5 - TCP:{SERVER}:{PORT}; done", ns=self.host, **quiet)

    def show(self):
        """What the consumer receives, until it ends."""
        for line in self.consumer.stdout:
            print(describe(json.loads(line)), flush=True)

    def stop(self):
        """Returns whether all that netobs counted is in the topic."""
        self.service.send_signal(signal.SIGTERM)
        is_delivered = self.service.wait(60) == 0
        records = [json.loads(message.value) for message in self.broker.messages(TOPIC)]
        print(f"{len(records)} records of {sum(one['Packets'] for one in records)} packets "
              "are in the topic", flush=True)
        self.consumer.terminate()
        self.consumer.wait()
        return is_delivered


def describe(record):
    """A line of text."""
    ends = [f"{record[way + 'Addr']}:{record.get(way + 'Port', 0)}" for way in ("Src", "Dst")]
    protocol = PROTOCOLS.get(record.get("Proto"), "other")
    started = time.strftime("%H:%M:%S", time.localtime(record["TimeFlowStartMs"] / 1000))
    return (f"{started}  {protocol:5} {ends[0]:>21} -> {ends[1]:21} "
            f"{record['Packets']:6} packets {record['Bytes']:9} bytes")


def main():
    signal.signal(signal.SIGTERM, lab.interrupt)
    atexit.register(lab.close_all)
    lab.remove_stale()
    stack = Stack()
    stack.talk()
    reader = threading.Thread(target=stack.show, daemon=True)
    reader.start()
    try:
        reader.join(float(sys.argv[1]) if len(sys.argv) > 1 else None)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    is_delivered = stack.stop()
    reader.join()
    return 0 if is_delivered else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt: # before there is anything to lose
        sys.exit(EXIT_INTERRUPTED)
