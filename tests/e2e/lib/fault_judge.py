# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Has netobsctl judge runs of the fault laboratory, and compares what it says with what was true."""

import collections
import concurrent.futures
import json
import os
import subprocess
import sys
import time

from lib import fault_run
from lib import lab
from lib import observer
from lib.fault_kinds import KINDS

LEAST_EFFECT = .1 # of the window: smaller effects do not count
WITHOUT = {"threads": ("ThreadsNs", "queue", "cpu"), "limits": ("LimitsNs", None, None),
           "queues": (None, "queue", None), "hosts": (None, "host", None)}
MARKS = "<!-- verdicts: made by e2e.faults -->\n", "<!-- end -->\n"


def runs(directory):
    """Directories of runs."""
    return sorted(entry.path for entry in os.scandir(directory) if os.path.exists(f"{entry.path}/truth.jsonl"))


def make(jobs, directory, at_once, seconds=fault_run.SECONDS, **fixed):
    """
    Runs of [(kind, seed)], so many at once, each by a process of its own; @fixed: as of fault_run.Run. @return their
    directories
    """
    processes = []

    def run(job):
        path = os.path.join(directory, "{}.{}".format(*job))
        words = *map(str, (*job, path, seconds)), json.dumps(fixed)
        process = subprocess.Popen([sys.executable, "-m", "lib.fault_run", *words],
                                   cwd=os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                                   stderr=subprocess.PIPE, text=True)
        processes.append(process)
        errors = process.communicate()[1]
        if process.returncode:
            raise RuntimeError(f"{job[0]} {job[1]}: {errors}")
        return path
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        try:
            return list(pool.map(run, jobs))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.terminate()
            raise


def without(path, what, to):
    """The records without some evidence."""
    member, kind, queue = WITHOUT[what]
    with open(to, "w", encoding="utf-8") as file:
        for one in lab.json_lines(path):
            if member:
                one.pop(member, None)
            if one["type"] != kind or queue not in (None, one.get("Kind")):
                file.write(json.dumps(one) + "\n")
    return to


class Judged:
    """A run, and the verdict on it. @evidence: what is left out, of WITHOUT, or a host, "a" or "b"; None: nothing"""

    def __init__(self, path, scratch, evidence=None):
        self.path = path
        with open(f"{path}/truth.jsonl", encoding="utf-8") as file:
            self.truth = json.loads(next(file))
        self.kind, self.effect = self.truth["kind"], self.truth["effect"]
        files = [f"{path}/{letter}.json" for letter in "ab" if letter != evidence]
        if evidence in WITHOUT:
            files = [without(file, evidence, os.path.join(scratch, f"{number}.json"))
                     for number, file in enumerate(files)]
        begin = time.monotonic()
        self.verdict = self.ask(files, evidence == "a")
        self.took_s = self.truth["ready_s"] + time.monotonic() - begin
        self.said = self.verdict["Place"], self.verdict["Cause"]
        self.certainty = self.verdict["Certainty"]

    def ask(self, files, is_shifted):
        """The window ends with the last turn of the first file; its clock counts."""
        since_ns = self.truth["since_ns"] + (self.truth["clock_ns"] if is_shifted else 0)
        last_ns = max(one["TimeNs"] + one["TotalNs"] for one in lab.json_lines(files[0]) if one["type"] == "turn")
        times = "--for", f"{(last_ns - since_ns) // 1_000_000}ms", "--before", f"{self.truth['seconds'] * 1000:.0f}ms"
        done = observer.run("diagnose", *(word for file in files for word in ("-r", file)), *times, "-o", "json",
                            program=observer.netobsctl(release=True), code=None)
        verdicts = [json.loads(line) for line in done.stdout.splitlines()]
        return next((one for one in verdicts if one["DstPort"] == self.truth["server"]["port"]),
                    {"Place": "none", "Cause": done.stderr.strip(), "Certainty": "not sure"})

    def is_control(self):
        return self.truth["truths"][0][0] == "none"

    def counts(self):
        """A fault that was felt; a control, in which nothing was, not even what else the machine did."""
        return (abs(self.effect) < LEAST_EFFECT) == self.is_control()

    def is_place_right(self):
        return self.said[0] in [place for place, _ in self.truth["truths"]]

    def is_cause_right(self):
        return list(self.said) in self.truth["truths"]

    def is_wrong_for_sure(self):
        """Another place, at certain; "none" is one, too, of a fault that was felt."""
        is_right = self.is_place_right() or self.said[0] == "beyond" or \
            not self.counts() and (self.is_control() or self.said[0] == "none")
        return self.certainty == "certain" and not is_right

    def culprit(self):
        """Of rivals and CPUs, if the cause is right: whether flow and process are; None: it has none"""
        known = self.truth["culprits"]
        if not known or not self.is_cause_right() or self.said[1] not in ("qdisc", "queue", "cpu"):
            return None, None
        shares = [one for one in self.verdict.get("Shares", []) if not one.get("Traced")]
        first = shares[0] if shares else {}
        is_pid = None if self.said[1] == "queue" else first.get("Pid") in [one["pid"] for one in known]
        names = [name for name in known[0] if name != "pid"]
        is_flow = any(all(one[name] == first.get(name) for name in names) for one in known) if names else None
        return is_flow, is_pid

    def is_clock_right(self):
        """None: no bound was stated. The clocks drift, while the verdict has one offset."""
        bound = self.verdict.get("ClockBoundNs")
        if not bound:
            return None
        drift = abs(self.truth["ppm"]) * 1e3 * (2 * self.truth["seconds"] + 2)
        return abs(self.verdict.get("ClockNs", 0) - self.truth["clock_ns"]) <= bound + drift

    def __str__(self):
        truths = " or ".join(map(": ".join, self.truth["truths"]))
        return (f"{os.path.basename(self.path)} ({self.truth['workload']}, side {self.truth['side']}, effect "
                f"{self.effect:.0%}): {truths}; said {': '.join(self.said)}, {self.certainty}")


