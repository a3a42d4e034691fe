# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""What the commands of ./dev bench have in common."""

import atexit
import json
import os
import signal
import sys

from lib import lab

EXIT_INTERRUPTED = 130


def write(path, results):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
        file.write("\n")


def run(main):
    """Exits with what @main returns; its namespaces are removed, whatever ends it."""
    signal.signal(signal.SIGTERM, lab.interrupt)
    atexit.register(lab.close_all)
    lab.remove_stale()
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
