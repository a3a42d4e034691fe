#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: mmdebstrap
"""
Run a command, or a shell, in a clean Debian: a minimal system with this tree, /dev, /proc and
/sys, and build/RELEASE as its build/. It is gone when the command has ended. Unchanged
systems, and the packages that were installed, stay in ~/.cache/netobs/chroots.
"""

import argparse
import contextlib
import fcntl
import glob
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
sys.path.append(str(SOURCE / "tests/vm"))
import fetch  # pylint: disable=wrong-import-position
import kernels  # pylint: disable=wrong-import-position

RELEASES = ("bookworm", "trixie")
CACHE = Path(kernels.cache_directory()) / "chroots"
ARCHIVES = "var/cache/apt/archives"
# No service starts in there.
POLICY = "usr/sbin/policy-rc.d"
# All mounts are in the namespace of the process that this becomes, and end with the last one
# in it. A file system of layers cannot be on another one, as in containers: copy, then. As
# chroot(2) would not, pivot_root lets processes make user namespaces.
ENTER = """
system=$1 run=$2; shift 2
mount -t overlay -o "lowerdir=$system,upperdir=$run/own,workdir=$run/work" \
	overlay "$run/root" 2>/dev/null || {
	cp -a "$system/." "$run/own"
	mount --bind "$run/own" "$run/root"
}
cd "$run/root"
for name in dev sys; do mount --rbind /$name $name; done
mount -t proc proc proc
mount -t bpf bpf sys/fs/bpf
[ ! -d sys/kernel/tracing ] || mount -t tracefs tracefs sys/kernel/tracing
for path; do
	mkdir -p "./${path#*:}"
	mount --rbind "${path%%:*}" "./${path#*:}"
done
pivot_root . mnt
umount -l /mnt
echo ready
exec sleep infinity
"""
PASSED = re.compile(r"TERM|COLUMNS|LINES|CI|NETOBS_(?!SOURCE|RELEASE|TOOLS).*|\w+_proxy")


class ChrootError(AssertionError):
    """What went wrong; a test that does not expect it fails."""


def run(*command, **options):
    """The output of a command, which may be nothing but successful."""
    done = subprocess.run([str(part) for part in command], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode:
        raise ChrootError(f"{' '.join(map(str, command))}:\n{done.stdout[-20000:]}")
    return done.stdout


def make(release, packages, refresh):
    """A system that others are layers over, made whole or not at all."""
    name = release
    if packages:
        name += "-" + hashlib.sha256(" ".join(packages).encode()).hexdigest()[:8]
    target, work = CACHE / name, CACHE / f"making-{name}"
    work.mkdir(parents=True, exist_ok=True)
    with locked(work):
        if target.is_dir() and not refresh:
            return target
        print(f"./dev: making a clean {release}", file=sys.stderr, flush=True)
        shutil.rmtree(work / "root", ignore_errors=True)
        run("mmdebstrap", "--quiet", "--mode=root", "--variant=minbase",
            "--dpkgopt=force-unsafe-io", *(f"--include={name}" for name in packages), release,
            work / "root", fetch.mirror())
        policy = work / "root" / POLICY
        policy.write_text("#!/bin/sh\nexit 101\n", encoding="ascii")
        policy.chmod(0o755)
        for old in glob.glob(f"{CACHE}/{release}*") if refresh else ():
            shutil.rmtree(old)
        os.rename(work / "root", target)
    return target


def link_new(source, target):
    """Packages that @target lacks, as links to the same files."""
    os.makedirs(target, exist_ok=True)
    for path in glob.glob(f"{source}/*.deb"):
        with contextlib.suppress(FileExistsError):
            os.link(path, os.path.join(target, os.path.basename(path)))


class Chroot:
    """
    A clean Debian with @packages, until remove() or the end of a with statement. @shared are
    directories OUTSIDE:INSIDE.
    """

    def __init__(self, release, *packages, shared=(), refresh=False):
        self.debs = CACHE / f"{release}.debs"
        self.holder = None
        system = make(release, packages, refresh)
        remove_stale()
        new = tempfile.mkdtemp(dir=CACHE, prefix="new-")
        self.lock = lock(new)
        self.work = new.replace("/new-", "/run-")
        os.rename(new, self.work)
        try:
            self.start(system, shared)
        except BaseException:
            self.remove()
            raise

    def start(self, system, shared):
        for name in "own/etc", "work", "root":
            os.makedirs(f"{self.work}/{name}")
        for name in "etc/resolv.conf", "etc/hosts":
            shutil.copy(f"/{name}", f"{self.work}/own/{name}")
        link_new(self.debs, f"{self.work}/own/{ARCHIVES}")
        self.holder = subprocess.Popen(  # pylint: disable=consider-using-with
            ["unshare", "--mount", "sh", "-ec", ENTER, "sh", system, self.work, *shared],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            start_new_session=True)
        if not self.holder.stdout.readline():
            raise ChrootError("cannot mount what it needs")

    @property
    def path(self):
        """The root, as others can open it."""
        return f"/proc/{self.holder.pid}/root"

    def file(self, name):
        return f"{self.path}/{name}"

    def command(self, *command, directory="/"):
        """What runs @command in there."""
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
                       "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive",
                       **{name: value for name, value in os.environ.items()
                          if PASSED.fullmatch(name)}}
        return ["nsenter", f"--target={self.holder.pid}", "--mount", "--root", "--wd",
                "env", "-i", "-C", directory,
                *(f"{name}={value}" for name, value in environment.items()), *command]

    def run(self, *command, **options):
        return run(*self.command(*command, **options))

    def find(self, *tests):
        """Paths by their name, or by other tests of find(1)."""
        if len(tests) == 1:
            tests = ("-name", *tests)
        return self.run("find", "/", "-xdev", *tests).split()

    def remove(self):
        """End what still runs there, too."""
        link_new(f"{self.work}/own/{ARCHIVES}", self.debs)
        remove_run(self.work)
        if self.holder:
            self.holder.communicate()
        os.close(self.lock)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


