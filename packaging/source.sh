# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# What build.sh and release.sh share: the version of the tree in $here, and archives that have
# the same bytes for the same tree. What differs in time is that of the last commit.

SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$here" log -1 --format=%ct 2>/dev/null ||
	stat -c %Y "$here/CMakeLists.txt")}
export SOURCE_DATE_EPOCH

# Commits before a release come before it in the order of versions.
find_version()
{
	local version commit

	version=$(sed -n 's/^#define NETOBS_VERSION "\(.*\)"/\1/p' "$here/include/netobs/version.h")
	commit=$(git -C "$here" rev-parse --short=8 HEAD 2>/dev/null || true)
	if [[ $commit ]] && ! git -C "$here" describe --exact-match --tags --match "v$version" \
		HEAD >/dev/null 2>&1; then
		version+=$(date -u -d "@$SOURCE_DATE_EPOCH" "+~git%Y%m%d%H%M%S.$commit")
	fi
	printf '%s' "$version"
}

# pack DIRECTORY ARCHIVE: the files that standard input lists, below netobs-$version
pack()
{
	LC_ALL=C sort -z | tar -C "$1" --null --verbatim-files-from -T - --mode=go+rX,go-w \
		--mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
		--transform="s,^\(\./\)\?,netobs-$version/," -c | gzip -n >"$2"
}
