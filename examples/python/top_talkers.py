#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
top_talkers.py [INTERFACE...]: each 5 seconds, the pairs of addresses with the most bytes.
Needs the binding (PYTHONPATH=build/release/python, or pip install ./python), and the privileges of netobs_start(3).
"""

import collections
import sys

import netobs


def main():
    sums = collections.Counter()

    def show():
        for (src, dst), count in sums.most_common(10):
            print(f"{src!s:>39} > {dst!s:39} {count:>15,} bytes")
        print()
        sums.clear()

    options = {"interfaces": sys.argv[1:]} if sys.argv[1:] else {}
    try:
        with netobs.Context(**options) as context:
            while (flows := context.poll()) is not None:
                for flow in flows:
                    sums[flow.src, flow.dst] += flow.bytes
                if flows:
                    show()
    except netobs.Error as error:
        sys.exit(f"top_talkers.py: {error.strerror}")
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
