#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
The BPF and end-to-end tests under other kernels, each booted in QEMU. arm64 is not
among those by default; its guest runs what ./dev test does, unless options change that.
"""

import argparse
import concurrent.futures
import os
import shutil
import signal
import sys
from dataclasses import dataclass

import boot
import dissect
import fetch
import job
import kernels
import report
import results

sys.path.insert(0, os.path.join(job.SOURCE, "tests/verifier"))
# pylint: disable=wrong-import-position
import budget
import compilers

NAMES = [*kernels.SUITES, kernels.ARM64]
CPUS, MANY_CPUS = 2, 8
# Of the tests that guests run, and of those that ./dev test has time for.
LABELS, QUICK_LABELS = "bpf|e2e|measure|guest", "kernel"
# Those that ./dev test runs in one guest only: in the oldest, what may be too much for its
# verifier, and what loads no program and asks nothing of the kernel that was not in 5.10; elsewhere,
# what the machine may lack.
QUICK_IN_ONE = {**dict.fromkeys(("bpf.compilers_built", "bpf.drain", "bpf.generation", "bpf.map",
                                 "e2e.exact", "e2e.exact_tunnel"), "5.10"), "e2e.once_vlan": "6.12"}


@dataclass
class Run:
    """One boot of one kernel."""

    kernel: kernels.Kernel
    cpus: int
    out: str

    @property
    def title(self):
        cpus = f" x{self.cpus}" if self.cpus != CPUS else ""
        return self.kernel.release.removesuffix("-amd64") + cpus


def parse_arguments():
    parser = argparse.ArgumentParser(prog="./dev vm", description=__doc__)
    parser.add_argument("version", nargs="*", metavar="VERSION",
                        help=f"{', '.join(NAMES)}; all but {kernels.ARM64} by default, "
                        f"and the newest with {MANY_CPUS} CPUs")
    parser.add_argument("--cpus", type=int, metavar="N",
                        help=f"CPUs of a guest (default: {CPUS})")
    parser.add_argument("--tests", metavar="PATTERN",
                        help="run those whose name matches")
    parser.add_argument("--quick", action="store_true",
                        help="run what a kernel can change, as ./dev test does")
    parser.add_argument("--shell", action="store_true",
                        help="run a shell instead")
    parser.add_argument("--refresh", action="store_true",
                        help="fetch the kernels anew")
    parser.add_argument("--update-baseline", action="store_true",
                        help="write down what the programs cost the verifier")
    parser.add_argument("--jobs", type=int, metavar="N", default=os.cpu_count(),
                        help="guests at a time (default: %(default)s)")
    parser.add_argument("--limit", type=int, metavar="SECONDS", default=3600,
                        help="stop a guest that takes longer (default: %(default)s)")
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    for version in arguments.version:
        if version not in NAMES:
            parser.error(f"there is no kernel {version}, but {', '.join(NAMES)}")
    if kernels.ARM64 in arguments.version and len(arguments.version) > 1:
        parser.error(f"{kernels.ARM64} has a build of its own: run it alone")
    arguments.quick = arguments.quick and not arguments.tests
    arguments.labels = QUICK_LABELS if arguments.quick else LABELS
    arguments.tests = arguments.tests or "."
    if arguments.shell and len(arguments.version) != 1:
        parser.error("--shell wants one VERSION")
    return arguments


def plan(arguments):
    """The boots that were asked for, their kernels fetched."""
    chosen = [(name, arguments.cpus or CPUS)
              for name in arguments.version or kernels.SUITES]
    if not (arguments.version or arguments.cpus or arguments.update_baseline):
        chosen.append((list(kernels.SUITES)[-1], MANY_CPUS))
    fetched = {name: fetch.ensure(name, arguments.refresh)
               for name in dict.fromkeys(name for name, _ in chosen)}
    return [Run(fetched[name], cpus,
                os.path.join(arguments.build, "vm", f"{name}-{cpus}"))
            for name, cpus in chosen]


def start(run, lines, limit_s, **options):
    """Boot once; whether the guest came to its end."""
    shutil.rmtree(run.out, ignore_errors=True)
    os.makedirs(run.out)
    job.write(run.out, run.kernel, lines)
    with dissect.answering(os.path.join(run.out, job.TSHARK)):
        return boot.boot(run.kernel, run.out, run.cpus, limit_s, **options)


def together(action, runs, jobs):
    """@action of each run, several at a time; an error stops them all."""
    with concurrent.futures.ThreadPoolExecutor(max(1, jobs)) as pool:
        try:
            return list(pool.map(action, runs))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            boot.stop_all()
            raise


def build_ends(build):
    """{clang: its objects} of the oldest and of the newest that are here, which guests load."""
    here = [clang for clang in compilers.tested() if shutil.which(f"clang-{clang}")]
    return compilers.build_objects(build, sorted({*here[:1], *here[-1:]}))


def test(arguments, runs):
    """All guests' tests, and the table; whether all is well."""
    if kernels.ARM64 not in arguments.version:
        build_ends(arguments.build)

    def one(run):
        elsewhere = [test for test, name in QUICK_IN_ONE.items()
                     if arguments.quick and run.kernel.name in
                     {*QUICK_IN_ONE.values()} - {name}]
        lines = job.look(arguments.build) + job.ctest(
            arguments.build, run.cpus, arguments.labels, arguments.tests, elsewhere)
        guest = results.collect(run.out, run.title, start(run, lines, arguments.limit))
        if not guest.problem:
            guest.tests["verifier"] = look_at_verifier(arguments, run)
        print(f"{run.title}: {'FAILED: ' * bool(guest.failures)}"
              f"{', '.join(guest.failures) or 'passed'}", flush=True)
        return guest

    guests = together(one, runs, arguments.jobs)
    print(f"\n{report.table(guests)}\n")
    for line in report.absences(guests):
        print(line)
    print("\nThe verifier (kernel, clang, program, instructions, stack):")
    for run in runs:
        print("".join(cost.line() for cost in costs(arguments, run)), end="")
    for run, guest in zip(runs, guests):
        if guest.failures:
            console = results.read(run.out, "console.log")
            print(f"\n{report.failure(guest, console)}\nMore in {run.out}")
    return not any(guest.failures for guest in guests)


