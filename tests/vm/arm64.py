#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
arm64.py BUILD: cross-build the library, the command and the BPF programs for arm64, and
run the unit tests in QEMU's user mode. What they link is Debian's, in ~/.cache/netobs.
Needs: gcc-aarch64-linux-gnu, qemu-user-static.
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
PACKAGES = ("libc6-dev", "libbpf-dev", "libelf-dev", "zlib1g-dev", "libzstd-dev", "libpcap-dev",
            "libcmocka-dev")
MODULES = ("netobs_sink_gzip", "netobs_sink_zstd")
LEFT_OUT = r"^unit\.sink_records$"  # opens ipfix, whose libraries are not fetched

TOOLCHAIN = f"""set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER {TRIPLET}-gcc)
set(CMAKE_SYSROOT @ROOT@)
set(CMAKE_FIND_ROOT_PATH @ROOT@)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L @ROOT@)
"""


def unpack(archives, root):
    """With /lib in /usr, as Debian installs it, and links that end in the tree."""
    os.makedirs(f"{root}/usr/lib")
    os.symlink("usr/lib", f"{root}/lib")
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


def sysroot(refresh=False):
    """From the cache, whole or not at all."""
    target = os.path.join(os.path.dirname(kernels.cache_directory()), "arm64")
    if os.path.isdir(target) and not refresh:
        return target
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(target),
                                     prefix="fetching-") as work:
        apt = fetch.Apt(work, fetch.own_suite(), "arm64")
        apt.run("apt-get", "-qq", "-y", "--no-install-recommends", "--download-only",
                "install", *PACKAGES)
        unpack(glob.glob(f"{work}/cache/archives/*.deb"), f"{work}/root")
        shutil.rmtree(target, ignore_errors=True)
        os.rename(f"{work}/root", target)
    return target


def configure(build, root):
    os.makedirs(build, exist_ok=True)
    toolchain = os.path.join(build, "toolchain.cmake")
    with open(toolchain, "w", encoding="utf-8") as file:
        file.write(TOOLCHAIN.replace("@ROOT@", root))
    environment = {**os.environ, "PKG_CONFIG_SYSROOT_DIR": root, "PKG_CONFIG_LIBDIR":
                   f"{root}/usr/lib/{TRIPLET}/pkgconfig:{root}/usr/share/pkgconfig"}
    subprocess.run(["cmake", "-S", SOURCE, "-B", build, "-G", "Ninja",
                    f"-DCMAKE_TOOLCHAIN_FILE={toolchain}", "-DCMAKE_BUILD_TYPE=Release",
                    "-DNETOBS_SINKS=", "-DNETOBS_MAN=OFF", "-DNETOBS_WERROR=ON",
                    "-DNETOBS_TESTS=ON"], check=True, env=environment)


def unit_tests(build):
    """Their targets: the others need a kernel, or a compiler for both."""
    listed = subprocess.run(["ninja", "-C", build, "-t", "targets", "all"], check=True,
                            text=True, stdout=subprocess.PIPE).stdout
    return [line.split(":")[0] for line in listed.splitlines()
            if line.startswith("unit_") and line.endswith(": phony")]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", help="directory to build in")
    parser.add_argument("--refresh", action="store_true",
                        help="fetch Debian's packages anew")
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    configure(build, sysroot(options.refresh))
    subprocess.run(["ninja", "-C", build, "netobs", "netobsctl", *MODULES,
                    *unit_tests(build)], check=True)
    return subprocess.run(["ctest", "--test-dir", build, "-R", r"^unit\.", "-E", LEFT_OUT,
                           "--output-on-failure", "-j", str(os.cpu_count())],
                          check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
