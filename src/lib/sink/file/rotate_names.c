// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "rotate_disk.h"

#include "base/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define STAMP_FORMAT "-%Y%m%dT%H%M%SZ"

enum { STAMP_SIZE = sizeof("-20261121T164500Z"), LONGEST_TAIL = 48 };

int rotate_names_init(struct rotate_names *names, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');
	size_t len = strlen(name);
	char cwd[PATH_MAX] = "";
	int dir_len;

	if (!dot || dot == name)
		dot = name + len;
	if (!len || !strcmp(name, ".") || !strcmp(name, ".."))
		return -EISDIR;
	if (len + LONGEST_TAIL > NAME_MAX)
		return -ENAMETOOLONG;
	snprintf(names->stem, sizeof(names->stem), "%.*s", (int)(dot - name),
		 name);
	snprintf(names->extension, sizeof(names->extension), "%s", dot);
	stpcpy(stpcpy(names->part, name), ROTATE_PART);
	if (*path != '/' && !getcwd(cwd, sizeof(cwd)))
		return -errno;
	/* With its slash: of /flows.json, that is the directory. */
	dir_len = snprintf(names->dir, sizeof(names->dir), "%s%s%.*s", cwd,
			   *path == '/' ? "" : "/", (int)(name - path), path);
	return dir_len < (int)sizeof(names->dir) ? 0 : -ENAMETOOLONG;
}

void rotate_names_format(const struct rotate_names *names,
			 const struct rotate_final *final, const char *tail,
			 rotate_name ret_name)
{
	char *to = stpcpy(ret_name, names->stem);
	struct tm tm;

	/* rotate_names_init() saw to it that there is room. */
	gmtime_r(&final->start, &tm);
	to += strftime(to, STAMP_SIZE, STAMP_FORMAT, &tm);
	if (final->number)
		to += sprintf(to, "_%03u", final->number);
	stpcpy(stpcpy(stpcpy(to, names->extension), final->suffix), tail);
}

bool rotate_names_parse(const struct rotate_names *names, const char *name,
			const char *tail, struct rotate_final *ret_final)
{
	static const char *const suffixes[] = { "", ".gz", ".zst" };
	struct rotate_final final = { .number = 0 };
	size_t len = strlen(names->stem);
	struct tm tm = { 0 };
	const char *number = NULL;

	if (!strncmp(name, names->stem, len))
		number = strptime(name + len, STAMP_FORMAT, &tm);
	if (!number)
		return false;
	final.start = timegm(&tm);
	sscanf(number, "_%5u", &final.number);
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		rotate_name same;

		final.suffix = suffixes[i];
		rotate_names_format(names, &final, tail, same);
		if (!strcmp(name, same)) {
			*ret_final = final;
			return true;
		}
	}
	return false;
}
