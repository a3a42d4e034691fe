#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Cost: 35
# Needs: binutils g++ iproute2 iputils-ping
"""The installed package serves its users: both examples, built both ways."""

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

SOURCE = Path(os.environ["NETOBS_SOURCE"])
RELEASE = Path(os.environ["NETOBS_RELEASE"])
CMAKE = os.environ.get("CMAKE", "cmake")
PREFIX = "usr/local"

# libc, libbpf with its libelf and zlib, libpcap; and what those load.
DIRECT = {"libc.so.6", "libbpf.so.1", "libelf.so.1", "libz.so.1", "libpcap.so.0.8"}

PROJECT = """
cmake_minimum_required(VERSION 3.20)
project(embed LANGUAGES C CXX)
find_package(netobs 0.2 REQUIRED)
add_executable(embed {examples}/embed.c)
add_executable(embed-cpp {examples}/embed.cpp)
target_compile_features(embed-cpp PRIVATE cxx_std_17)
foreach(example embed embed-cpp)
	target_compile_options(${{example}} PRIVATE -Wall -Wextra -Werror)
	target_link_libraries(${{example}} PRIVATE netobs::netobs)
endforeach()
"""


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}:\n{done.stdout}")
    return done.stdout


def needed(path):
    return set(re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", path)))


def closure(*paths):
    """What the dynamic linker loads for these, without the loader itself."""
    names = set()
    for path in paths:
        names.update(re.findall(r"^\s+(\S+) => ", run("ldd", path), re.M))
    return names


FIXED = """\
#include <netobs/sink.h>
#include <netobs/version.h>
#include <stdio.h>

static void on_log(int level, const char *message, void *user)
{
	(void)user;
	fprintf(stderr, "%d %s", level, message);
}

static const char *(*volatile version)(void) = netobs_version;

int main(int argc, char **argv)
{
	const NETOBS_OPTS(netobs_sink_opts, opts, .on_log = on_log);
	struct netobs_sink *sink;

	if (argc != 2 || netobs_sink_open(argv[1], &opts, &sink))
		return 1;
	netobs_sink_close(sink);
	return !version();
}
"""


@contextlib.contextmanager
def network_namespace():
    """A namespace with only lo; yields the prefix of commands to run in it."""
    holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
    try:
        own = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{holder.pid}/ns/net") == own:
            time.sleep(0.01)
        inside = ["nsenter", "--target", str(holder.pid), "--net", "--"]
        run(*inside, "ip", "link", "set", "lo", "up")
        yield inside
    finally:
        holder.kill()
        holder.wait()


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="netobs-install-")
        cls.addClassCleanup(directory.cleanup)
        cls.root = Path(directory.name)
        run(CMAKE, "--install", RELEASE, env={**os.environ, "DESTDIR": str(cls.root)})
        cls.prefix = cls.root / PREFIX
        cls.shared_object = next(cls.prefix.glob("lib*/**/libnetobs.so"))
        cls.environment = {
            **os.environ,
            "LD_LIBRARY_PATH": str(cls.shared_object.parent),
            "PKG_CONFIG_PATH": str(cls.shared_object.parent / "pkgconfig"),
            "PKG_CONFIG_SYSROOT_DIR": str(cls.root),
        }

    def pkg_config(self, *options):
        return run("pkg-config", *options, "libnetobs", env=self.environment).split()

    def build(self, compiler, source, *options):
        program = self.root / (source.stem + source.suffix.replace(".", "-"))
        run(compiler, "-Wall", "-Wextra", "-Werror", *options, source, "-o", program,
            *self.pkg_config("--cflags", "--libs"), env=self.environment)
        return program

    def watch_ping(self, program):
        """Let an example see a ping, and end it as a user would. Returns its output."""
        with network_namespace() as inside, \
                tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            process = subprocess.Popen([*inside, program, "lo"], stdout=out,
                                       stderr=err, env=self.environment)
            try:
                end = time.monotonic() + 60
                while process.poll() is None and not os.fstat(out.fileno()).st_size:
                    self.assertLess(time.monotonic(), end, "no record in a minute")
                    run(*inside, "ping", "-q", "-c", "3", "-i", "0.2", "127.0.0.1")
                process.send_signal(signal.SIGINT)
                code = process.wait(30)
            finally:
                process.kill()
                process.wait()
            out.seek(0)
            err.seek(0)
            self.assertEqual(0, code, err.read())
            return out.read().splitlines()

    def assert_sees_ping(self, program):
        pings = [record for record in map(json.loads, self.watch_ping(program))
                 if record["SrcAddr"] == record["DstAddr"] == "127.0.0.1"
                 and record["Proto"] == 1]
        self.assertTrue(pings)
        for record in pings:
            self.assertEqual(84 * record["Packets"], record["Bytes"])

    def test_c_example_with_pkg_config(self):
        source = SOURCE / "examples/embed.c"
        self.assertLessEqual(len(source.read_text().splitlines()), 60)
        self.assert_sees_ping(self.build("cc", source))

    def test_cpp_example_with_pkg_config(self):
        source = SOURCE / "examples/embed.cpp"
        self.assertLessEqual(len(source.read_text().splitlines()), 60)
        self.assert_sees_ping(self.build("c++", source, "-std=c++17"))

    def test_example_of_groups(self):
        """The bytes of the largest groups and of the others add up to the bytes of all flows."""
        source = SOURCE / "examples/top_talkers.c"
        self.assertLessEqual(len(source.read_text().splitlines()), 75)
        lines = [line.split(None, 1) for line in self.watch_ping(self.build("cc", source))
                 if line]
        sums = {"rows": 0}
        for count, what in lines:
            kind = what if what in ("others", "in all") else "rows"
            sums[kind] = sums.get(kind, 0) + int(count)
        self.assertGreater(sums["rows"], 0)
        self.assertEqual(sums["in all"], sums["rows"] + sums["others"])
        self.assertTrue(any(what.endswith("ICMP") for _, what in lines), lines)

    def test_examples_with_find_package(self):
        project = self.root / "project"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(
            PROJECT.format(examples=SOURCE / "examples"))
        run(CMAKE, "-G", "Ninja", "-S", project, "-B", project / "build",
            f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run(CMAKE, "--build", project / "build")
        for name in "embed", "embed-cpp":
            self.assert_sees_ping(project / "build" / name)

    def test_readme_program(self):
        """What the README says to write; only a signal ends it."""
        source = self.root / "monitor.c"
        readme = (SOURCE / "README.md").read_text()
        source.write_text(re.search(r"```c\n(.*?)```", readme, re.S)[1])
        program = self.build("cc", source)
        with network_namespace() as inside:
            process = subprocess.Popen(["stdbuf", "-oL", *inside, program], text=True,
                                       stdout=subprocess.PIPE, env=self.environment)
            try:
                for _ in range(60):
                    run(*inside, "ping", "-q", "-c", "5", "-i", "0.2", "127.0.0.1")
                    if select.select([process.stdout], [], [], 0)[0]:
                        break
                else:
                    self.fail("no record in a minute")
                record = json.loads(process.stdout.readline())
            finally:
                process.kill()
                process.communicate()
        self.assertEqual("127.0.0.1", record["SrcAddr"])

    def test_two_contexts_in_one_process(self):
        program = self.build("cc", SOURCE / "tests/abi/two_contexts.c")
        with network_namespace() as inside:
            self.assertEqual("100 150\n", run(*inside, program, "lo", env=self.environment))

    def test_program_that_is_not_position_independent(self):
        """Addresses of functions are its own there; sinks are beside the library."""
        source = self.root / "fixed.c"
        source.write_text(FIXED)
        out = self.root / "flows.ipfix"
        program = self.build("cc", source, "-fno-pie", "-no-pie")
        run(program, f"ipfix:file:{out}", env=self.environment)
        self.assertTrue(out.is_file())

    def test_version_is_the_same_everywhere(self):
        header = (self.prefix / "include/netobs/version.h").read_text()
        version = re.search(r'NETOBS_VERSION "(.*)"', header)[1]
        parts = re.findall(r"NETOBS_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header)
        self.assertEqual(version, ".".join(parts))
        self.assertEqual([version], self.pkg_config("--modversion"))
        self.assertTrue(self.shared_object.with_name(f"libnetobs.so.{version}").is_file())

    def test_library_needs_no_more_than_promised(self):
        self.assertLessEqual(needed(self.shared_object), DIRECT)
        found = re.findall(r"^\s+(\S+) => (\S+)", run("ldd", self.shared_object), re.M)
        paths = [path for name, path in found if name in DIRECT]
        self.assertLessEqual(closure(self.shared_object), DIRECT | closure(*paths))

    def test_command_needs_the_library_libc_and_ncurses(self):
        command = self.prefix / "sbin/netobsctl"
        self.assertEqual({"libnetobs.so.0.2", "libc.so.6", "libncursesw.so.6",
                          "libtinfo.so.6"}, needed(command))

    def test_the_command_starts_in_any_prefix(self):
        prefix = self.root / "opt/netobs"
        run(CMAKE, "--install", RELEASE, "--prefix", prefix)
        command = prefix / "sbin/netobsctl"
        self.assertIn(f"=> {prefix}/", run("ldd", command))
        self.assertIn("netobsctl ", run(command, "--version"))

    def test_benchmarks_are_found_where_they_are_installed(self):
        command = self.prefix / "sbin/netobsctl"
        program = self.prefix / "libexec/netobs/netobs-bench"
        self.assertNotIn("libnetobs.so.0.2", needed(program))
        self.assertIn("--quick", run(command, "bench", "-h", env=self.environment))
        hidden = program.with_name("hidden")
        program.rename(hidden)
        try:
            with self.assertRaisesRegex(AssertionError, "netobs-bench is not there: "
                                        "install the package netobs-bench"):
                run(command, "bench", "-h", env=self.environment)
        finally:
            hidden.rename(program)

    def test_what_is_not_installed_has_a_package(self):
        module = self.shared_object.parent / "netobs/kafka.so"
        hidden = module.with_name("hidden")
        config = self.root / "netobs.conf"
        config.write_text('[sink "k"]\noutput = kafka://localhost/flows\n')
        module.rename(hidden)
        try:
            with self.assertRaisesRegex(AssertionError, "netobs.conf:2:10: kafka: this kind of "
                                        "sink is not installed: install the package "
                                        "netobs-sink-kafka"):
                run(self.prefix / "sbin/netobsctl", "config", "check", config,
                    env=self.environment)
        finally:
            hidden.rename(module)

    def test_nothing_names_the_build_machine(self):
        for path in (self.shared_object, self.prefix / "sbin/netobsctl",
                     self.prefix / "libexec/netobs/netobs-bench"):
            content = path.read_bytes()
            for directory in (SOURCE, RELEASE):
                self.assertNotIn(bytes(directory) + b"/", content, path.name)

    def test_documentation_is_installed(self):
        for path in ("man/man8/netobsctl.8", "man/man3/netobs.3",
                     "bash-completion/completions/netobsctl",
                     "zsh/site-functions/_netobsctl",
                     "doc/netobs/README.md", "doc/netobs/LICENSE",
                     "doc/netobs/docs/metrics.md", "doc/netobs/examples/embed.c"):
            self.assertTrue((self.prefix / "share" / path).is_file(), path)


if __name__ == "__main__":
    unittest.main(verbosity=2)
