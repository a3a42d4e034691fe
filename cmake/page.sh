#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# page.sh SCDOC TEXT PAGE: a manual page with what scdoc leaves out.
set -e

"$1" <"$2" >"$3.raw"
{
	# By this first line, man(1) runs tbl.
	! grep -q '^\.TS' "$3.raw" || printf "'%s\n" '\" t'
	# groff takes quotation marks of headings away. In narrow cells it cannot adjust lines, and
	# has to break names with dots.
	sed -e '/^\.S[HS] /s/"/\\(dq/g' -e '/T{$/a .na' \
		-e '/^\.TS/,/^\.TE/s/\.\\&/&\\:/g' "$3.raw"
} >"$3"
rm "$3.raw"
