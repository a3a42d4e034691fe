# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Receivers of OTLP, which misbehave as asked."""

import collections
import os
import threading

from lib import grpc_lab
from lib import http_lab
from lib import otlp


class HttpReceiver(http_lab.Collector):
    """
    Which records were accepted, refused, or taken without an answer: those that are bad are rejected
    in a partial success.
    """

    def __init__(self, *arguments, **options):
        self.found = []
        self.rejected = 0  # in answers that were sent
        self.says = ""  # the error message
        self.garbage = None  # an answer to all that is taken
        self.entry = otlp.Log  # or otlp.Point
        self.lock_requests = threading.Lock()
        super().__init__(*arguments, **options)

    def decode(self, body):
        request = otlp.Request(body, self.entry)
        with self.lock_requests:
            self.found.append(request)
        return [{"Bytes": log.attributes.get("netobs.bytes", 1)} for log in request.logs]

    def refusal(self, status):
        if status == "429":
            return super().refusal(status)
        return http_lab.Answer(int(status), otlp.put(2, b"not now"))  # google.rpc.Status

    def take(self, records, is_unanswered):
        with self.lock:
            numbers = [record["Bytes"] - 1 for record in records]
            if self.garbage is not None:
                return http_lab.Answer(200, self.garbage)
            if len(numbers) > self.too_many:
                return http_lab.Answer(413, b"")
            bad = list(filter(self.is_bad, numbers))
            if not is_unanswered:
                self.refused.update(bad)
                self.rejected += len(bad)
            self.keep([], [n for n in numbers if not self.is_bad(n)], is_unanswered)
            return http_lab.Answer(200, otlp.response(len(bad), self.says or "poison" * bool(bad)),
                                   Content_Type="application/x-protobuf")

    def logs(self):
        return [log for request in self.found for log in request.logs]


class GrpcReceiver(grpc_lab.Collector):
    """grpc_server.py as a receiver of OTLP."""

    def __init__(self, where, *options, **more):
        super().__init__(where, "--otlp", *options, **more)

    def spec(self, *options, host=None):
        return "otlp" + super().spec(*options, host=host).removeprefix("grpc")

    def requests(self):
        return [otlp.Request(message) for message in self.messages()]

    def logs(self):
        return [log for request in self.requests() for log in request.logs]

    def rejected(self):
        """How often each record was, in answers of success."""
        path = f"{self.out}.rejected"
        if not os.path.exists(path):
            return collections.Counter()
        with open(path, encoding="ascii") as file:
            return collections.Counter(int(line) - 1 for line in file)
