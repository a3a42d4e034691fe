#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# build.sh deb|rpm DIRECTORY: packages of this tree in DIRECTORY, which is made anew. The
# same tree gives the same bytes: what differs in time is that of the last commit.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
name=netobs
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

# The files of the tree as they are, with what is not committed.
list_files()
{
	git -C "$here" ls-files -z 2>/dev/null ||
		(cd "$here" && find . -type f -not -path './build*' -print0)
}

# pack ARCHIVE
pack()
{
	list_files | tar -C "$here" --null --verbatim-files-from -T - --sort=name \
		--mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
		--transform="s,^\(\./\)\?,$name-$version/," -c | gzip -n >"$1"
}

# A package of Debian's own, -1, would replace these.
build_deb()
{
	local tree=$name-$version

	pack "${name}_$version.orig.tar.gz"
	tar -xf "${name}_$version.orig.tar.gz"
	cp -r "$tree/packaging/debian" "$tree/debian"
	cat >"$tree/debian/changelog" <<-CHANGELOG
		$name ($version-0upstream1) unstable; urgency=medium

		  * See /usr/share/doc/netobs/changelog.gz.

		 -- $(sed -n 's/^Maintainer: //p' "$tree/debian/control")  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
	CHANGELOG
	(cd "$tree" && dpkg-buildpackage -us -uc)
	rm -r "$tree"
	lintian --info --fail-on error,warning -- *.changes
}

build_rpm()
{
	mkdir SOURCES
	pack "SOURCES/$name-$version.tar.gz"
	# What builds it comes from the system, which need not be one of RPM packages.
	rpmbuild -ba --nodeps --define "_topdir $PWD" --define "netobs_version $version" \
		--define 'use_source_date_epoch_as_buildtime 1' \
		--define 'clamp_mtime_to_source_date_epoch 1' --define '_buildhost localhost' \
		"$here/packaging/rpm/netobs.spec"
	find RPMS SRPMS -name '*.rpm' -exec mv -t . {} +
	rm -rf BUILD BUILDROOT RPMS SOURCES SPECS SRPMS
}

version=$(find_version)
rm -rf "$2"
mkdir -p "$2"
cd "$2"
"build_$1"
