#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: python3-yaml
"""What packaging/ repeats is the same everywhere: lists of files, versions, rights."""

import configparser
import fnmatch
import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import yaml

SOURCE = Path(os.environ["NETOBS_SOURCE"])
RELEASE = Path(os.environ["NETOBS_RELEASE"])
DEBIAN = SOURCE / "packaging/debian"
SPEC = (SOURCE / "packaging/rpm/netobs.spec").read_text()
UNIT = (SOURCE / "packaging/systemd/netobs.service.in").read_text()
MACROS = {"_bindir": "usr/bin", "_datadir": "usr/share", "_docdir": "usr/share/doc",
          "_includedir": "usr/include", "_libdir": "usr/lib", "_libexecdir": "usr/libexec",
          "_mandir": "usr/share/man", "_sbindir": "usr/sbin", "_sysconfdir": "etc",
          "_sysusersdir": "usr/lib/sysusers.d", "_tmpfilesdir": "usr/lib/tmpfiles.d",
          "_unitdir": "usr/lib/systemd/system", "soversion": "0.2",
          "python3_sitelib": "usr/lib/python3/dist-packages"}


def version():
    header = (SOURCE / "include/netobs/version.h").read_text()
    return re.search(r'NETOBS_VERSION "(.*)"', header)[1]


def soversion():
    return os.readlink(RELEASE / "libnetobs.so").removeprefix("libnetobs.so.")


def control():
    """Fields of the source package and of each binary one, by its name."""
    text = re.sub(r"^#.*\n", "", (DEBIAN / "control").read_text(), flags=re.M)
    found = {}
    for paragraph in text.strip().split("\n\n"):
        fields = dict(re.findall(r"^([\w-]+): ?((?:.*\n?)(?: .*\n?)*)", paragraph, re.M))
        found[fields.get("Package", "").strip()] = fields
    return found


def setting(name):
    return re.search(f"^{name}=(.*)$", UNIT, re.M)[1].split()


def lines(path):
    return [line for line in path.read_text().splitlines() if not line.startswith("#")]


def debian_files():
    """[(pattern, package)], without the directory of the architecture."""
    return [(line.split()[0].replace("usr/lib/*/", "usr/lib/"), path.stem)
            for path in DEBIAN.glob("*.install") for line in lines(path)]


def rpm_files():
    """The same; packages have Debian's names."""
    found, package = [], None
    for line in SPEC.splitlines():
        if line.startswith("%files"):
            name = line.split()[1:]
            package = name[-1] if "-n" in name else "-".join(["netobs", *name])
            package = {"libnetobs": "libnetobs" + MACROS["soversion"],
                       "libnetobs-devel": "libnetobs-dev"}.get(package, package)
        elif package and line and not line.startswith(("%dir", "%exclude", "%license",
                                                       "%doc examples/")):
            path = re.sub(r"%\{(\w+)\}", lambda macro: MACROS[macro[1]], line.split()[-1])
            found.append((path, package))
    return found


def owners(name, files):
    """The packages of those patterns that match most of the path."""
    matching = [(len(pattern), package) for pattern, package in files
                if fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(name, pattern + "/*")]
    return {package for length, package in matching if length == max(matching)[0]}


def manifests():
    text = (SOURCE / "packaging/k8s/netobs.yaml").read_text()
    return {one["kind"]: one for one in yaml.safe_load_all(text)}


class Files(unittest.TestCase):
    def test_each_is_in_one_package_and_the_same_of_both_kinds(self):
        with tempfile.TemporaryDirectory(prefix="netobs-packaging-") as root:
            subprocess.run([os.environ["CMAKE"], "--install", RELEASE], check=True,
                           env={**os.environ, "DESTDIR": root}, stdout=subprocess.DEVNULL)
            names = [str(path.relative_to(root)).replace("usr/local/", "usr/")
                     for path in Path(root).rglob("*") if not path.is_dir()]
        left_out = lines(DEBIAN / "not-installed")
        self.assertGreater(len(names), 50)
        for name in names:
            name = re.sub("^usr/lib/[^/]+-linux-gnu/", "usr/lib/", name)
            of_rpm = owners(name, rpm_files())
            self.assertEqual(1, len(of_rpm), f"{name}: {of_rpm}")
            if name not in left_out:
                self.assertEqual(of_rpm, owners(name, debian_files()), name)

    def test_each_pattern_has_a_package(self):
        packages = set(control()) - {""}
        self.assertEqual(packages, {package for _, package in debian_files()})
        self.assertEqual(packages, {package for _, package in rpm_files()})


    def test_what_is_loaded_names_its_package(self):
        """Where it is not installed."""
        text = (SOURCE / "src/lib/base/shared_object.c").read_text()
        self.assertEqual({(Path(path).stem, package) for path, package in debian_files()
                          if "/netobs/" in path and path.endswith(".so")},
                         set(re.findall(r'{ "(\w+)",\s+"([\w-]+)" }', text)))


def size(text):
    return int(text[:-1]) << {"K": 10, "M": 20, "G": 30}[text[-1]]


