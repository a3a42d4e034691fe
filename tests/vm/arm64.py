#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
Cross-build the library, the command, the BPF programs and their tests for arm64, and run
the unit tests in QEMU's user mode. Debian's libraries, and the programs that a guest
needs, are in ~/.cache/netobs/arm64, which is also the guest's root.
"""

import argparse
import glob
import os
import shutil
import subprocess
import sys
import tempfile

import fetch
import kernels

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TRIPLET = "aarch64-linux-gnu"
LIBRARIES = ("libc6-dev", "libbpf-dev", "libelf-dev", "zlib1g-dev", "libzstd-dev", "libpcap-dev",
             "libncurses-dev", "libcmocka-dev")
# Of the guest, and of the tests that vm.py --quick selects.
PROGRAMS = ("base-files", "base-passwd", "bash", "busybox-static", "cmake", "coreutils",
            "dash", "ethtool", "iproute2", "iputils-ping", "kmod", "mount", "netbase",
            "python3", "tcpdump")
TARGETS = ("netobs", "netobsctl", "netobs_sink_gzip", "netobs_sink_zstd", "matrix",
           "verifier")
TESTS = ("unit_", "bpf_", "tool_") # beginnings of their targets
# It opens ipfix, whose libraries are not fetched.
LEFT_OUT = r"^unit\.sink_records$"

TOOLCHAIN = f"""set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER {TRIPLET}-gcc)
set(CMAKE_SYSROOT @ROOT@)
set(CMAKE_FIND_ROOT_PATH @ROOT@)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR @BUILD@/emulator)
"""

EMULATOR = """#!/bin/sh
[ "$(uname -m)" = aarch64 ] && exec "$@"
exec qemu-aarch64-static -L @ROOT@ "$@"
"""


def unpack(archives, root):
    """With /lib and the like in /usr, as Debian has them, and links that end in the tree."""
    for name in "bin", "lib", "sbin":
        os.makedirs(f"{root}/usr/{name}")
        os.symlink(f"usr/{name}", f"{root}/{name}")
    for archive in archives:
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive],
                              stdout=subprocess.PIPE) as tar:
            fetch.run("tar", "-x", "--keep-directory-symlink", "-C", root,
                      stdin=tar.stdout)
    for directory, _, names in os.walk(root):
        for name in names:
            path = os.path.join(directory, name)
            target = os.readlink(path) if os.path.islink(path) else ""
            if target.startswith("/"):
                os.unlink(path)
                os.symlink(os.path.relpath(root + target, directory), path)
    for name in "passwd", "group": # which base-passwd has installed
        shutil.copy(f"{root}/usr/share/base-passwd/{name}.master", f"{root}/etc/{name}")


def is_whole(root):
    """Packages may have been added to the list since."""
    try:
        with open(f"{root}/packages", encoding="ascii") as file:
            return file.read().split() == [*LIBRARIES, *PROGRAMS]
    except FileNotFoundError:
        return False


def sysroot(refresh=False):
    """From the cache, whole or not at all."""
    target = kernels.cached(kernels.ARM64).root
    if is_whole(target) and not refresh:
        return target
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(target),
                                     prefix="fetching-") as work:
        apt = fetch.Apt(work, fetch.own_suite(), "arm64")
        apt.run("apt-get", "-qq", "-y", "--no-install-recommends", "--download-only",
                "install", *LIBRARIES, *PROGRAMS)
        unpack(glob.glob(f"{work}/cache/archives/*.deb"), f"{work}/root")
        with open(f"{work}/root/packages", "w", encoding="ascii") as file:
            print(*LIBRARIES, *PROGRAMS, file=file)
        shutil.rmtree(target, ignore_errors=True)
        os.rename(f"{work}/root", target)
    return target


def configure(build, root):
    os.makedirs(build, exist_ok=True)
    toolchain, emulator = f"{build}/toolchain.cmake", f"{build}/emulator"
    for path, text in (toolchain, TOOLCHAIN), (emulator, EMULATOR):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("@ROOT@", root).replace("@BUILD@", build))
    os.chmod(emulator, 0o755)
    environment = {**os.environ, "PKG_CONFIG_SYSROOT_DIR": root, "PKG_CONFIG_LIBDIR":
                   f"{root}/usr/lib/{TRIPLET}/pkgconfig:{root}/usr/share/pkgconfig"}
    subprocess.run(["cmake", "-S", SOURCE, "-B", build, "-G", "Ninja",
                    f"-DCMAKE_TOOLCHAIN_FILE={toolchain}", "-DCMAKE_BUILD_TYPE=Release",
                    "-DNETOBS_SINKS=", "-DNETOBS_HTTPD=OFF",
                    "-DNETOBS_MAN=OFF", "-DNETOBS_WERROR=ON", "-DNETOBS_TESTS=ON",
                    "-DNETOBS_TEST_TIMEOUT=2400"], check=True, env=environment)


def tests(build):
    """Their targets: fuzzers would need a compiler for both."""
    listed = subprocess.run(["ninja", "-C", build, "-t", "targets", "all"], check=True,
                            text=True, stdout=subprocess.PIPE).stdout
    return [line.split(":")[0] for line in listed.splitlines()
            if line.startswith(TESTS) and line.endswith(": phony")]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", help="directory to build in")
    parser.add_argument("--refresh", action="store_true",
                        help="fetch Debian's packages anew")
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    configure(build, sysroot(options.refresh))
    subprocess.run(["ninja", "-C", build, *TARGETS, *tests(build)], check=True)
    return subprocess.run(["ctest", "--test-dir", build, "-R", r"^unit\.", "-E", LEFT_OUT,
                           "--output-on-failure", "-j", str(os.cpu_count())],
                          check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
