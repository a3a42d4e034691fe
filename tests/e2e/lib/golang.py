# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: golang-go
"""Programs that are built from their Go modules, once, and kept in the user's cache directory.

They are built with Go 1.21, which is got as a module if the installed one is older. A newer one is
not used: some of their modules use internals of the run time that later versions hide. What names
another version takes that, or any newer one.
"""

import json
import os
import platform
import re
import shutil
import stat
import tempfile

from lib import lab

GO_USED = (1, 21)
GO_MODULES = {(1, 21): "v0.0.1-go1.21.13", (1, 23): "v0.0.1-go1.23.12"}
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def cache_dir():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(home, "netobs", "go")


def download(go, module, version):
    """Where its source is, which is read-only."""
    with tempfile.TemporaryDirectory() as nowhere:
        return json.loads(lab.run(go, "mod", "download", "-json", f"{module}@{version}",
                                  cwd=nowhere))["Dir"]


def is_usable(go, version):
    found = re.search(r"go(\d+)\.(\d+)", lab.run(go, "env", "GOVERSION"))
    number = found and tuple(map(int, found.groups()))
    return number and (number == version or number > version > GO_USED)


def copy_writable(source, target):
    shutil.copytree(source, target, symlinks=True)
    for directory, _, names in os.walk(target):
        for name in (".", *names):
            path = os.path.join(directory, name)
            os.chmod(path, os.stat(path).st_mode | stat.S_IWUSR)


def fetch_go(go, version):
    """Modules have no executables."""
    module = GO_MODULES[version]
    root = os.path.join(cache_dir(), module)
    if not os.path.isdir(root):
        copy_writable(download(go, "golang.org/toolchain",
                               f"{module}.linux-{MACHINES[platform.machine()]}"), f"{root}.new")
        for folder in "bin", "pkg/tool":
            for directory, _, names in os.walk(f"{root}.new/{folder}"):
                for name in names:
                    os.chmod(os.path.join(directory, name), 0o755)
        os.rename(f"{root}.new", root)
    return os.path.join(root, "bin", "go")


def find_go(version=GO_USED):
    go = shutil.which("go")
    if not go:
        raise RuntimeError("not installed: go (Debian: golang-go)")
    os.makedirs(cache_dir(), exist_ok=True)
    return go if is_usable(go, version) else fetch_go(go, version)


def own_environment():
    return {**{key: value for key, value in os.environ.items() if key != "GOROOT"},
            "GOTOOLCHAIN": "local"}


def own_program(name, version, source, modules, go_version):
    """The path of a program of ours, of this source and of modules with their versions."""
    target = os.path.join(cache_dir(), f"{name}-{version}")
    if os.path.exists(target):
        return target
    go, environment = find_go(go_version), own_environment()
    with tempfile.TemporaryDirectory() as work:
        shutil.copy(source, f"{work}/main.go")
        lab.run(go, "mod", "init", name, cwd=work, env=environment)
        for module, number in modules.items():
            lab.run(go, "mod", "edit", f"-require={module}@{number}", cwd=work, env=environment)
        lab.run(go, "build", "-mod=mod", "-o", f"{target}.new", ".", cwd=work, env=environment)
    os.rename(f"{target}.new", target)
    return target


def program(name, module, version, *own):
    """
    Its path; it is built if it is not there. @own: modules that this one replaces by folders
    which it does not contain; those that it requires are used.
    """
    target = os.path.join(cache_dir(), f"{name}-{version}")
    if os.path.exists(target):
        return target
    go = find_go()
    environment = own_environment()
    with tempfile.TemporaryDirectory() as work:
        source = f"{work}/source"
        copy_writable(download(go, module, version), source)
        for replaced in own:
            lab.run(go, "mod", "edit", f"-dropreplace={replaced}", cwd=source, env=environment)
        lab.run(go, "build", "-mod=mod", "-o", f"{target}.new", f"./cmd/{name}", cwd=source,
                env=environment)
    os.rename(f"{target}.new", target)
    return target
