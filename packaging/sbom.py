#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
sbom.py TREE ROOT VERSION: on standard output, an SPDX 2.3 document of the files in TREE with their
licences, and of the Debian packages that are made of what is installed in ROOT, with the
packages of this system whose libraries they are linked with.
"""

import fnmatch
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import tomllib

LICENCE, OWNER = "SPDX-License-Identifier", "SPDX-FileCopyrightText"
# In the document, of what has none.
NONE = "NOASSERTION"


def annotations(tree):
    """[(patterns, table)] of REUSE.toml."""
    tables = tomllib.loads((tree / "REUSE.toml").read_text())["annotations"]
    return [(table["path"] if isinstance(table["path"], list) else [table["path"]], table)
            for table in tables]


def is_match(name, pattern):
    if "/" not in pattern and "**" not in pattern and "/" in name:
        return False
    return fnmatch.fnmatchcase(name, pattern)


def rights(tree, name, tables):
    """(licence, owner) of a file, by itself or by the last entry that matches; None: unknown."""
    said = {}
    for patterns, table in tables:
        if any(is_match(name, pattern) for pattern in patterns):
            said = table
    own = re.search(rf"{LICENCE}: ([\w.() -]*[\w)])",
                    (tree / name).read_bytes()[:4096].decode(errors="replace"))
    return said.get(LICENCE) or own and own[1], said.get(OWNER)


# ---- The source ----------------------------------------------------------------------


def digest(kind, data):
    return {"algorithm": kind.upper(), "checksumValue": hashlib.new(kind, data).hexdigest()}


def files(tree):
    tables = annotations(tree)
    for path in sorted(path for path in tree.rglob("*") if path.is_file()):
        name = str(path.relative_to(tree))
        data = path.read_bytes()
        is_text = name.startswith("LICENSES/")
        licence, owner = (NONE, NONE) if is_text else rights(tree, name, tables)
        yield {"fileName": f"./{name}",
               "SPDXID": "SPDXRef-File-" + hashlib.sha1(name.encode()).hexdigest(),
               "checksums": [digest("sha1", data), digest("sha256", data)],
               "licenseConcluded": licence, "copyrightText": owner}


def verification_code(listed):
    """As SPDX 2.3, 7.9, defines it."""
    sums = sorted(one["checksums"][0]["checksumValue"] for one in listed)
    return hashlib.sha1("".join(sums).encode()).hexdigest()


# ---- The packages --------------------------------------------------------------------


def run(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def own_packages(tree):
    """{package: (patterns of its files, names of Depends)} as debian/ has them, without the
    architecture's folder."""
    control = (tree / "packaging/debian/control").read_text()
    found = {}
    for path in sorted((tree / "packaging/debian").glob("*.install")):
        fields = re.search(rf"^Package: {re.escape(path.stem)}\n.*?^Depends: (.*?)^\S", control,
                           re.M | re.S)
        found[path.stem] = ([line.split()[0].replace("usr/lib/*/", "usr/lib/")
                             for line in path.read_text().splitlines()
                             if not line.startswith("#")],
                            re.findall(r"(?:^|,)\s*([a-z][\w.+-]*)", fields[1]))
    return found


def needed(path):
    """Names of the libraries that an ELF file is linked with."""
    with open(path, "rb") as file:
        if file.read(4) != b"\x7fELF":
            return set()
    return set(re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", path)))


def linked(root, patterns):
    libraries = set()
    for path in sorted(path for path in root.rglob("*")
                       if path.is_file() and not path.is_symlink()):
        name = re.sub("^usr/lib/[^/]+-linux-gnu/", "usr/lib/", str(path.relative_to(root)))
        if any(fnmatch.fnmatch(name, one) or fnmatch.fnmatch(name, one + "/*")
               for one in patterns):
            libraries |= needed(path)
    return libraries


def system_package(library, known):
    """(package, version) that has this library here."""
    if library not in known:
        path = re.search(rf"^\s+{re.escape(library)} \(.*=> (\S+)", run("/sbin/ldconfig", "-p"),
                         re.M)[1]
        # Of merged /usr, dpkg knows one of the two names.
        found = subprocess.run(["dpkg-query", "-S", path, os.path.realpath(path),
                                path.removeprefix("/usr"), "/usr" + path], check=False,
                               text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        package = found.stdout.split(": ")[0]
        known[library] = tuple(run("dpkg-query", "-W", "-f", "${Package} ${Version}",
                                   package).split())
    return known[library]


def package_id(name):
    return "SPDXRef-Package-" + re.sub(r"[^\w.-]", "-", name).replace("_", "-")


def package(name, version, **more):
    return {"name": name, "SPDXID": package_id(name), "versionInfo": version,
            "downloadLocation": NONE, "filesAnalyzed": False, "licenseConcluded": NONE,
            "licenseDeclared": NONE, "copyrightText": NONE, **more}


def related(one, kind, other):
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}


def made_packages(tree, root, version):
    """The packages, those that they need, and how these belong together."""
    own, packages, known, relations = own_packages(tree), {}, {}, []
    for name, (patterns, depends) in own.items():
        packages[name] = package(name, version)
        relations.append(related(package_id(name), "GENERATED_FROM", package_id("source")))
        needs = dict.fromkeys(depends)
        for library in sorted(linked(root, patterns)):
            if not library.startswith("libnetobs.so"):
                needs.update([system_package(library, known)])
        for other, its_version in needs.items():
            if other not in own and (other not in packages or its_version):
                packages[other] = package(other, its_version or NONE, externalRefs=[{
                    "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                    "referenceLocator": f"pkg:deb/debian/{other}" +
                                        (f"@{its_version}" if its_version else "")}])
            relations.append(related(package_id(name), "DEPENDS_ON", package_id(other)))
    return list(packages.values()), relations


# ---- The document --------------------------------------------------------------------


def document(tree, root, version):
    listed = list(files(tree))
    for one in listed:
        if not one["licenseConcluded"] or not one["copyrightText"]:
            sys.exit(f"sbom: {one['fileName']}: no licence, or no owner")
    licences = sorted({one["licenseConcluded"] for one in listed} - {NONE})
    source = package("netobs", version, filesAnalyzed=True, SPDXID=package_id("source"),
                     packageVerificationCode={
                         "packageVerificationCodeValue": verification_code(listed)},
                     licenseDeclared=" AND ".join(
                         f"({one})" if " OR " in one else one for one in licences),
                     licenseInfoFromFiles=sorted({word for one in licences for word in
                                                  re.findall(r"[\w.-]+", one)} - {"OR", "AND"}))
    packages, relations = made_packages(tree, root, version)
    date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"])))
    content = hashlib.sha256(json.dumps(listed).encode()).hexdigest()
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"netobs-{version}",
        # A name only; there is nothing at it.
        "documentNamespace": f"https://netobs.invalid/spdx/{version}/{content}",
        "creationInfo": {"created": date, "creators": ["Tool: netobs-sbom.py"]},
        "packages": [source, *packages], "files": listed,
        "relationships": [related("SPDXRef-DOCUMENT", "DESCRIBES", package_id("source")),
                          *(related(package_id("source"), "CONTAINS", one["SPDXID"])
                            for one in listed), *relations],
    }


if __name__ == "__main__":
    json.dump(document(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]),
              sys.stdout, indent=1)
    print()
