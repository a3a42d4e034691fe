#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Lists the functions in user space that each record on its way to Kafka passes.

netobsctl is compiled with -finstrument-functions (./dev bench path). It observes FLOWS flows, which
it knows already, for an interval in which each has one packet: functions that are called nearly
as often handle a record, the others run once for many. Inline functions of headers are not
compiled to count.
"""
import collections
import os
import signal
import subprocess
import sys
import tempfile
import time

FLOWS = 500
SENDER = f"""
import socket, sys, time
sockets = []
for i in range({FLOWS}):
    sockets.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    sockets[-1].bind(("10.99.0.1", 20000 + i))
    sockets[-1].connect(("10.99.0.2", 9))
for line in sys.stdin:
    for s in sockets:
        s.send(b"x")
"""


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def make_namespace(name):
    ip("netns", "add", name)
    ip("-n", name, "link", "add", "v0", "type", "veth", "peer", "name", "v1")
    for link in "lo", "v0", "v1":
        ip("-n", name, "link", "set", link, "up")
    ip("-n", name, "address", "add", "10.99.0.1/24", "dev", "v0")
    ip("-n", name, "neighbour", "add", "10.99.0.2", "lladdr", "02:00:00:00:00:09", "dev", "v0")


def count_calls(build, name, calls):
    """Has flows sent often enough to be known; then counts for one more packet of each."""
    enter = ["ip", "netns", "exec", name]
    environment = dict(os.environ, LD_PRELOAD=f"{build}/calls.so", NETOBS_CALLS=calls)
    sender = subprocess.Popen([*enter, "python3", "-c", SENDER], stdin=subprocess.PIPE)
    command = subprocess.Popen(
        [*enter, f"{build}/netobsctl", "flows", "-i", "v0", "--interval", "1", "-o",
         "kafka://127.0.0.1:9092/path?rdkafka.test.mock.num.brokers=1"], env=environment)
    try:
        time.sleep(3)
        for burst in range(8):
            if burst == 7:
                command.send_signal(signal.SIGUSR2)
            sender.stdin.write(b"\n")
            sender.stdin.flush()
            time.sleep(1)
        time.sleep(3)
        command.send_signal(signal.SIGUSR2)
        time.sleep(0.2)
        command.send_signal(signal.SIGINT)
        command.wait(30)
    finally:
        command.kill()
        sender.stdin.close()
        sender.wait()


def read_calls(build, calls):
    """Yields (calls, file, function)."""
    objects = collections.defaultdict(list)
    with open(calls) as file:
        for line in file:
            count, path, offset = line.split()
            objects[path].append((int(count), "0x" + offset))
    for path, found in objects.items():
        out = subprocess.run(["addr2line", "-f", "-e", path, *(at for _, at in found)],
                             check=True, capture_output=True, text=True).stdout.split("\n")
        for i, (count, _) in enumerate(found):
            source = os.path.relpath(out[2 * i + 1].split(":")[0], build)
            yield count, source[max(source.find("src/"), 0):], out[2 * i]


def main():
    build = os.path.abspath(sys.argv[1])
    name = f"netobs-path-{os.getpid()}"
    files = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as directory:
        make_namespace(name)
        try:
            count_calls(build, name, f"{directory}/calls")
        finally:
            ip("netns", "delete", name)
        for count, source, function in read_calls(build, f"{directory}/calls"):
            if count >= 0.8 * FLOWS:
                files[source].append(function)
    for source in sorted(files):
        print(f"{source}: {len(files[source])}: {' '.join(sorted(files[source]))}")
    print(f"{sum(map(len, files.values()))} functions in {len(files)} files")


if __name__ == "__main__":
    main()