def share(flags):
    """@return of those that are known: how many are true, and how many there are"""
    known = [one for one in flags if one is not None]
    return sum(known), len(known)


def sums(judged):
    """What the tests hold: {name: (right, all)}"""
    counted = [one for one in judged if one.counts() and not one.is_control()]
    culprits = [one.culprit() for one in counted]
    return {"place": share(one.is_place_right() for one in counted),
            "cause": share(one.is_cause_right() for one in counted),
            "no other place at certain": share(not one.is_wrong_for_sure() for one in judged),
            "controls without an alarm": share(one.said[0] == "none" or one.certainty == "not sure"
                                               for one in judged if one.is_control() and one.counts()),
            "flow of the culprit": share(flow for flow, _ in culprits),
            "process of the culprit": share(pid for _, pid in culprits),
            "clock within its bound": share(one.is_clock_right() for one in judged)}


def table(judged):
    """Kinds, and what was said of them, in Markdown."""
    lines = ["| fault | is | runs | place | cause | said |", "| --- | --- | --- | --- | --- | --- |"]
    by_kind = collections.defaultdict(list)
    for one in judged:
        by_kind[one.kind].append(one)
    for kind, ones in by_kind.items():
        counted = [one for one in ones if one.counts()]
        said = collections.Counter("none" if one.said[0] == "none" else ": ".join(one.said) for one in counted)
        truths = ["none" if place == "none" else f"{place}: {cause}" for place, cause in KINDS[kind].truths]
        cells = [kind.replace("_", " "), ", ".join(truths), len(counted), sum(one.is_place_right() for one in counted),
                 sum(one.is_cause_right() for one in counted),
                 ", ".join(f"{name} {number}" for name, number in said.most_common())]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    lines += ["", "| | right | of |", "| --- | --- | --- |"]
    lines += [f"| {name} | {right} | {number} |" for name, (right, number) in sums(judged).items()]
    return "\n".join(lines) + "\n"


def write_table(path, judged):
    text = lab.read(path)
    head, rest = text.split(MARKS[0])
    lab.write(path, f"{head}{MARKS[0]}\n{table(judged)}\n{MARKS[1]}{rest.split(MARKS[1])[1]}")


def kept(where):
    """The directory of NETOBS_FAULT_OUT, or one that goes; runs make it."""
    return os.path.abspath(os.environ.get("NETOBS_FAULT_OUT") or where.path("runs"))
