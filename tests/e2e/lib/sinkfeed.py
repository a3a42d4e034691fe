# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Sinks that are fed without traffic."""

import json
import os
import re
import subprocess

from lib import lab
from lib import observer


class Feed:
    """sinkfeed, which gives record n the number of bytes n + 1."""

    def __init__(self, where, spec, *options, ns=None, release=True):
        tool = os.path.join(os.environ["NETOBS_RELEASE"], "tools", "sinkfeed") if release else lab.tool("sinkfeed")
        self.err = where.path("feed-messages")
        with open(self.err, "wb") as err:
            self.process = where.spawn(tool, spec, *options, ns=ns, stdout=subprocess.PIPE, stderr=err, text=True)

    @property
    def lines(self):
        """Its messages so far."""
        return lab.read(self.err).splitlines()

    def matching(self, pattern):
        return [line for line in self.lines if re.search(pattern, line)]

    def wait_line(self, pattern):
        lab.wait_for(lambda: self.matching(pattern) or self.process.poll() is not None, pattern)
        if not self.matching(pattern):
            raise AssertionError(f"no line has {pattern}: {self.lines}")

    def finish(self, code=0):
        """What became of the records, of which there may be many."""
        out, _ = self.process.communicate(timeout=400)
        observer.check_sanitizer("\n".join(self.lines))
        if self.process.returncode != code:
            raise AssertionError(f"exit {self.process.returncode}: {out} {self.lines}")
        return json.loads(out) if out else None
