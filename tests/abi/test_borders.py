#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""The tables in "Rooms and borders" of docs/architecture.md are law: a folder includes only what
its row names, and its row names nothing else. Within a folder, files are layered, too."""

import fnmatch
import os
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TREES = ("include", "src", "bench")

# Headers of libraries, and the names of the libraries in the tables.
LIBRARIES = {
    "bpf/": "libbpf", "curl/": "libcurl", "curses.h": "ncurses", "librdkafka/": "librdkafka",
    "microhttpd.h": "libmicrohttpd", "nghttp2/": "nghttp2", "openssl/": "OpenSSL",
    "pcap/": "libpcap", "zlib.h": "zlib", "zstd.h": "zstd",
}

# Folders in which files include each other in a circle still: the list may only shrink.
CIRCLES = {"src/lib/filter", "src/service/control", "src/service/metrics"}

# Folders in which one header declares all functions of a file: x.h those of x.c, or, where there is
# none, that of its module. So the includes show each call from module to module.
LAYERED = ("src/lib/attach", "src/lib/flows", "src/lib/nat")


# ---- The tables -------------------------------------------------------------------------


def expand(name):
    """base/{io,json}.h -> base/io.h, base/json.h"""
    match = re.fullmatch(r"(.*)\{(.*)\}(.*)", name)
    return [match[1] + part + match[3] for part in match[2].split(",")] if match else [name]


def path_of(name):
    """As a path in the repository, of a file or folder that an include names; files that the
    build makes, such as skeletons, stay as they are."""
    if name.split("/")[0] == "netobs":
        return "include/" + name
    if "/" not in name and "." in name:
        return name
    outside = name.split("/")[0] in ("bpf", "catalogue", "service", "cli")
    return ("src/" if outside else "src/lib/") + name


def read_rooms(text):
    """Folder -> the paths and libraries that it may use, in the order of the tables."""
    section = text.split("\n## Rooms and borders\n")[1].split("\n## ")[0]
    rooms = {}
    for row in re.findall(r"^\| `(.+?)` \|.*\| (.*?) ?\|$", section, flags=re.M):
        names = [name for span in re.findall(r"`(.+?)`", row[1]) for name in expand(span)]
        words = re.findall(r"[\w]+", re.sub(r"`.+?`", "", row[1]))
        rooms[row[0]] = [path_of(name) for name in names] + \
            [word for word in words if word in LIBRARIES.values()]
    return rooms


def is_folder(name):
    return "." not in os.path.basename(name) and name not in LIBRARIES.values()


def is_permitted(name, target):
    if is_folder(name):
        return os.path.dirname(target) == name
    return fnmatch.fnmatchcase(target, name)


# ---- The includes -----------------------------------------------------------------------


def target_of(folder, name, is_quoted):
    """The file, library or product of the build that an include means; None: libc's."""
    if name.startswith("netobs/"):
        return "include/" + name
    if not is_quoted:
        return next((library for prefix, library in LIBRARIES.items()
                     if name.startswith(prefix)), None)
    for base in (folder, "src", "src/lib"):
        if (ROOT / base / name).is_file():
            return os.path.normpath(f"{base}/{name}")
    return name


def includes_of_tree():
    """(file, target) of each include; both are paths in the repository."""
    for tree in TREES:
        for file in sorted((ROOT / tree).rglob("*")):
            if file.suffix not in (".c", ".h", ".def"):
                continue
            path = str(file.relative_to(ROOT))
            for quote, name in re.findall(r'^\s*#\s*include\s*(["<])([^">]+)[">]',
                                          file.read_text(), flags=re.M):
                target = target_of(os.path.dirname(path), name, quote == '"')
                if target:
                    yield path, target


# ---- The checks -------------------------------------------------------------------------


