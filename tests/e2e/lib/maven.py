# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: maven
"""Jars from Maven Central, got once: they are kept in the user's cache directory, so later runs
need no network."""

import contextlib
import os
import shutil
import tempfile

from lib import lab

POM = """<project>
<modelVersion>4.0.0</modelVersion>
<groupId>netobs</groupId><artifactId>test</artifactId>
<version>1</version><packaging>pom</packaging>
<dependencies>{}</dependencies></project>
"""
DEPENDENCY = ("<dependency><groupId>{}</groupId><artifactId>{}</artifactId>"
              "<version>{}</version></dependency>")


def need(*programs):
    missing = [name for name in programs if not shutil.which(name)]
    if missing:
        raise RuntimeError(f"not installed: {', '.join(missing)}")


def fetch(target, wanted):
    """They are there whole, or not at all."""
    need("mvn")
    parent = os.path.dirname(target)
    os.makedirs(parent, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent) as work:
        lab.write(f"{work}/pom.xml", POM.format("".join(DEPENDENCY.format(*parts) for parts in wanted)))
        lab.run("mvn", "-q", "-B", "dependency:copy-dependencies",
                f"-DoutputDirectory={work}/libs", cwd=work)
        with contextlib.suppress(OSError):  # another run was first
            os.rename(f"{work}/libs", target)


def jars(name, version, *wanted):
    """A class path of @wanted, (group, artifact, version) each, and all that they require."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    target = os.path.join(home, "netobs", name, version)
    if not os.path.isdir(target):
        fetch(target, wanted)
    return os.path.join(target, "*")
