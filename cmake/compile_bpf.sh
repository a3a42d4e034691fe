#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# compile_bpf.sh SHARED OBJECT CLANG FLAGS...: compile a BPF program, or take from the directory SHARED what
# the compiler made of files with these bytes for another build directory. SHARED only saves time: where it
# cannot be read or written, the program is compiled.
set -eu

shared=$1 object=$2
shift 2

# sum: of the compiler, its arguments and all files that it reads; fails where names have blanks
sum()
{
	"$@" -M -MF "$object.d" -MT "$object" 2>/dev/null || return
	files=$(sed '1s/^.*: *//; s/\\$//' "$object.d")
	# shellcheck disable=SC2086 # words
	cat $files >"$object.read" 2>/dev/null || { rm "$object.read" && return 1; }
	{ "$1" --version && printf '%s\n' "$@" && cat "$object.read"; } | sha256sum | cut -d' ' -f1
	rm "$object.read"
}

key=$(sum "$@") || key=
if [ "$key" ] && [ -s "$shared/$key" ] && cp "$shared/$key" "$object" 2>/dev/null; then
	touch -c "$shared/$key" 2>/dev/null || :
	exit
fi
"$@" -c -o "$object" 2>"$object.said" || { cat "$object.said" >&2; exit 1; }
cat "$object.said" >&2
# Warnings are to be seen in each build, and files may have changed meanwhile.
if [ "$key" ] && ! [ -s "$object.said" ] && [ "$key" = "$(sum "$@")" ]; then
	{ mkdir -p "$shared" && find "$shared" -type f -mtime +1 -delete
	cp "$object" "$shared/$key.$$" && mv "$shared/$key.$$" "$shared/$key"; } 2>/dev/null || :
fi
rm "$object.said"
