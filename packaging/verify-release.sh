#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# verify-release.sh DIRECTORY [REPOSITORY]: whether the files of a release are those that it was
# signed with, its list of files (SBOM) is complete, and, with a repository that has its tag, the
# archive contains that commit. Needs coreutils, tar and python3; with a repository also git, and
# what a build needs. Take this script from a repository that you trust.
set -euo pipefail

die()
{
	printf 'verify-release: %s\n' "$*" >&2
	exit 1
}

# Each file has a sum, and each sum a file.
check_sums()
{
	sha256sum --check --strict --quiet SHA256SUMS || die 'files are not those of SHA256SUMS'
	comm -3 <(find . -type f -not -name 'SHA256SUMS*' -printf '%P\n' | sort) \
		<(sed 's/^[0-9a-f]* [ *]//' SHA256SUMS | sort) >"$work/differences"
	[[ ! -s $work/differences ]] ||
		die "not in SHA256SUMS, or missing: $(tr -s '\n\t' ' ' <"$work/differences")"
	printf 'sums: %d files are those of SHA256SUMS\n' "$(wc -l <SHA256SUMS)"
}

check_signature()
{
	if [[ ! -e SHA256SUMS.asc ]]; then
		printf 'signature: there is none (SHA256SUMS.asc)\n'
		return
	fi
	gpg --verify SHA256SUMS.asc SHA256SUMS || die 'the signature of SHA256SUMS is wrong'
	printf 'signature: right; whether the key is, is for you to know\n'
}

check_sbom()
{
	python3 - "$archive" "$base.spdx.json" <<-'CODE' || die "the SBOM is not that of $archive"
		import hashlib, json, sys, tarfile

		with open(sys.argv[2], encoding="utf-8") as file:
		    listed = {one["fileName"]: one for one in json.load(file)["files"]}
		with tarfile.open(sys.argv[1]) as archive:
		    found = {"./" + one.name.split("/", 1)[1]: archive.extractfile(one).read()
		             for one in archive if one.isfile()}
		wrong = sorted(listed.keys() ^ found.keys())
		for name in sorted(listed.keys() & found.keys()):
		    sums = {one["algorithm"]: one["checksumValue"] for one in listed[name]["checksums"]}
		    if sums["SHA256"] != hashlib.sha256(found[name]).hexdigest():
		        wrong.append(name)
		    if not listed[name]["licenseConcluded"]:
		        wrong.append(name)
		print("SBOM:", f"differs: {wrong}" if wrong else f"has all {len(found)} files of the archive")
		sys.exit(bool(wrong) or not found)
	CODE
}

# The commit is that of the tag; without one, the version ends in its hash.
rebuild()
{
	local commit=v$version

	[[ $version != *git* ]] || commit=${version##*.}
	git clone -q --no-checkout "$1" "$work/tree"
	git -C "$work/tree" checkout -q "$commit" || die "the repository has no $commit"
	"$work/tree/packaging/release.sh" --source "$work/again"
	cmp "$archive" "$work/again/$archive" || die "$archive is not that of $commit"
	printf 'archive: it has the bytes of %s\n' "$commit"
}

(($# == 1 || $# == 2)) || die 'usage: verify-release.sh DIRECTORY [REPOSITORY]'
repository=${2:+$(realpath "$2")}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$1"
archive=$(echo netobs-*.tar.gz)
base=${archive%.tar.gz}
version=${base#netobs-}
[[ -f $archive && -f SHA256SUMS ]] || die "$1 is not a release"
check_sums
check_signature
check_sbom
[[ ! $repository ]] || rebuild "$repository"
