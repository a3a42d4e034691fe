#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# compile_bpf.sh SHARED OBJECT CLANG FLAGS...: compile a BPF program, unless the directory SHARED has
# what the compiler has made of files with these bytes for another build directory.
set -eu

shared=$1 object=$2
shift 2
"$@" -M -MF "$object.d" -MT "$object"
files=$(sed 's/^[^ ]*://; s/\\$//' "$object.d")
# shellcheck disable=SC2086 # words
key=$({ "$1" --version && printf '%s\n' "$@" && cat $files; } | sha256sum)
kept=$shared/${key%% *}
if cp "$kept" "$object" 2>/dev/null; then
	touch "$kept"
	exit
fi
"$@" -c -o "$object"
mkdir -p "$shared"
find "$shared" -type f -mtime +1 -delete 2>/dev/null || : # another build may delete the same
cp "$object" "$kept.$$"
mv "$kept.$$" "$kept"
