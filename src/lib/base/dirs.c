// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "dirs.h"

#include "util.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* Behind the directory that is never made: "/usr", or none. */
static char *skip_first(char *path)
{
	if (*path != '/')
		return path;
	path += strspn(path, "/");
	return path + strcspn(path, "/");
}

int dirs_make_parents(const char *path)
{
	cleanup_free char *copy = strdup(path);
	char *slash;

	if (!copy)
		return -ENOMEM;
	slash = skip_first(copy);
	slash += strspn(slash, "/");
	while ((slash = strchr(slash, '/'))) {
		*slash = '\0';
		if (mkdir(copy, 0750) && errno != EEXIST)
			return -errno;
		*slash = '/';
		slash += strspn(slash, "/");
	}
	return 0;
}
