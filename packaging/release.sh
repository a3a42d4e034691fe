#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# release.sh [--source | --abi] DIRECTORY: what a release of the last commit consists of, in
# DIRECTORY, which is made anew. --source: only the archive of the source; --abi: that, and what has
# changed in the ABI. CONTRIBUTING.md, "Releases", has the steps before and after it.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=/dev/null
. "$here/packaging/source.sh"

die()
{
	printf 'release: %s\n' "$*" >&2
	exit 1
}

# quietly LOG COMMAND...: its output is shown only if it fails
quietly()
{
	"${@:2}" >"$1" 2>&1 || {
		cat "$1" >&2
		die "failed: ${*:2}"
	}
}

# A tag is a promise: it is of this version, and the changelog knows.
check_commit()
{
	git -C "$here" diff --quiet HEAD || die 'there are changes that are not committed'
	[[ $version == *git* ]] || ! grep -q "^## $version (unreleased)" "$here/CHANGELOG.md" ||
		die "CHANGELOG.md says that $version is unreleased"
}

# extract COMMIT DIRECTORY
extract()
{
	mkdir -p "$2"
	git -C "$here" archive "$1" | tar -C "$2" -x
}

# configure SOURCE BUILD
configure()
{
	quietly "$2.log" cmake -S "$1" -B "$2" -G Ninja -DCMAKE_BUILD_TYPE=None \
		-DCMAKE_C_FLAGS='-O2 -g' -DCMAKE_INSTALL_PREFIX=/usr -DNETOBS_TESTS=OFF
}

# The commit with the generated pages, which a build without scdoc installs.
make_source()
{
	extract HEAD "$work/tree"
	configure "$work/tree" "$work/build"
	quietly "$work/man.log" cmake --build "$work/build" --target man
	mkdir "$work/tree/man/pages"
	cp "$work"/build/man/*.[1-9] "$work/tree/man/pages"
	(cd "$work/tree" && find . -type f -print0) | pack "$work/tree" "netobs-$version.tar.gz"
}

make_html()
{
	local page

	mkdir html
	for page in "$work"/tree/man/pages/*; do
		mandoc -T html -O man=%N.%S.html "$page" >"html/${page##*/}.html"
	done
}

make_sbom()
{
	quietly "$work/all.log" cmake --build "$work/build"
	DESTDIR=$work/root quietly "$work/install.log" cmake --install "$work/build"
	"$here/packaging/sbom.py" "$work/tree" "$work/root" "$version" >"netobs-$version.spdx.json"
}

soname()
{
	readelf -d "$1" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p'
}

# The library may not differ from that of the last release in what programs see, unless it has
# another soname. Structs may grow at their ends, and there may be more functions.
compare_abi()
{
	local last old=$work/last status=0

	if ! last=$(git -C "$here" describe --tags --abbrev=0 --match 'v*' HEAD^ 2>/dev/null); then
		echo "There is no release before this one."
		return
	fi
	extract "$last" "$old"
	configure "$old" "$old/build"
	quietly "$old.log" cmake --build "$old/build" --target netobs
	quietly "$work/lib.log" cmake --build "$work/build" --target netobs
	printf '%s: %s; %s: %s\n' "$last" "$(soname "$old/build/libnetobs.so")" \
		"$version" "$(soname "$work/build/libnetobs.so")"
	abidiff --no-added-syms --suppressions "$here/packaging/abi.suppr" \
		--headers-dir1 "$old/include" --headers-dir2 "$work/tree/include" \
		"$old/build/libnetobs.so" "$work/build/libnetobs.so" || status=$?
	((status == 0)) && printf 'The ABI is the same, or has grown.\n' && return
	# Its status is made of bits: 1 and 2 are errors.
	((status & 3)) && return 1
	[[ $(soname "$old/build/libnetobs.so") != "$(soname "$work/build/libnetobs.so")" ]]
}

only=
case ${1-} in
--source | --abi) only=$1 && shift ;;
esac
(($# == 1)) || die 'usage: release.sh [--source | --abi] DIRECTORY'
version=$(find_version)
check_commit
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$1"
mkdir -p "$1"
cd "$1"
make_source
[[ $only != --source ]] || exit 0
compare_abi >"netobs-$version.abi.txt" || {
	cat "netobs-$version.abi.txt" >&2
	die 'programs of the last release would break: the soname has to change, or the library'
}
[[ $only != --abi ]] || exit 0
make_html
make_sbom
cp "$here/CHANGELOG.md" "$here/packaging/verify-release.sh" .
find . -type f -printf '%P\0' | sort -z | xargs -0 sha256sum >"$work/sums"
mv "$work/sums" SHA256SUMS
