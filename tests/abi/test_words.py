#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Cost: 20
"""Every verb, flag, value, JSON field and counter is where it is documented:
in -h, in the man page and in the completion, and nowhere without being there."""
# Needs: zsh

import functools
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NETOBSCTL = os.environ.get("NETOBSCTL", "netobsctl")
MADE = pathlib.Path(os.environ["NETOBS_TOOLS"]).parent / "man"  # of a .scd.in
COMPLETIONS = pathlib.Path(os.environ["NETOBS_TOOLS"]).parent / "completion"
COMPLETION = COMPLETIONS / "netobsctl.bash"
FLAG = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")

# Explained in netobsctl(8), and without flags of its own.
WITHOUT_PAGE = {"help"}


@functools.cache
def run(*args):
    done = subprocess.run([NETOBSCTL, *args], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"netobsctl {args}: {done.returncode}: {done.stderr}"
    assert not done.stderr, done.stderr
    return done.stdout


def help_verbs():
    verbs = run("-h").split("Verbs:\n")[1].split("\n\n")[0]
    return {line.split()[0] for line in verbs.splitlines()}


def help_lines(verb):
    """What -h defines: "-d, --duration SECONDS", without the explanation."""
    return [re.split(r"\s{2,}", line.strip())[0]
            for line in run(verb, "-h").splitlines() if re.match(r"\s+-", line)]


def help_flags(verb):
    return {flag for line in help_lines(verb) for flag in FLAG.findall(line)}


def help_choices(verb):
    """Option -> values, of options whose values are a list."""
    choices = {}
    for line in help_lines(verb):
        match = re.search(r"--([\w-]+) ([a-z]+(?:\|[a-z]+)+)", line)
        if match:
            choices["--" + match[1]] = set(match[2].split("|"))
    return choices


def man_page(name):
    page = ROOT / "man" / f"{name}.scd"
    if not page.exists():
        page = MADE / f"{name}.scd"
    return page.read_text().replace("\\", "")


def man_section(name, section):
    parts = re.split(r"^# (.*)$", man_page(name), flags=re.M)
    sections = dict(zip(parts[1::2], parts[2::2]))
    return sections[section]


def man_terms(name, section):
    """What a section defines: the bold words, or the callback, of lines before indented text."""
    terms = set()
    lines = man_section(name, section).splitlines()
    for line, after in zip(lines, lines[1:]):
        if line.startswith("*") and after.startswith("\t"):
            callback = re.findall(r"\(\*(\w+)\)\(", line)
            terms.update(callback or re.findall(r"\*([^*]+)\*", line))
    return terms


def man_flags(name):
    return {term for term in man_terms(name, "OPTIONS") if term.startswith("-")}


def complete(*words):
    """What pressing the tab key after these words offers."""
    script = ('source "$0"; COMP_WORDS=(netobsctl "$@"); COMP_CWORD=$#; '
              '_netobsctl; printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", script, str(COMPLETION), *words],
                          capture_output=True, text=True, timeout=60, check=True)
    assert not done.stderr, done.stderr
    return set(done.stdout.split())


# In a shell of its own, as completion needs one: types each line from $3 on, presses the tab key,
# and appends what is offered, and END, to $2. fpath has the directory $1. After ^X, which other keys
# begin with, it would wait for a second one.
ZSH = r"""
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D
compadd() {
	local -a hits
	[[ \" \$* \" == *' -'[OAD]' '* ]] && { builtin compadd \"\$@\"; return }
	builtin compadd -A hits \"\$@\"
	print -rl -- \$hits >>$2
	builtin compadd \"\$@\"
}
finish() { print -r END >>$2; BUFFER= }
zle -N finish
bindkey '^I' list-choices '^Y' finish
print READY"
zpty -r shell line '*READY*READY*'
for ((n = 1; n <= $# - 2; n++)); do
	zpty -w -n shell ${argv[n+2]}$'\t\x19'
	repeat 600; do
		while zpty -r -t shell line; do :; done
		(($(grep -cx END $2) == n)) && continue 2
		sleep 0.05
	done
	exit 1
done
"""


def complete_zsh(*lines):
    """What zsh offers after each of these, which are tuples of words."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "_netobsctl").symlink_to(COMPLETIONS / "netobsctl.zsh")
        (path / "offered").touch()
        subprocess.run(["zsh", "-f", "-c", ZSH, "zsh", path, path / "offered",
                        *(" ".join(("netobsctl",) + line) for line in lines)],
                       timeout=180, check=True, stdout=subprocess.DEVNULL)
        parts = re.split(r"^END$", (path / "offered").read_text(), flags=re.M)
    return [set(part.split()) for part in parts[:-1]]


def help_defaults(verb):
    """Option -> default, of those that have one."""
    found, option = {}, None
    for line in run(verb, "-h").splitlines():
        if re.match(r"\s+-", line):
            option = re.search(r"--[\w-]+", line)[0]
        match = re.search(r"\(default (\S+)\)$", line)
        if match:
            found[option] = match[1]
    return found


def shown_keys():
    """What config show has of a configuration with one sink."""
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write('[sink "x"]\noutput = null\n')
        file.flush()
        return json.loads(run("config", "show", "-o", "json", file.name))


def plain(text):
    """Without markup."""
    return re.sub(r"\*|\b_|_\b|(?<=[|/\[])_|_(?=[|/\].,:])", "", text)


def man_entry(name, section, term):
    """Of what a section defines: the line of terms and the text, without markup."""
    lines = man_section(name, section).splitlines()
    first = next(i for i, line in enumerate(lines)
                 if f"*{term}*" in line and line.startswith("*") and i + 1 < len(lines)
                 and lines[i + 1].startswith("\t"))
    last = first + 1
    while last < len(lines) and (not lines[last] or lines[last].startswith("\t")):
        last += 1
    return plain(lines[first]), plain(" ".join("\n".join(lines[first + 1:last]).split()))


class Words(unittest.TestCase):
    def setUp(self):
        self.verbs = help_verbs()
        self.assertLess({"flows", "check"}, self.verbs)

    def test_verbs(self):
        self.assertEqual(man_terms("netobsctl.8", "VERBS"), self.verbs)
        offered = {word for word in complete("") if not word.startswith("-")}
        self.assertEqual(offered, self.verbs)
        self.assertEqual(complete("help", ""), self.verbs)

    def test_a_page_for_each_verb(self):
        pages = {path.name.split(".")[0].split("-", 1)[1]
                 for path in (ROOT / "man").glob("netobsctl-*.8.scd*")}
        self.assertEqual(pages, self.verbs - WITHOUT_PAGE)
        for verb in pages:
            self.assertIn(f"netobsctl-{verb}(8)", run(verb, "-h"))
            self.assertIn(f"netobsctl-{verb}*(8)", man_page("netobsctl.8"))

    def test_flags_of_the_program(self):
        usage = set(FLAG.findall(run("-h").split("\n\n")[0].split("Observe")[0]))
        self.assertEqual(usage, {"-h", "--help", "--version"})
        self.assertEqual(man_flags("netobsctl.8"), usage)
        self.assertEqual({w for w in complete("") if w.startswith("-")}, usage)

    def test_flags_of_each_verb(self):
        for verb in self.verbs - WITHOUT_PAGE:
            with self.subTest(verb=verb):
                flags = help_flags(verb)
                self.assertLess({"-h", "--help"}, flags)
                self.assertEqual(man_flags(f"netobsctl-{verb}.8"), flags)
                self.assertEqual(complete(verb, "-"), flags)

    def test_each_flag_is_one_option(self):
        """Two lines of the catalogue must not give one verb the same flag."""
        for verb in self.verbs - WITHOUT_PAGE:
            with self.subTest(verb=verb):
                flags = [flag for line in help_lines(verb)
                         for flag in re.findall(r"^(?:(-\w), )?(--[\w-]+)", line)[0] if flag]
                self.assertEqual(sorted(flags), sorted(set(flags)))

    def test_zsh_offers_the_same(self):
        expected = {("",): self.verbs | {"-h", "--help", "--version"},
                    ("help", ""): self.verbs,
                    ("flows", "--by", "src,tun"): {"tunnel"}}
        for verb in self.verbs - WITHOUT_PAGE:
            expected[verb, "-"] = help_flags(verb)
            for option, values in help_choices(verb).items():
                expected[verb, option, ""] = values
        for line in (("flows", "-o", ""), ("trace", "-o", ""), ("flows", "--sort", ""), ("top", "--sort", ""),
                     ("flows", "--by", ""), ("flows", "--sampling", ""),
                     ("capture", "--listen", "")):
            expected[line] = complete(*line)
        for line, offered in zip(expected, complete_zsh(*expected)):
            with self.subTest(line=line):
                self.assertEqual(offered, expected[line])

    def test_zsh_completes_interfaces_and_files(self):
        file = ROOT / "CONTRIBUTING.md"
        line = ("flows", "-r", str(file)[:-4])
        interfaces, files = complete_zsh(("flows", "-i", ""), line)
        self.assertIn("lo", interfaces)
        self.assertIn(file.name, files)

    def test_values_and_defaults_are_in_the_manual_page(self):
        """As -h calls and has them."""
        for verb in self.verbs - WITHOUT_PAGE:
            page = f"netobsctl-{verb}.8"
            for line in help_lines(verb):
                with self.subTest(verb=verb, line=line):
                    match = re.search(r"(--[\w-]+)(\S*( [^a-z ]\S*| \S*\|\S*)?)", line)
                    terms, _ = man_entry(page, "OPTIONS", match[1])
                    self.assertIn(match[0], terms)
            for option, default in help_defaults(verb).items():
                with self.subTest(verb=verb, option=option):
                    _, text = man_entry(page, "OPTIONS", option)
                    if not re.search(r"[Aa]s (for|in) netobsctl", text):
                        self.assertRegex(text, "[Dd]efault")
                        self.assertIn(default, text)

    def test_values_are_completed_with_values(self):
        """Where there is no list of them, with files or nothing: never with options."""
        for verb in self.verbs - WITHOUT_PAGE:
            for line in help_lines(verb):
                match = re.fullmatch(r"(.*--[\w-]+) \S.*", line)
                for flag in FLAG.findall(match[1]) if match else ():
                    with self.subTest(verb=verb, flag=flag):
                        self.assertFalse({word for word in complete(verb, flag, "")
                                          if word.startswith("-")})

    def test_help_is_what_help_prints(self):
        for verb in self.verbs - WITHOUT_PAGE:
            self.assertEqual(run("help", verb), run(verb, "-h"))
            self.assertEqual(run(verb, "--help"), run(verb, "-h"))
        self.assertEqual(run("help"), run("-h"))

    def test_every_flag_in_the_synopsis_is_an_option_and_the_other_way_round(self):
        for verb in self.verbs - WITHOUT_PAGE:
            with self.subTest(verb=verb):
                synopsis = set(re.findall(r"\*(--?[\w-]+)\*",
                                          man_section(f"netobsctl-{verb}.8", "SYNOPSIS")))
                self.assertLessEqual(synopsis, help_flags(verb))
                for line in help_lines(verb):
                    if line != "-h, --help":
                        self.assertTrue(synopsis & set(FLAG.findall(line)), line)

    def test_values(self):
        for verb in self.verbs - WITHOUT_PAGE:
            for option, values in help_choices(verb).items():
                with self.subTest(verb=verb, option=option):
                    self.assertEqual(complete(verb, option, ""), values)
                    page = man_section(f"netobsctl-{verb}.8", "OPTIONS")
                    line = next(l for l in page.splitlines() if f"*{option}*" in l)
                    listed = set(re.findall(r"\*([a-z]+)\*", line))
                    self.assertEqual(listed, values)

    def test_keys_of_groups(self):
        keys = man_terms("netobsctl-flows.8", "GROUPS")
        self.assertLess({"src", "service"}, keys)
        self.assertEqual(complete("flows", "--by", ""), keys | {"flow"})
        self.assertEqual(complete("flows", "--by", "src,tun"), {"src,tunnel"})
        listed = re.search(r"KEY is (.*?)\.", run("flows", "-h"), re.S)[1]
        self.assertEqual(set(re.findall(r"\w+", listed)) - {"or"}, keys)
        source = (ROOT / "src/lib/group/key_table.c").read_text()
        table = source.split("group_keys_all[] = {")[1].split("};")[0]
        self.assertEqual(set(re.findall(r'KEY\("?(\w+)', table)), keys)

    def test_stores(self):
        self.assertEqual(complete("bench", "--stores", ""), man_terms("netobsctl-bench.8", "STORES"))

    def test_outputs(self):
        outputs = {"table", "json", "json:", "json:unix:", "json:tcp://", "json:tls://",
                   "ipfix:udp://", "ipfix:tcp://", "ipfix:tls://", "ipfix:file:", "kafka://",
                   "grpc://", "http://", "https://", "otlp://", "otlp+http://", "otlp+https://"}
        self.assertEqual(complete("flows", "-o", ""), outputs)
        for output in outputs:
            self.assertIn(f"*{output}*", man_section("netobsctl-flows.8", "OPTIONS"))
            if output != "table":
                self.assertIn(f"*{output}*", man_section("netobs-sinks.7", "KINDS"))

    def test_keys_of_the_configuration(self):
        """Each has an option of flows; those without one are for people at a terminal."""
        shown = shown_keys()
        keys = {(one["section"], one["key"]) for one in shown} - {("sink", "output")}
        self.assertIn(("flows", "interval"), keys)
        page = {(section, term) for section in {section for section, _ in keys}
                for term in man_terms("netobs.conf.5", f"[{section}]")} - {("host", "field.")}
        self.assertEqual(page, keys)
        others = {("metrics", key): "--metrics" + suffix for key, suffix in
                  (("listen", ""), ("textfile", "-textfile"))}
        options = {others.get(key, "--" + key[1].replace("_", "-")) for key in keys}
        self.assertEqual({flag for flag in help_flags("flows") if flag.startswith("--")} -
                         options, {"--help", "--output", "--by", "--sort",
                                   "--top", "--names", "--live", "--socket", "--duration",
                                   "--count", "--read", "--stats", "--verbose"})

    def test_defaults_and_changes_of_keys(self):
        """As the catalogue has them."""
        catalogue = (ROOT / "src/catalogue/options.def").read_text()
        changes = {(section, key): change for section, key, change in re.findall(
            r"^(?:OPTION_)?KEY\((\w+), (\w+), (\w+),", catalogue, re.M)}
        shown = shown_keys()
        defaults = {(one["section"], one["key"]): one["value"] for one in shown
                    if one["section"] != "sink"}
        self.assertEqual(set(changes), set(defaults))
        for (section, key), default in defaults.items():
            with self.subTest(section=section, key=key):
                terms, text = man_entry("netobs.conf.5", f"[{section}]", key)
                if default and "," not in terms:
                    self.assertIn("Default", text)
                    self.assertIn(default, text)
                intro = man_section("netobs.conf.5", f"[{section}]").split("\n*")[0]
                takes_restart = "takes a restart" in " ".join(f"{text} {intro}".split())
                if (section, key) != ("sessions", "buffer"):
                    self.assertEqual(takes_restart, changes[section, key] != "live")

    def test_interfaces_and_files_are_completed(self):
        file = str(ROOT / "CONTRIBUTING.md")
        self.assertEqual(complete("flows", "-i", "l") & {"lo"}, {"lo"})
        self.assertEqual(complete("flows", "-r", file[:-4]), {file})
        self.assertEqual(complete("flows", "-o", "json", ":", file[:-4]), {file})
        self.assertEqual(complete("flows", "--direction", "=", "in"), {"ingress"})
        targets = {"udp://", "tcp://", "tls://", "file:"}
        self.assertEqual(complete("flows", "-o", "ipfix", ":"), targets)
        self.assertEqual(complete("flows", "-o", "ipfix", ":", "t"), {"tcp://", "tls://"})
        self.assertEqual(complete("flows", "-o", "json", ":", "unix"), {"unix:"})
        self.assertNotIn("--stores", complete("bench", "drain", "--"))
        self.assertIn("kafka://", complete("bench", "export", ""))

    def test_functions(self):
        """Each is in NAME and SYNOPSIS of one page, and no page has others."""
        declared = {name for header in (ROOT / "include/netobs").glob("*.h")
                    for name in re.findall(r"\b(netobs_\w+)\(", re.sub(
                        r"/\*.*?\*/", "", header.read_text(), flags=re.S))}
        self.assertLess({"netobs_new", "netobs_version"}, declared)
        pages = [path.name.removesuffix(".in").removesuffix(".scd")
                 for path in (ROOT / "man").glob("*.3.scd*") if path.suffix != ".lists"]
        for section, expression in (("NAME", r"\b(netobs_\w+)"),
                                    ("SYNOPSIS", r"\b(netobs_\w+)\(")):
            found = [name for page in pages for name in
                     set(re.findall(expression, man_section(page, section)))
                     if name in declared or section == "SYNOPSIS"]
            self.assertEqual(sorted(declared), sorted(found))

    def test_results(self):
        """Each function that returns an int says what."""
        for header in (ROOT / "include/netobs").glob("*.h"):
            for comment, name in re.findall(
                    r"/\*\*((?:(?!\*/).)*)\*/\s*NETOBS_API int\s+(netobs_\w+)\(",
                    header.read_text(), re.S):
                with self.subTest(name):
                    self.assertIn("@return", comment)

    def test_options_of_a_context(self):
        header = (ROOT / "include/netobs/netobs.h").read_text()
        struct = re.sub(r"/\*.*?\*/", "", header.split("struct netobs_opts {")[1]
                        .split("\n};")[0], flags=re.S)
        members = set(re.findall(r"(\w+)(?:\)(?:\(.*?\)|\[\w+\]))?;", re.sub(r"\s+", " ", struct)))
        self.assertLess({"sz", "on_record", "error"}, members)
        self.assertEqual(members - {"reserved"}, man_terms("netobs_new.3", "OPTIONS"))

    def test_json_fields(self):
        """The list is made of the catalogue, the rest of the section by hand."""
        catalogue = (ROOT / "src/catalogue/fields.def").read_text()
        of_processes = set(re.findall(r'PROCESS_FIELD\(\w+, \w+, "(\w+)"', catalogue))
        ends = {"Src", "Dst"}
        fields = set(re.findall(r'"([A-Z]\w+)"', catalogue)) - of_processes - ends
        fields |= {end + name for end in ends for name in of_processes} | {"NetnsInodes"}
        self.assertLess({"SrcAddr", "Bytes"}, fields)
        self.assertEqual(man_terms("netobsctl-flows.8", "JSON FIELDS"), fields)
        section = man_section("netobsctl-flows.8", "JSON FIELDS")
        self.assertLessEqual(set(re.findall(r"\*(\w+)\*", section)), fields)

    def test_json_of_records(self):
        """These lists are made of the catalogue."""
        catalogue = (ROOT / "src/catalogue/records.def").read_text()
        for kind, page, section in (("session", "netobsctl-sessions.8", "FIELDS"),
                                    ("alert", "netobsctl-alerts.8", "JSON"),
                                    ("connection_way", "netobsctl-tcp.8", "JSON")):
            keys = set(re.findall(rf'FIELD\({kind}, [^"]*"(\w+)"', catalogue)) - {"AgentIP"}
            self.assertLess(5, len(keys))
            with self.subTest(page):
                self.assertLessEqual(keys, man_terms(page, section))

    def test_reasons(self):
        source = (ROOT / "src/catalogue/records.def").read_text()
        lists = re.findall(r"\nOBJECT_ENUM\((?:Unparsed|LostBy), .*?ENUM_END", source, flags=re.S)
        reasons = set(re.findall(r'VALUE\(\w+, \d+, \w+, "(\w+)"', "".join(lists)))
        self.assertLess({"arp", "memory"}, reasons)
        library = set(re.findall(r"\*(\w+)\*: ", man_section("netobs_stats.3", "FIELDS")))
        self.assertEqual(library, reasons)
        for reason in reasons:
            self.assertIn(f"*{reason}*", man_section("netobsctl-flows.8", "STATISTICS"))

    def test_no_column_of_conditionals(self):
        """clang-format pads `?:` where a line breaks after it: an if is easier to read."""
        for folder in ("src", "bench", "tests"):
            for path in (ROOT / folder).rglob("*.[ch]"):
                self.assertNotRegex(path.read_text(), r"[ \t]{2,}\?:", path)


if __name__ == "__main__":
    unittest.main(verbosity=2)
