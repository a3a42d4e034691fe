# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: python3-grpcio
"""A collector for the tests, of Debian's python3-grpcio, in a process of its own.

Each message that it accepts is in OUT, behind its length, before it is answered; those
of netobs.Collector, with --netobs, are in OUT.netobs. Without, it implements only
pbflow.Collector, as NetObserv's collectors do.
The file MODE says what it does with a call, and may change at any time:

    ok                 accept it
    STATUS [WORDS]     answer this, as UNAVAILABLE
    hang               never answer
    refuse-size BYTES  INVALID_ARGUMENT if a record with so many l3_bytes is in it

With --otlp, it is a receiver of OTLP, and bytes are those of netobs.bytes:

    partial N          reject records whose bytes are a multiple of N, which are in OUT.rejected
"""

import argparse
import concurrent.futures
import os
import signal
import struct
import sys
import threading
import time

import grpc
import otlp


def cut(path):
    """The end of the last message may be missing: its writer was killed."""
    with open(path, "a+b") as file:
        at, size = 0, file.tell()
        while at + 4 <= size:
            file.seek(at)
            end = at + 4 + struct.unpack(">I", file.read(4))[0]
            if end > size:
                break
            at = end
        file.truncate(at)


def read(path):
    with open(path, "rb") as file:
        return file.read()


class Collector:
    def __init__(self, options, sizes):
        self.options = options
        self.sizes = sizes
        self.lock = threading.Lock()
        self.out = open(options.out, "ab", buffering=0)
        self.others = open(f"{options.out}.netobs", "ab", buffering=0)

    def mode(self):
        return read(self.options.mode).decode().split(maxsplit=1) or ["ok"]

    def send_others(self, request, _):
        self.keep(self.others, request)
        return b""

    def keep(self, out, request):
        with self.lock:
            out.write(struct.pack(">I", len(request)) + request)

    def export(self, request, context):
        """ExportLogsServiceRequest, and its response."""
        mode, *words = self.mode()
        if mode != "partial":
            return self.send(request, context)
        bad = [size for size in self.sizes(request) if size % int(words[0]) == 0]
        with self.lock, open(f"{self.options.out}.rejected", "a", encoding="ascii") as rejected:
            for size in bad:
                print(size, file=rejected)
        self.keep(self.out, request)
        return otlp.response(len(bad), "poison" * bool(bad))

    def send(self, request, context):
        mode, *words = self.mode()
        if mode == "hang":
            time.sleep(600)
        if mode == "refuse-size":
            if int(words[0]) in self.sizes(request):
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, "poison")
        elif mode != "ok":
            context.abort(grpc.StatusCode[mode], " ".join(words))
        self.keep(self.out, request)
        return b""


def credentials(options):
    ca = read(options.ca) if options.ca else None
    return grpc.ssl_server_credentials(
        [(read(options.key), read(options.cert))], ca, ca is not None)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("mode")
    parser.add_argument("--address", default="127.0.0.1:0")
    parser.add_argument("--cert")
    parser.add_argument("--key")
    parser.add_argument("--ca", help="ask for certificates of this authority")
    parser.add_argument("--max-message", type=int)
    parser.add_argument("--proto", help="directory of flow_pb2.py")
    parser.add_argument("--netobs", action="store_true",
                        help="implement netobs.Collector, too")
    parser.add_argument("--otlp", action="store_true",
                        help="implement LogsService instead")
    return parser.parse_args()


def server_options(options):
    found = [("grpc.so_reuseport", 0)]
    if options.max_message:
        found.append(("grpc.max_receive_message_length", options.max_message))
    return found


def main():
    options = parse()
    sizes = None
    if options.otlp:
        sizes = lambda text: [log.attributes["netobs.bytes"] for log in otlp.Request(text).logs]
    elif options.proto:
        sys.path.insert(0, options.proto)
        import flow_pb2 # pylint: disable=import-error,import-outside-toplevel
        sizes = lambda text: [entry.l3_bytes for entry in flow_pb2.Records.FromString(text).entries]

    cut(options.out)
    collector = Collector(options, sizes)
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(16),
                         options=server_options(options))
    methods = {"pbflow.Collector/Send": collector.send}
    if options.netobs:
        methods["netobs.Collector/Send"] = collector.send_others
    if options.otlp:
        methods = {"opentelemetry.proto.collector.logs.v1.LogsService/Export": collector.export}
    server.add_generic_rpc_handlers([
        grpc.method_handlers_generic_handler(
            service, {method: grpc.unary_unary_rpc_method_handler(take)})
        for (service, method), take in
        ((name.split("/"), take) for name, take in methods.items())])
    if options.cert:
        port = server.add_secure_port(options.address, credentials(options))
    else:
        port = server.add_insecure_port(options.address)
    if not port:
        sys.exit(f"cannot listen at {options.address}")
    server.start()
    print(port, flush=True)
    # Answer the received calls, then exit, as in a rolling update.
    signal.sigwait([signal.SIGTERM])
    server.stop(5).wait()
    os._exit(0)


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    main()