class Disk(unittest.TestCase):
    def test_the_default_configuration_says_how_much_it_takes(self):
        """Less than 1 GiB in all; unit.rotate has the test that files stay below that."""
        text = (SOURCE / "packaging/systemd/netobs.conf").read_text()
        configuration = configparser.ConfigParser()
        configuration.read_string(text)
        on_disk = 0
        for name in configuration.sections():
            sink = configuration[name]
            if name.startswith("sink "):
                self.assertNotIn("spool", sink)  # it is in memory
                self.assertTrue(sink["output"].startswith("json:/var/log/netobs/"))
                on_disk += (int(sink["rotate.keep"]) + 1) * size(sink["rotate.bytes"])
        self.assertGreater(on_disk, 0)
        self.assertLess(on_disk, 1 << 30)
        stated = f"{on_disk >> 20} MiB"
        for path in "packaging/systemd/netobs.conf", "packaging/debian/control", \
                "packaging/rpm/netobs.spec", "docs/install.md", "README.md":
            with self.subTest(path):
                self.assertEqual({stated}, set(re.findall(
                    r"(\d+ [GM]iB)\s+at\s+most", (SOURCE / path).read_text())))


class Versions(unittest.TestCase):
    def test_names_have_that_of_the_library(self):
        self.assertEqual(soversion(), MACROS["soversion"])
        self.assertIn(f"%global soversion {soversion()}\n", SPEC)
        self.assertIn(f"libnetobs{soversion()}", control())
        symbols = lines(DEBIAN / f"libnetobs{soversion()}.symbols")
        self.assertIn(f"libnetobs.so.{soversion()} libnetobs{soversion()} #MINVER#", symbols)
        nodes = re.findall(r"^(NETOBS_[\d.]+) \{", (SOURCE / "packaging/libnetobs.map")
                           .read_text(), re.M)
        self.assertEqual(nodes, re.findall(r"\(symver\)(\S+)", "\n".join(symbols)))

    def test_specification_and_image(self):
        self.assertIn("%{!?netobs_version:" + version() + "}", SPEC)
        container = manifests()["DaemonSet"]["spec"]["template"]["spec"]["containers"][0]
        self.assertEqual(f"netobs:{version()}", container["image"])


class Dependencies(unittest.TestCase):
    def test_to_build_are_those_of_dev(self):
        script = (SOURCE / "dev").read_text()
        of_dev = set(re.search(r"build_packages=\((.*?)\)", script, re.S)[1].split())
        fields = re.sub(r"\([^)]*\)", "", control()[""]["Build-Depends"])
        of_debian = {name.strip() for name in fields.split(",")}
        # Of those, one is part of build-essential, and one comes with libbpf-dev.
        self.assertEqual(of_dev - {"gcc", "libc6-dev", "libelf-dev"},
                         of_debian - {"debhelper-compat", "dh-sequence-installsysusers",
                                      "dh-sequence-python3", "python3"})

    def test_image_installs_packages_that_there_are(self):
        text = (SOURCE / "packaging/Containerfile").read_text()
        for pattern in re.findall(r"/packages/(\S+)_\*\.deb", text):
            self.assertTrue(fnmatch.filter(control(), pattern), pattern)


class Ports(unittest.TestCase):
    def test_metrics_have_one(self):
        """Wherever an address of them is named."""
        about = re.compile(r"metrics|listen = |targets: |loopback address|/dev/tcp/127|prometheus")
        address = re.compile(r'(?:\d\.\d+\.\d+\.\d+|::1\])[:/](\d+)|port: "?(\d+)')
        found = {}
        for path in [SOURCE / "README.md", *(path for folder in (
                "packaging", "examples", "man", "docs") for path in (SOURCE / folder).rglob("*"))]:
            if path.is_file():
                for line in path.read_text().splitlines():
                    if about.search(line) and "--listen" not in line:
                        found.setdefault(path.name, set()).update(
                            "".join(port) for port in address.findall(line))
        found = {name: ports for name, ports in found.items() if ports}
        self.assertLess({"netobs.yaml", "netobs.conf", "service", "metrics.md", "install.md"},
                        set(found))
        self.assertEqual({name: {"9436"} for name in found}, found)


