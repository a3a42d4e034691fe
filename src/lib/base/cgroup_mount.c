// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "cgroup_mount.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* @return whether a list with commas contains @word */
static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += len)
		if ((at == list || at[-1] == ',') &&
		    (!at[len] || at[len] == ',' || at[len] == '\n'))
			return true;
	return false;
}

bool cgroup_kind_has(const struct cgroup_kind *kind, const char *controllers)
{
	return kind->controller ? has_word(controllers, kind->controller) :
				  !*controllers;
}

static bool parse_mount(const char *line, const struct cgroup_kind *kind,
			struct cgroup_mount *ret_mount)
{
	const char *rest = strstr(line, " - ");
	char fs_type[32], options[CGROUP_PATH_MAX];

	if (!rest || sscanf(rest, " - %31s %*s %4095s", fs_type, options) != 2 ||
	    strcmp(fs_type, kind->fs_type))
		return false;
	if (kind->controller && !has_word(options, kind->controller))
		return false;
	return sscanf(line, "%*s %*s %*s %4095s %4095s", ret_mount->root,
		      ret_mount->point) == 2;
}

bool cgroup_mount_find(const char *root, const struct cgroup_kind *kind,
		       struct cgroup_mount *ret_mount)
{
	char path[PATH_MAX], line[2 * CGROUP_PATH_MAX];
	bool is_found = false;
	FILE *file;

	if (snprintf(path, sizeof(path), "%s/proc/self/mountinfo", root) >=
	    (int)sizeof(path))
		return false;
	file = fopen(path, "re");
	while (file && !is_found && fgets(line, sizeof(line), file))
		is_found = parse_mount(line, kind, ret_mount);
	if (file)
		fclose(file);
	return is_found;
}
