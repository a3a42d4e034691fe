# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Cases that wait more than they work: several at a time, a process for each."""

import concurrent.futures
import subprocess
import sys
import time
import unittest


def names(suite):
    """As the command line of a test has them: Class.test."""
    if isinstance(suite, unittest.TestCase):
        yield suite.id().removeprefix("__main__.")
        return
    for part in suite:
        yield from names(part)


class Runner:
    def __init__(self, prepare):
        """@prepare: called in each process first."""
        self.prepare = prepare
        self.processes = []
        self.failed = []

    def run_case(self, name):
        begin = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, sys.argv[0], *sys.argv[1:], name],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            preexec_fn=self.prepare)
        self.processes.append(process)
        said, _ = process.communicate()
        if process.returncode:
            self.failed.append(name)
        return f"{said}{name}: {time.monotonic() - begin:.1f} s\n"

    def run(self, cases, count):
        # A thread lives until all are done: a process would die with its own.
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            done = [pool.submit(self.run_case, name) for name in cases]
            try:
                for one in concurrent.futures.as_completed(done):
                    print(one.result(), flush=True)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                for process in self.processes:
                    process.terminate()
                raise
        if self.failed:
            sys.exit(f"failed: {' '.join(self.failed)}")


def run(count, first, prepare):
    """All cases of the program, @first those whose names begin with these."""
    loader = unittest.defaultTestLoader
    cases = list(names(loader.loadTestsFromModule(sys.modules["__main__"])))
    cases.sort(key=lambda name: not name.split(".")[1].startswith(first))
    Runner(prepare).run(cases, count)
