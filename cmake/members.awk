# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# awk -f members.awk HEADER... PAGE.scd: the page, with the members of structs and enumerators of
# the headers, and their comments, in place of lines such as "@struct netobs_opts@" and
# "@enum netobs_direction@". A comment before a member is also that of the members below it that
# have none, up to an empty line. Members that are reserved are left out.

FNR == 1 { files++ }

files < ARGC - 1 { # a header: bodies["struct netobs_opts"] is what its braces have
	if (/^(struct|enum) netobs_[a-z_]+ \{$/)
		kind = $1 " " $2
	else if (/^};/)
		kind = ""
	else if (kind)
		bodies[kind] = bodies[kind] $0 "\n"
	next
}

/^@(struct|enum) netobs_[a-z_]+@$/ {
	kind = substr($0, 2, length($0) - 2)
	if (!(kind in bodies)) {
		print FILENAME ": no header has " kind > "/dev/stderr"
		exit 1
	}
	list(bodies[kind])
	next
}

{ print }

function list(body,    n, lines, i, line, at)
{
	is_enum = kind ~ /^enum/
	is_bits = kind ~ /_field$/ # its comments are names of members
	comment = declaration = ""
	n = split(body, lines, "\n")
	for (i = 1; i <= n; i++) {
		line = lines[i]
		sub(/^[ \t]+/, "", line)
		if (line == "" && comment == "" && i < n)
			end_entry()
		at = comment != "" ? 1 : index(line, "/*")
		if (at != 1)
			read_code(at ? substr(line, 1, at - 1) : line, at)
		if (at)
			read_comment(substr(line, at))
	}
	sub(/[ \t]+$/, "", declaration)
	if (declaration)
		end_declaration(declaration ~ /=/ ? "" : "Their number.")
	end_entry()
}

function read_code(code, has_comment)
{
	sub(/[ \t]+$/, "", code)
	declaration = declaration (declaration ? " " : "") code
	if (code ~ (is_enum ? ",$" : ";$") || is_enum && has_comment)
		end_declaration("")
}

function read_comment(line)
{
	comment = comment line " "
	if (line !~ /\*\/$/)
		return
	if (comment ~ /^\/\*\*</)
		set_own_text(sentence(comment))
	else
		end_entry()
	if (comment ~ /^\/\*\* /)
		text = sentence(comment)
	comment = ""
}

# What is declared is one more of the entry, unless that has a text that is of its last one alone.
function end_declaration(own)
{
	if (is_complete)
		end_entry()
	sub(/[,;]$/, "", declaration)
	gsub(/[ \t]+/, " ", declaration)
	titles[++n_titles] = declaration
	declaration = ""
	if (own)
		set_own_text(own)
}

function set_own_text(own,    last)
{
	if (n_titles > 1) {
		last = titles[n_titles--]
		end_entry()
		titles[++n_titles] = last
	}
	text = text (text ? " " : "") own
	is_complete = 1
}

function end_entry(    i, shown)
{
	for (i = 1; i <= n_titles; i++)
		if (titles[i] !~ / reserved/) {
			printf "%s*%s*", shown ? "++\n" : "", escape(titles[i])
			shown = 1
		}
	if (shown)
		print (text ? "\n\t" text : "") "\n"
	n_titles = is_complete = 0
	text = ""
}

# The comment as a sentence of the page.
function sentence(comment)
{
	gsub(/^\/\*\*<?( \*)? *| *\*\/ *$/, "", comment)
	gsub(/ \*[ \t]+/, " ", comment)
	gsub(/[ \t]+/, " ", comment)
	gsub(/ \* /, " ", comment)
	comment = escape(comment)
	comment = emphasize(emphasize(comment, "@p [A-Za-z_\\\\]+", 3, 0), "`[^`]+`", 1, 1)
	sub(/[;,]$/, "", comment)
	if (!is_bits && match(comment, /^[a-z]+([ ,.;:]|$)/) && comment !~ /^(struct|enum|tcx|clsact) /)
		comment = toupper(substr(comment, 1, 1)) substr(comment, 2)
	return comment (comment ~ /\.$/ ? "" : ".")
}

# What matches, without @before and @after bytes of it, underlined.
function emphasize(text, pattern, before, after,    done)
{
	while (match(text, pattern)) {
		done = done substr(text, 1, RSTART - 1) "_" \
			substr(text, RSTART + before, RLENGTH - before - after) "_"
		text = substr(text, RSTART + RLENGTH)
	}
	return done text
}

function escape(text)
{
	gsub(/[*_]/, "\\\\&", text)
	return text
}
