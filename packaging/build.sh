#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# build.sh deb|rpm DIRECTORY: packages of this tree in DIRECTORY, which is made anew.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=/dev/null
. "$here/packaging/source.sh"

# The files of the tree as they are, with what is not committed.
list_files()
{
	git -C "$here" ls-files -z 2>/dev/null ||
		(cd "$here" && find . -type f -not -path './build*' -print0)
}

# A package of Debian's own, -1, would replace these.
build_deb()
{
	local tree=netobs-$version

	list_files | pack "$here" "netobs_$version.orig.tar.gz"
	tar -xf "netobs_$version.orig.tar.gz"
	cp -r "$tree/packaging/debian" "$tree/debian"
	cat >"$tree/debian/changelog" <<-CHANGELOG
		netobs ($version-0upstream1) unstable; urgency=medium

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
	list_files | pack "$here" "SOURCES/netobs-$version.tar.gz"
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