def breaches(rooms, includes):
    """Contradictions between the includes and the tables, as sentences."""
    used = {room: set() for room in rooms}
    wrong = []
    for file, target in includes:
        room = os.path.dirname(file)
        if room not in rooms:
            wrong.append(f"{room} ({file}): it has no row")
        elif os.path.dirname(target) != room:
            names = {name for name in rooms[room] if is_permitted(name, target)}
            used[room] |= names
            if not names:
                wrong.append(f"{file} includes {target}: the row of {room} does not name it")
    for room, names in rooms.items():
        wrong += [f"{room}: the row names {name}, which no file uses"
                  for name in names if name not in used[room]]
    return wrong


def upward(rooms):
    """Folders that are named above their own row."""
    above = set()
    for room, names in rooms.items():
        for name in names:
            if is_folder(name) and name not in above:
                yield f"{room}: {name} is not above"
        above.add(room)


def circles(includes, modules=()):
    """Folder -> a circle of files, of which x.c and x.h are one: ["a", "b", "a"]; modules: other
    files -> their header."""
    graph, headers = {}, dict(modules)
    for file, target in includes:
        one, other = (os.path.splitext(headers.get(path, path))[0] for path in (file, target))
        if one != other and os.path.dirname(one) == os.path.dirname(other):
            graph.setdefault(one, []).append(other)
    found, done = {}, set()

    def visit(unit, path):
        if unit in path:
            names = [os.path.basename(part) for part in path[path.index(unit):] + [unit]]
            found.setdefault(os.path.dirname(unit), names)
        elif unit not in done:
            for other in graph.get(unit, []):
                visit(other, path + [unit])
            done.add(unit)

    for unit in sorted(graph):
        visit(unit, [])
    return found


FUNCTION = re.compile(r"^(?!static\b)[a-z][\w *\n]*?\b(\w+)\([^;{}]*\)\n\{", flags=re.M)


def is_declared(function, header):
    return re.search(rf"^(\w[\w *]*[ *])?{function}\(", header, flags=re.M)


def header_of(name, files):
    """x.h of x.c; else the header that declares the first function of x.c."""
    own, functions = name[:-1] + "h", FUNCTION.findall(files[name])
    return own if own in files else next(
        (header for header, text in sorted(files.items())
         if header.endswith(".h") and functions and is_declared(functions[0], text)), own)


def undeclared(files):
    """Functions that neither the header of their file nor include/netobs declares; files: name ->
    text."""
    return [f"{name}: {function}" for name, text in files.items() if name.endswith(".c")
            for function in FUNCTION.findall(text)
            if not function.startswith("netobs_")
            and not is_declared(function, files.get(header_of(name, files), ""))]


def files_of(room):
    return {file.name: file.read_text() for file in (ROOT / room).iterdir()}


class BordersTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.rooms = read_rooms((ROOT / "docs/architecture.md").read_text())
        cls.includes = list(includes_of_tree())

    def test_includes_and_tables_say_the_same(self):
        self.assertEqual(breaches(self.rooms, self.includes), [])

    def test_folders_use_those_above_only(self):
        self.assertEqual(list(upward(self.rooms)), [])

    def test_each_row_is_a_folder(self):
        self.assertEqual([room for room in self.rooms if not (ROOT / room).is_dir()], [])
        self.assertGreater(len(self.rooms), 40)

    def test_files_include_each_other_in_no_circle(self):
        found = circles(self.includes)
        self.assertEqual({room: names for room, names in found.items()
                          if room not in CIRCLES}, {})
        self.assertEqual(CIRCLES - set(found), set(), "without a circle: drop it from the list")

    def test_modules_of_layered_folders_include_each_other_in_no_circle(self):
        modules = {f"{room}/{name}": f"{room}/{header_of(name, files)}"
                   for room in LAYERED for files in [files_of(room)]
                   for name in files if name.endswith(".c")}
        found = circles(self.includes, modules)
        self.assertEqual([found[room] for room in LAYERED if room in found], [])

    def test_layered_folders_declare_the_functions_of_a_file_in_one_header(self):
        for room in LAYERED:
            files = files_of(room)
            self.assertEqual(undeclared(files), [], room)
            self.assertGreater(sum(len(FUNCTION.findall(text)) for text in files.values()), 50)

    def test_service_needs_no_command_and_no_terminal(self):
        names = [name for room, names in self.rooms.items()
                 if room.startswith("src/service") for name in names]
        self.assertEqual([name for name in names
                          if name.startswith("src/cli") or name == "ncurses"], [])


