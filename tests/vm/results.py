# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""What a guest left in its directory: the features it has, and its tests."""

import json
import os
import re
from dataclasses import dataclass, field

# ctest -V puts the number of a test before each line of its output.
STARTED = re.compile(r"^\s+Start\s+(\d+): (\S+)$")
ENDED = re.compile(r"^\s*\d+/\d+ Test +#\d+: (\S+) \.*(.*?) +([\d.]+) sec$")
SKIPPED = re.compile(r"skipped '(this kernel has no .*)'$")
SAID = re.compile(r"^(\d+): (.*)$")


@dataclass
class Outcome:
    """passed, absent, or the kind of failure; and the output."""

    status: str
    seconds: float = 0
    output: list = field(default_factory=list)

    @property
    def failed(self):
        return self.status not in ("passed", "absent")

    @property
    def absences(self):
        """What it lacks: the last thing that a test says; or parts of it do."""
        if self.status == "absent":
            return self.output[-1:]
        parts = [SKIPPED.search(line) for line in self.output]
        return [f"in part: {part.group(1)}" for part in parts if part]


@dataclass
class Guest:
    """One run of one kernel."""

    title: str
    features: dict = field(default_factory=dict)
    tests: dict = field(default_factory=dict)
    problem: str = ""

    @property
    def failures(self):
        """What failed, in words; empty: nothing."""
        return [self.problem] * bool(self.problem) + [
            f"{name} {outcome.status}" for name, outcome in self.tests.items()
            if outcome.failed]


def read(directory, name):
    try:
        with open(os.path.join(directory, name), encoding="utf-8",
                  errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def status_of(words):
    words = words.strip(" *").lower()
    return {"skipped": "absent"}.get(words, words)


def parse_tests(log):
    """{name: Outcome} of what ctest said; what never ended is "hangs"."""
    tests, by_number = {}, {}
    for line in log.splitlines():
        if found := STARTED.match(line):
            number, name = found.groups()
            tests[name] = by_number[number] = Outcome("hangs")
        elif (found := SAID.match(line)) and found.group(1) in by_number:
            by_number[found.group(1)].output.append(found.group(2))
        elif found := ENDED.match(line):
            name, words, seconds = found.groups()
            tests[name].status = status_of(words)
            tests[name].seconds = float(seconds)
    return tests


def parse_features(text):
    return {feature["name"]: feature["available"]
            for feature in json.loads(text)["features"]} if text else {}


def collect(directory, title, ended):
    """The guest's results; not @ended: it did not switch itself off."""
    guest = Guest(title, parse_features(read(directory, "check.json")),
                  parse_tests(read(directory, "output.log")))
    if not ended:
        guest.problem = "hung, and was stopped"
    elif not os.path.exists(os.path.join(directory, "ended")):
        guest.problem = "crashed"
    elif not guest.tests:
        guest.problem = "ran no test"
    return guest
