# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
The method of netobs-bench, which all comparisons share: bench/interval.c says how exactly a
ratio is known, bench/others.c what other processes took.
"""

import collections
import ctypes
import time

from lib import lab

# As in bench/bench.h and bench/rounds.c.
WIDTH = 0.02 # of an interval that is published: less
LEAST_ROUNDS, MOST_ROUNDS = 7, 400
RUN = 10 # rounds
MOST_OTHERS = 0.05 # of a CPU, in a run
MOST_REPEATS = 5 # of runs, if there may be so many; then others belong to this host

Interval = collections.namedtuple("Interval", "median low high")


class _Interval(ctypes.Structure):
    _fields_ = [(name, ctypes.c_double) for name in Interval._fields]


def _library():
    library = ctypes.CDLL(lab.tool("method.so"))
    library.interval_of.restype = _Interval
    library.interval_decides.restype = ctypes.c_bool
    library.others_cpu_seconds.restype = ctypes.c_double
    return library


def interval(values):
    """Of the median of @values, one per round."""
    found = _library().interval_of((ctypes.c_double * len(values))(*values),
                                   ctypes.c_uint32(len(values)))
    return Interval(found.median, found.low, found.high)


def is_narrow(found, width=WIDTH):
    return found.high - found.low < width


def decides(rounds, most):
    """Whether widths decide after so many of them."""
    return _library().interval_decides(ctypes.c_uint32(rounds), ctypes.c_uint32(most))


class Others:
    """What other processes take, in CPUs, from now on."""

    def __init__(self):
        self.seconds = _library().others_cpu_seconds()
        self.start = time.monotonic()

    def share(self):
        return (_library().others_cpu_seconds() - self.seconds) / \
            (time.monotonic() - self.start)


class TooNoisy(Exception):
    """Nothing can be published. Its text has a line for each ratio."""


class Method:
    """Measures until it is exact enough, and remembers how that went."""

    def __init__(self, width=WIDTH, most=MOST_ROUNDS):
        self.width, self.most = width, most
        self.repeated = 0 # runs
        self.others = 0.0 # the most in a run that counts

    def undisturbed(self, run):
        """What @run returns, when it is repeated while others take too much."""
        while True:
            others = Others()
            found = run()
            share = others.share()
            if share <= MOST_OTHERS or \
                    self.repeated == min(MOST_REPEATS, self.most // RUN):
                self.others = max(self.others, share)
                return found
            self.repeated += 1

    def rounds(self, measure_round, values, show=lambda rounds, intervals: None):
        """
        What @measure_round returns, in each of as many rounds as it takes. @values gets all
        of them so far, and returns {name of a ratio: its value in each}.
        """
        rounds, intervals, is_wide = [], {}, True
        while len(rounds) < self.most and (is_wide or not decides(len(rounds), self.most)):
            run = min(RUN, self.most - len(rounds))
            rounds += self.undisturbed(lambda: [measure_round() for _ in range(run)])
            intervals = {name: interval(found) for name, found in values(rounds).items()}
            is_wide = not all(is_narrow(found, self.width) for found in intervals.values())
            show(len(rounds), intervals)
        self.check(intervals, len(rounds))
        return rounds

    def check(self, intervals, rounds):
        wide = [f"after {rounds} rounds, the ratio of {name} is between {found.low:.3f} and "
                f"{found.high:.3f}, an interval of {found.high - found.low:.3f}; "
                f"below {self.width:g} is needed"
                for name, found in intervals.items() if not is_narrow(found, self.width)]
        if wide:
            raise TooNoisy("\n".join(wide))


def summary(methods):
    """The conditions of all that they measured."""
    return {"width": max((one.width for one in methods), default=WIDTH),
            "others": max((one.others for one in methods), default=0.0),
            "repeated": sum(one.repeated for one in methods)}