class CheckerTest(unittest.TestCase):
    """The checks find errors."""

    rooms = read_rooms("\n## Rooms and borders\n"
                       "| `src/lib/base` | no flows | `bpf/{types,once}.h` |\n"
                       "| `src/lib/engine` | programs | `base`, `*.skel.h`, libbpf |\n")
    includes = [("src/lib/base/a.c", "src/bpf/types.h"), ("src/lib/base/a.c", "src/lib/base/a.h"),
                ("src/lib/base/b.c", "src/bpf/once.h"),
                ("src/lib/engine/b.c", "src/lib/base/a.h"),
                ("src/lib/engine/b.c", "flows.skel.h"), ("src/lib/engine/b.c", "libbpf")]

    def check(self, add=(), drop=()):
        return breaches(self.rooms, [pair for pair in self.includes if pair not in drop] + list(add))

    def test_what_is_permitted_passes(self):
        self.assertEqual(self.check(), [])

    def test_an_include_across_a_border_fails(self):
        crossing = ("src/lib/base/c.h", "src/lib/engine/b.h")
        self.assertEqual(self.check(add=[crossing]), [
            "src/lib/base/c.h includes src/lib/engine/b.h: "
            "the row of src/lib/base does not name it"])

    def test_each_file_and_library_needs_its_name(self):
        for target in ("src/bpf/maps.h", "vmlinux.h", "libbpf", "src/lib/engine/sub/b.h"):
            self.assertEqual(len(self.check(add=[("src/lib/base/a.c", target)])), 1, target)

    def test_a_permission_without_a_use_fails(self):
        for pair in self.includes:
            if os.path.dirname(pair[0]) != os.path.dirname(pair[1]):
                self.assertEqual(len(self.check(drop=[pair])), 1, pair)

    def test_a_folder_without_a_row_fails(self):
        self.assertIn("no row", self.check(add=[("src/lib/new/a.c", "src/lib/new/a.h")])[0])

    def test_a_folder_below_fails(self):
        turned = {room: self.rooms[room] for room in reversed(self.rooms)}
        self.assertEqual(list(upward(self.rooms)), [])
        self.assertEqual(list(upward(turned)), ["src/lib/engine: src/lib/base is not above"])

    def test_a_circle_fails(self):
        line = [("x/a.c", "x/a.h"), ("x/a.c", "x/b.h"), ("x/b.h", "x/c.h"), ("x/a.h", "y/b.h"),
                ("y/b.h", "x/a.h")]
        self.assertEqual(circles(line), {})
        self.assertEqual(circles(line + [("x/c.c", "x/a.h")]), {"x": ["a", "b", "c", "a"]})
        line += [("x/d.c", "x/a.h")]
        self.assertEqual(circles(line), {})
        self.assertEqual(circles(line, {"x/d.c": "x/c.h"}), {"x": ["a", "b", "c", "a"]})

    def test_a_function_of_another_header_fails(self):
        files = {"a.h": "int f(int x);\nint g(void);\nstruct s *\nk(void);\n/* See i(). */\n",
                 "a.c": "int f(int x)\n{\n}\n", "b.h": "int i(void);\n",
                 "b.c": "static int h(void)\n{\n}\n\nint\ng(void)\n{\n}\n",
                 "c.c": "struct s *k(void)\n{\n}\n\nint i(void)\n{\n}\n"}
        self.assertEqual(header_of("c.c", files), "a.h")
        self.assertEqual(undeclared(files), ["b.c: g", "c.c: i"])


if __name__ == "__main__":
    unittest.main()
