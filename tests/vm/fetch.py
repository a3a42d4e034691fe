# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
Debian's kernel packages of any suite, from the mirror that this machine uses,
by an apt with lists, cache and sources of its own: /etc/apt is only read.
"""

import glob
import os
import re
import shutil
import subprocess
import tempfile

import kernels

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


class FetchError(Exception):
    """What could not be had, and why."""


def run(*command, **options):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, **options)
    if done.returncode:
        raise FetchError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def own_suite():
    with open("/etc/os-release", encoding="utf-8") as file:
        found = re.search(r"^VERSION_CODENAME=\"?(\w+)", file.read(), re.M)
    if not found:
        raise FetchError("/etc/os-release has no VERSION_CODENAME: "
                         "the kernels come from the mirror of a Debian system")
    return found.group(1)


def mirror():
    """The address that this machine gets its own suite from."""
    suite = own_suite()
    indexes = run("apt-get", "update", "--print-uris")
    found = re.search(rf"^'(\S+/)dists/({suite}|stable)/InRelease'", indexes,
                      re.M)
    if not found:
        raise FetchError(f"apt has no source for {suite} to take a mirror from")
    return found.group(1)


class Apt:
    """apt for one suite, in a directory of its own."""

    def __init__(self, directory, suite, architecture="amd64"):
        self.directory = directory
        self.architecture = architecture
        for name in ("lists/partial", "cache/archives/partial"):
            os.makedirs(os.path.join(directory, name))
        self.write("sources.list",
                   f"deb [signed-by={KEYRING}] {mirror()} {suite} main\n")
        self.write("status", "")
        config = self.write("apt.conf", "".join(
            f'{key} "{value}";\n' for key, value in {
                "Dir::Etc::sourcelist": f"{directory}/sources.list",
                "Dir::Etc::sourceparts": "-",
                "Dir::State::lists": f"{directory}/lists",
                "Dir::State::status": f"{directory}/status",
                "Dir::Cache": f"{directory}/cache",
                "APT::Sandbox::User": "root",
                "APT::Architecture": architecture,
                "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
                "Acquire::Languages": "none"}.items()))
        self.environment = {**os.environ, "APT_CONFIG": config}
        self.run("apt-get", "-qq", "update", "--error-on=any")

    def write(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def run(self, *command, **options):
        return run(*command, env=self.environment, **options)

    def kernel_packages(self):
        """
        The metapackage names the kernel; what a kernel package wants in
        exactly its own version is a part of the kernel.
        """
        found, ahead = [], self.depends(f"linux-image-{self.architecture}",
                                        r"linux-image-\S+")
        while ahead:
            name = ahead.pop()
            if name not in found:
                found.append(name)
                ahead += self.depends(name, r"\S+(?= \(= )")
        return found

    def depends(self, package, pattern):
        shown = self.run("apt-cache", "show", "--no-all-versions", package)
        listed = re.search(r"^Depends: (.*)$", shown, re.M)
        return re.findall(rf"(?:^|, )({pattern})",
                          listed.group(1)) if listed else []


def unpack(packages, directory):
    """One tree with the kernel as vmlinuz and its modules, indexed."""
    tree = os.path.join(directory, "tree")
    for package in packages:
        run("dpkg-deb", "-x", package, tree)
    kernel = os.path.join(directory, "kernel")
    os.makedirs(os.path.join(kernel, "lib"))
    # Debian 12 is the last with /lib beside /usr/lib in its packages.
    (modules,) = (path for path in glob.glob(f"{tree}/**/lib/modules",
                                             recursive=True))
    (image,) = (glob.glob(f"{modules}/*/vmlinuz") or
                glob.glob(f"{tree}/boot/vmlinuz-*"))
    shutil.copy(image, os.path.join(kernel, "vmlinuz"))
    shutil.move(modules, os.path.join(kernel, "lib"))
    run("depmod", "-b", kernel, *os.listdir(os.path.join(kernel,
                                                         "lib/modules")))
    return kernel


def fetch(kernel):
    """Into the cache, whole or not at all."""
    target = kernel.directory
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with tempfile.TemporaryDirectory(
            dir=os.path.dirname(target), prefix="fetching-") as work:
        apt = Apt(work, kernel.suite, kernel.architecture)
        apt.run("apt-get", "-qq", "download", *apt.kernel_packages(), cwd=work)
        unpacked = unpack(glob.glob(f"{work}/*.deb"), work)
        shutil.rmtree(target, ignore_errors=True)
        os.rename(unpacked, target)


def ensure(name, refresh=False):
    """The kernel from the cache; without network when it is there."""
    kernel = kernels.cached(name)
    if refresh or not os.path.isdir(kernel.directory):
        try:
            fetch(kernel)
        except (FetchError, OSError) as error:
            raise FetchError(f"kernel {name}: {error}") from error
    return kernel