def costs(arguments, run):
    return budget.parse(results.read(run.out, "verifier"), run.kernel.release,
                        job.clang(arguments.build),
                        budget.chains_of(job.objects(arguments.build)))


def look_at_verifier(arguments, run):
    """As bpf.verifier does on this machine: a guest has no time to do it twice."""
    wrong = budget.wrong(costs(arguments, run), budget.chains_of(job.objects(arguments.build)),
                         job.clang(arguments.build))
    if not os.path.exists(os.path.join(run.out, job.VERIFIED)):
        wrong.append(f"the kernel refuses programs: see {run.out}/output.log")
    return results.Outcome("failed" if wrong else "passed", output=wrong)


def update_baseline(arguments, runs):
    """The verifier's figures of the guests and of this machine."""
    def one(run):
        if not start(run, job.look(arguments.build), arguments.limit) or \
                not costs(arguments, run):
            raise fetch.FetchError(f"{run.title} tells no figures: see "
                                   f"{run.out}")
        return costs(arguments, run)

    found = [cost for part in together(one, runs, arguments.jobs)
             for cost in part]
    for clang, directory in build_ends(arguments.build).items():
        found += compilers.costs(arguments.build, clang, directory)
    budget.write_baseline(found)
    return True


def shell(arguments, runs):
    return start(runs[0], job.shell(), arguments.limit, shell=True)


def interrupt(_signal, _frame):
    raise KeyboardInterrupt


def main():
    signal.signal(signal.SIGTERM, interrupt)
    arguments = parse_arguments()
    arguments.build = os.path.abspath(arguments.build)
    action = (shell if arguments.shell else update_baseline
              if arguments.update_baseline else test)
    try:
        good = action(arguments, plan(arguments))
    except fetch.FetchError as error:
        sys.exit(f"./dev vm: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(not good)


if __name__ == "__main__":
    main()
