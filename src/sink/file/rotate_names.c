// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "rotate_names.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Each 0 stands for a digit. */
static const char stamp_form[] = "00000000T000000Z";
enum { STAMP = sizeof(stamp_form) - 1, LONGEST_TAIL = 32 };

static int find_dir(const char *path, int len, char *ret_dir)
{
	char cwd[PATH_MAX] = "";
	int n;

	if (*path != '/' && !getcwd(cwd, sizeof(cwd)))
		return -errno;
	n = snprintf(ret_dir, PATH_MAX, "%s%s%.*s", cwd,
		     *path == '/' ? "" : "/", len, path);
	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int rotate_names_init(struct rotate_names *names, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');
	size_t len = strlen(name);

	if (!dot || dot == name)
		dot = name + len;
	if (!len || !strcmp(name, ".") || !strcmp(name, ".."))
		return -EISDIR;
	if (len + STAMP + LONGEST_TAIL > NAME_MAX)
		return -ENAMETOOLONG;
	snprintf(names->stem, sizeof(names->stem), "%.*s", (int)(dot - name),
		 name);
	snprintf(names->extension, sizeof(names->extension), "%s", dot);
	snprintf(names->part, sizeof(names->part), "%.*s" ROTATE_PART,
		 NAME_MAX - LONGEST_TAIL, name);
	/* With its slash: of /flows.json, that is the directory. */
	return find_dir(path, (int)(name - path), names->dir);
}

void rotate_names_make(const struct rotate_names *names, time_t start,
		       const char *suffix, rotate_name ret_name)
{
	struct tm tm;
	char *to;

	gmtime_r(&start, &tm);
	/* rotate_names_init() saw to it that there is room. */
	to = stpcpy(ret_name, names->stem);
	to += strftime(to, STAMP + 2, "-%Y%m%dT%H%M%SZ", &tm);
	stpcpy(stpcpy(to, names->extension), suffix);
}

/* What follows the stamp; NULL: it has none. */
static const char *behind_stamp(const struct rotate_names *names, const char *name)
{
	size_t len = strlen(names->stem);

	if (strncmp(name, names->stem, len) || name[len] != '-')
		return NULL;
	name += len + 1;
	for (int i = 0; i < STAMP; i++) {
		if (stamp_form[i] == '0' ? !isdigit((unsigned char)name[i]) :
					   name[i] != stamp_form[i])
			return NULL;
	}
	return name + STAMP;
}

static const char *behind_number(const char *at)
{
	size_t digits;

	if (*at != '_')
		return at;
	digits = strspn(at + 1, "0123456789");
	return digits ? at + 1 + digits : at;
}

void rotate_names_number(const struct rotate_names *names, const char *name,
			 unsigned int number, rotate_name ret_name)
{
	const char *at = behind_stamp(names, name);
	const char *rest = behind_number(at);
	char text[16] = "";

	if (number)
		snprintf(text, sizeof(text), "_%03u", number);
	snprintf(ret_name, sizeof(rotate_name), "%.*s%s%.180s",
		 (int)(at - name), name, text, rest);
}

bool rotate_names_match(const struct rotate_names *names, const char *name,
			const char *tail)
{
	static const char *const suffixes[] = { "", ".gz", ".zst" };
	const char *at = behind_stamp(names, name);
	size_t len = strlen(names->extension);

	if (!at)
		return false;
	at = behind_number(at);
	if (strncmp(at, names->extension, len))
		return false;
	at += len;
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		size_t suffix = strlen(suffixes[i]);

		if (!strncmp(at, suffixes[i], suffix) &&
		    !strcmp(at + suffix, tail))
			return true;
	}
	return false;
}