class Kubernetes(unittest.TestCase):
    def setUp(self):
        self.manifests = manifests()
        self.pod = self.manifests["DaemonSet"]["spec"]["template"]["spec"]
        self.container = self.pod["containers"][0]

    def test_its_rights_are_those_of_the_unit(self):
        rights = self.container["securityContext"]
        self.assertEqual(["ALL"], rights["capabilities"]["drop"])
        self.assertEqual(setting("AmbientCapabilities"),
                         ["CAP_" + name for name in rights["capabilities"]["add"]])
        self.assertFalse(rights["privileged"] or rights["allowPrivilegeEscalation"])
        self.assertTrue(rights["readOnlyRootFilesystem"])
        self.assertEqual({"type": "RuntimeDefault"},
                         self.pod["securityContext"]["seccompProfile"])
        self.assertTrue(self.pod["hostNetwork"])

    def test_volumes_are_mounted_where_the_unit_has_them(self):
        volumes = {one["name"]: one for one in self.pod["volumes"]}
        mounts = {one["name"]: one for one in self.container["volumeMounts"]}
        self.assertEqual(volumes.keys(), mounts.keys())
        directories = {f"/etc/{name}" for name in setting("ConfigurationDirectory")} | \
            {f"/var/lib/{name}" for name in setting("StateDirectory")} | \
            {f"/run/{name}" for name in setting("RuntimeDirectory")}
        self.assertEqual(directories, {one["mountPath"] for one in mounts.values()})
        for name, volume in volumes.items():
            if "hostPath" in volume:
                self.assertEqual(mounts[name]["mountPath"], volume["hostPath"]["path"])
            elif "configMap" in volume:
                self.assertEqual(volume["configMap"]["name"],
                                 self.manifests["ConfigMap"]["metadata"]["name"])

    def test_it_selects_its_pods_and_waits_for_their_end(self):
        spec = self.manifests["DaemonSet"]["spec"]
        self.assertEqual(spec["selector"]["matchLabels"], spec["template"]["metadata"]["labels"])
        self.assertEqual(self.manifests["ServiceAccount"]["metadata"]["name"],
                         self.pod["serviceAccountName"])
        self.assertGreaterEqual(self.pod["terminationGracePeriodSeconds"],
                                int(setting("TimeoutStopSec")[0]))

    def test_its_configuration_is_right(self):
        data = self.manifests["ConfigMap"]["data"]
        self.assertEqual(["netobs.conf"], list(data))
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write(data["netobs.conf"])
            file.flush()
            done = subprocess.run([os.environ["NETOBSCTL"], "config", "check", file.name],
                                  text=True, capture_output=True, timeout=60, check=False)
        self.assertEqual(0, done.returncode, done.stderr)
        port = int(re.search(r"^listen = 0\.0\.0\.0:(\d+)$", data["netobs.conf"], re.M)[1])
        self.assertEqual(port, self.container["livenessProbe"]["httpGet"]["port"])
        annotations = self.manifests["DaemonSet"]["spec"]["template"]["metadata"]["annotations"]
        self.assertEqual(str(port), annotations["prometheus.io/port"])
        self.assertEqual(["run"], self.container["args"])


def members(kind=None):
    """The keys that JSON has of flows, or of records of another type, as the catalogue lists them."""
    name = "records.def" if kind else "fields.def"
    text = (SOURCE / "src/catalogue" / name).read_text()
    text = re.sub(r"^#.*\n", "", re.sub(r"/\*.*?\*/", "", text, flags=re.S), flags=re.M)
    for macro, first, key in re.findall(r'(\w*FIELD)\((\w+),[^"]*?"(\w+)"', text):
        if macro == "PROCESS_FIELD":
            yield from (f"Src{key}", f"Dst{key}")
        elif not kind or macro == "FIELD" and first == kind:
            yield key


class Words(unittest.TestCase):
    def test_what_was_sent_again_is_not_called_lost(self):
        """It may have been late only."""
        panels = [panel for path in (SOURCE / "packaging/grafana").glob("*.json")
                  for panel in json.loads(path.read_text())["panels"]
                  if "retransmitted" in json.dumps(panel)]
        self.assertLess(1, len(panels))
        for panel in panels:
            self.assertNotRegex(panel["title"], "(?i)los[st]")
            self.assertIn("Not all of these were lost", panel["description"])
        words = re.compile(r"(?i)\blossy\w*=retransmits|losses of tcp")
        for path in (SOURCE / "man", SOURCE / "src/catalogue", SOURCE / "src/cli"):
            for file in path.glob("*.*"):
                self.assertNotRegex(file.read_text(), words, file)


class ClickHouse(unittest.TestCase):
    def test_each_member_of_a_flow_or_session_has_a_column(self):
        text = (SOURCE / "packaging/clickhouse/netobs-tables.sql").read_text()
        table = re.sub(r"--.*", "", text[text.index("netobs_records ("):text.index(") ENGINE")])
        columns = re.findall(r"(\w+) (?:Array|LowCardinality|String|IPv6|U?Int)", table)
        wanted = {*members(), *members("session"), "type", "HostName", "HostId", "NetnsInodes"}
        self.assertLess({"Packets", "SrcContainerName", "ContainerName", "Sampling", "AppResponses"}, wanted)
        self.assertEqual(sorted(wanted), sorted(columns))

    def test_each_member_of_a_turn_queue_or_verdict_has_a_column(self):
        text = re.sub(r"--.*", "", (SOURCE / "packaging/clickhouse/netobs-verdicts.sql").read_text())
        for kind in "turn", "queue", "verdict":
            start = text.index(f"netobs_{kind}s (")
            table = re.sub(r"Tuple\([^)]*\)", "String", text[start:text.index(") ENGINE", start)])
            columns = re.findall(r"(\w+) (?:Array|LowCardinality|String|IPv6|Bool|U?Int)", table)
            self.assertEqual(sorted({*members(kind), "type", "HostName", "HostId"}), sorted(columns))


if __name__ == "__main__":
    unittest.main(verbosity=2)