def lock(path, flags=fcntl.LOCK_NB):
    """A descriptor that says that @path is in use; None: it is by another process."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | flags)
        return directory
    except BlockingIOError:
        os.close(directory)
        return None


@contextlib.contextmanager
def locked(path):
    held = lock(path, 0)
    try:
        yield
    finally:
        os.close(held)


def remove_stale():
    """What was killed before it could remove its directory."""
    for path in glob.glob(f"{CACHE}/run-*"):
        with contextlib.suppress(FileNotFoundError):
            held = lock(path)
            if held is not None:
                remove_run(path)
                os.close(held)


def processes(path):
    """Those that have it mounted, as only those in its namespace do."""
    name = os.path.basename(path).encode()
    for process in glob.glob("/proc/[0-9]*"):
        with contextlib.suppress(OSError):
            if name in Path(f"{process}/mountinfo").read_bytes():
                yield int(os.path.basename(process))


def remove_run(path):
    while running := list(processes(path)):
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.05)
    shutil.rmtree(path)


def tree(release):
    """This tree at its own path, its build/ apart, and what git needs of a worktree."""
    git = subprocess.run(["git", "-C", SOURCE, "rev-parse", "--path-format=absolute",
                          "--git-common-dir"], text=True, capture_output=True, check=False)
    found, build = [f"{SOURCE}:{SOURCE}"], SOURCE / "build"
    if git.returncode == 0 and SOURCE not in Path(git.stdout.strip()).parents:
        found.append(f"{git.stdout.strip()}:{git.stdout.strip()}")
    (build / release).mkdir(parents=True, exist_ok=True)
    return [*found, f"{build / release}:{build}"]


def stop(*_):
    raise KeyboardInterrupt


def main():
    parser = argparse.ArgumentParser(prog="./dev chroot", description=__doc__)
    parser.add_argument("--refresh", action="store_true", help="forget what is kept of the release")
    parser.add_argument("--with", metavar="PACKAGES", dest="packages", default="",
                        help="make it with these")
    parser.add_argument("release", choices=RELEASES)
    parser.add_argument("command", nargs=argparse.REMAINDER, help="default: a shell")
    options = parser.parse_args()
    for number in signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, stop)
    with Chroot(options.release, *options.packages.split(), shared=tree(options.release),
                refresh=options.refresh) as chroot:
        signal.signal(signal.SIGINT, lambda *_: None)  # it is the command's
        return subprocess.call(chroot.command(*options.command or ["bash"],
                                              directory=str(SOURCE)))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (ChrootError, fetch.FetchError) as error:
        sys.exit(f"./dev: chroot: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
