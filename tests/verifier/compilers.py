#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
Build the BPF programs with each clang, load them in the configurations that users can choose,
and measure the stack of their chains of calls. Exits with 1 if the kernel refuses one.
"""

import argparse
import concurrent.futures
import functools
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field

import budget
import stack

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOLS = ("bpftool", "cmake", "ninja-build", "pkgconf", "libbpf-dev")
# Where the clangs are that this machine has no packages of: commands of ./dev chroot.
RELEASES = {"trixie": (17, 18)}
SKIPPED = 77
LINE = re.compile(r"(\S*) +(.+): (loaded|refused: .*|not to be had .*)$")


@dataclass
class Result:
    """What became of the programs of one clang."""

    clang: int
    sets: dict = field(default_factory=dict)  # name: [loaded, others]
    chains: dict = field(default_factory=dict)
    wrong: list = field(default_factory=list)
    summary: str = ""


def tested():
    """The majors that CMake names."""
    with open(f"{SOURCE}/cmake/NetobsBpf.cmake", encoding="ascii") as file:
        return [int(major) for major in re.search(
            r"^set\(NETOBS_BPF_CLANGS ([\d ]+)\)", file.read(), re.M).group(1).split()]


def quiet(*command):
    done = subprocess.run(command, text=True, check=False, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit(f"{' '.join(command)}:\n{done.stdout[-5000:]}")


def commands(clang, directory):
    return [["cmake", "-S", "tests/verifier", "-B", directory, "-G", "Ninja",
             f"-DNETOBS_BPF_CLANG=/usr/bin/clang-{clang}",
             f"-DNETOBS_BPF_SHARED={SOURCE}/build/bpf-shared"],
            ["ninja", "-C", directory, "bpf_objects"]]


@functools.cache
def is_here(clang):
    """This machine has it, or its packages do."""
    if shutil.which(f"clang-{clang}"):
        return True
    if not shutil.which("apt-cache"):
        return False
    policy = subprocess.run(["apt-cache", "policy", f"clang-{clang}"], text=True, check=False,
                            stdout=subprocess.PIPE).stdout
    return bool(re.search(r"Candidate: \d", policy))


def release_of(clang):
    """The release whose packages have it, if this machine lacks it; else None."""
    return next((name for name, clangs in RELEASES.items()
                 if clang in clangs and not is_here(clang)), None)


def to_be_had():
    return [clang for clang in tested() if is_here(clang) or release_of(clang)]


def build_elsewhere(release, clangs):
    """In a clean system; there, build/ is build/RELEASE here."""
    lines = [" ".join(command) for clang in clangs
             for command in commands(clang, f"build/compilers/{clang}")]
    packages = [*TOOLS, *(f"clang-{clang}" for clang in clangs)]
    quiet(f"{SOURCE}/dev", "chroot", "--with", " ".join(packages), release,
          "sh", "-ec", "\n".join(lines))
    return {clang: f"{SOURCE}/build/{release}/compilers/{clang}/bpf" for clang in clangs}


def directory_of(build, clang):
    """Where its objects are, if this machine makes them."""
    with open(f"{build}/CMakeCache.txt", encoding="utf-8") as file:
        own = re.search(r"^NETOBS_BPF_CLANG_VERSION:\w+=(.*)$", file.read(), re.M).group(1)
    return f"{build}/bpf" if clang == int(own) else f"{build}/compilers/{clang}/bpf"


def build_objects(build, clangs):
    """{clang: directory of its objects}"""
    found = {clang: directory_of(build, clang) for clang in clangs
             if not release_of(clang)}
    for release in RELEASES:
        there = [clang for clang in clangs if release_of(clang) == release]
        if there:
            found |= build_elsewhere(release, there)
    for clang, directory in found.items():
        if directory.startswith(f"{build}/compilers/"):
            for command in commands(clang, os.path.dirname(directory)):
                quiet("env", "-C", SOURCE, *command)
    return found


def objects(directory):
    return [f"{directory}/{name[:-2]}.o" for name in sorted(os.listdir(f"{SOURCE}/src/bpf"))
            if name.endswith(".bpf.c")]


def costs(build, clang, directory):
    """What the verifier of this machine takes."""
    text = subprocess.run([f"{build}/verifier", *objects(directory)], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    return budget.parse(text, os.uname().release, clang,
                        budget.chains_of(objects(directory)))


def names_of(sets):
    """Sets that are loaded together, or the one that takes the place of another."""
    names = sets.split("+")
    return names[-1:] if names[-1] == "connect_traced" else names


def measure(build, clang, directory, extent):
    """Load all, and look at the stack."""
    others = [directory] if directory != f"{build}/bpf" else []
    done = subprocess.run([f"{build}/matrix", *extent, f"{build}/bpf", *others],
                          text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    if done.returncode == SKIPPED:
        sys.exit(done.stderr)
    result = Result(clang)
    for line in done.stdout.splitlines():
        if not (found := LINE.match(line)):
            result.summary = " ".join([result.summary, line]).strip()
            continue
        name, _, outcome = found.groups()
        for name in names_of(name):
            result.sets.setdefault(name, [0, 0])[outcome != "loaded"] += 1
        if outcome.startswith("refused"):
            result.wrong.append(f"clang {clang}: {line}")
    if done.returncode:
        result.wrong.append(done.stderr[-20000:] or f"matrix exits with {done.returncode}")
    result.chains = budget.chains_of(objects(directory))
    result.wrong += budget.deep(result.chains, clang, budget.read_baseline())
    return result


def deepest(chains, name):
    of_set = [chain for program, chain in chains.items()
              if program.startswith(f"{name}/")]
    return max(of_set, key=stack.chain_bytes, default=[])


def table(results):
    print(f"{'clang':<5} {'set':<16} {'loaded':>6} {'absent or refused':>18}  stack")
    for result in results:
        for name, (loaded, others) in result.sets.items():
            chain = deepest(result.chains, name)
            print(f"{result.clang:<5} {name:<16} {loaded:>6} {others:>18}  "
                  f"{stack.chain_bytes(chain):>3}: {stack.words(chain)}")


def differences(results):
    """What the kernel takes of some compilers and not of others, in words."""
    found = []
    for result in results[1:]:
        for name in {*result.sets, *results[0].sets}:
            if result.sets.get(name) != results[0].sets.get(name):
                found.append(f"clang {result.clang}: {name}: (loaded, others) are "
                             f"{result.sets.get(name)}, of clang {results[0].clang} "
                             f"{results[0].sets.get(name)}")
    return found


def main():
    parser = argparse.ArgumentParser(prog="./dev compilers", description=__doc__)
    parser.add_argument("clang", nargs="*", type=int, metavar="MAJOR",
                        help="default: all that are tested")
    parser.add_argument("--ends", action="store_true",
                        help="the oldest and the newest that Debian here has, with few "
                        "configurations of the one that this build does not use")
    parser.add_argument("--built", action="store_true",
                        help="those that have been built here, with few configurations")
    parser.add_argument("--all", action="store_true",
                        help="each configuration, and not only all pairs of options")
    parser.add_argument("--packages", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--build", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    clangs = arguments.clang or to_be_had()
    for clang in clangs:
        if clang not in to_be_had():
            parser.error(f"clang {clang} is none of {to_be_had()}, which can be had here")
    if arguments.ends:
        here = [clang for clang in tested() if is_here(clang)]
        clangs = sorted({here[0], here[-1]})
    if arguments.packages:
        print(*(f"clang-{clang}" for clang in clangs if is_here(clang)), sep="\n")
        return
    build = os.path.abspath(arguments.build)
    if arguments.built: # a guest has no packages, and its other tests load the build's own programs
        directories = {clang: f"{build}/compilers/{clang}/bpf" for clang in tested()
                       if os.path.exists(f"{build}/compilers/{clang}/bpf")}
        if not directories:
            sys.exit("no objects of another clang have been built")
    else:
        directories = build_objects(build, clangs)
    extents = {clang: ["--few"] if arguments.built or
               arguments.ends and directory != f"{build}/bpf" else
               ["--all"] if arguments.all else []
               for clang, directory in directories.items()}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(
            lambda clang: measure(build, clang, directories[clang], extents[clang]), directories))
    table(results)
    wrong = [line for result in results for line in result.wrong]
    if not arguments.ends: # they load different numbers of configurations
        wrong += differences(results)
    for result in results:
        print(f"clang {result.clang}: {result.summary}")
    if wrong:
        print(*wrong, sep="\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
