# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""What a guest is to do: shell text that guest.sh reads."""

import glob
import os
import re
import shlex

from boot import SOURCE

# An emulated machine is some twenty times slower than a real one.
SHRINK = 10
# Where a guest puts what tshark is to read, in the directory that it may write to.
TSHARK = "tshark"
# Is there once the verifier has taken all programs.
VERIFIED = "verified"


def clang(build):
    """The major version of what compiled the BPF programs."""
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as file:
        return int(re.search(r"^NETOBS_BPF_CLANG_VERSION:\w+=(.*)$",
                             file.read(), re.M).group(1))


def objects(build):
    """Those of the library's programs."""
    sources = sorted(glob.glob(f"{SOURCE}/src/bpf/*.bpf.c"))
    return [f"{build}/bpf/{os.path.basename(source)[:-2]}.o" for source in sources]


def verifier(build):
    """The command that measures the cost of the library's programs to the verifier."""
    return [f"{build}/verifier", *objects(build)]


def look(build):
    return [f"{shlex.join([f'{build}/netobsctl', 'check', '-o', 'json'])} "
            '>"$out/check.json"',
            f'{shlex.join(verifier(build))} >"$out/verifier" && touch "$out/{VERIFIED}"']


# Compilers, collectors, files, disks and HTTP are the same under any kernel, and a broker takes
# minutes to start without hardware virtualisation. The host looks at what look() measures.
NOT_HERE = r"^bpf\.(stack|compilers|verifier)$|^e2e\.(kafka|ipfix|grpc|json_net|http|flowlogs|loki|opensearch|fleet|metrics|rotation|spool|output_faults|recipes|annotate)"


# A topology that failed is looked for under another kernel.
PASSED_ON = ("NETOBS_TEST_SEED", "NETOBS_TEST_TOPOLOGIES", "NETOBS_TEST_PROGRAMS")


def passed_on():
    return [f"export {name}={shlex.quote(os.environ[name])}" for name in PASSED_ON
            if name in os.environ]


# A guest's CPUs share one of the host's: more tests at a time only time out.
def ctest(build, cpus, labels, tests, elsewhere=()):
    left_out = "|".join([NOT_HERE, *(f"^{re.escape(test)}$" for test in elsewhere)])
    command = ["ctest", "--test-dir", build, "-V", "-j", str(min(cpus, 2)),
               "-L", f"^({labels})$", "-R", tests, "-E", left_out]
    return [f"export NETOBS_TEST_SHRINK={SHRINK}",
            'export NETOBS_TEST_FEATURES="$(<"$out/check.json")"',
            f'export NETOBS_TEST_TSHARK="$out/{TSHARK}"', *passed_on(), shlex.join(command)]


def shell():
    return ["tty=/dev/$(</sys/class/tty/console/active)",
            'setsid -cw bash -l <"$tty" >"$tty" 2>&1']


def write(out, kernel, lines):
    with open(os.path.join(out, "job"), "w", encoding="utf-8") as file:
        file.write(f"modules={shlex.quote(kernel.modules)}\n")
        file.write("run()\n{\n\tcd /tmp || return\n")
        file.writelines(f"\t{line}\n" for line in lines)
        file.write("}\n")
