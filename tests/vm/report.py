# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""The results for people: one table, and notes to it."""

TAIL = 40


def row(cells, widths):
    return "  ".join(cell.ljust(width) if at == 0 else cell.rjust(width)
                     for at, (cell, width) in enumerate(zip(cells, widths))
                     ).rstrip()


def names_of(guests, what):
    """In the order in which they first came."""
    return list(dict.fromkeys(name for guest in guests
                              for name in getattr(guest, what)))


def feature_cell(guest, name):
    if name not in guest.features:
        return "?"
    return "yes" if guest.features[name] else "no"


def test_cell(guest, name):
    outcome = guest.tests.get(name)
    if not outcome:
        return "not run"
    if outcome.status == "absent":
        return "-"
    return (f"{outcome.seconds:.0f} s" if outcome.status == "passed"
            else outcome.status.upper())


def table(guests):
    rows = [["", *(guest.title for guest in guests)]]
    for name in names_of(guests, "features"):
        rows.append([name, *(feature_cell(guest, name) for guest in guests)])
    rows.append([""])
    for name in sorted(names_of(guests, "tests")):
        rows.append([name, *(test_cell(guest, name) for guest in guests)])
    widths = [max(len(line[at]) for line in rows if at < len(line))
              for at in range(len(rows[0]))]
    return "\n".join(row(line, widths) for line in rows)


def absences(guests):
    """Why a test was not run: {"test: reason": [kernels]}"""
    found = {}
    for guest in guests:
        for name, outcome in guest.tests.items():
            for reason in dict.fromkeys(outcome.absences):
                found.setdefault(f"{name}: {reason}", []).append(guest.title)
    return [f"-  {words} ({', '.join(titles)})"
            for words, titles in found.items()]


def tail(lines):
    return [f"  | {line}" for line in lines[-TAIL:]]


def failure(guest, console):
    """What went wrong in a guest, and the last words of whatever did."""
    lines = []
    if guest.problem:
        lines += [f"{guest.title}: {guest.problem}", *tail(console.splitlines())]
    for name, outcome in guest.tests.items():
        if outcome.failed:
            lines += [f"{guest.title}: {name} {outcome.status}",
                      *tail(outcome.output)]
    return "\n".join(lines)
