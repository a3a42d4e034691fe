// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "shared_object.h"

#include <netobs/version.h>

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The directory that the library is in; false: unknown. */
static bool find_own_dir(char dir[PATH_MAX])
{
	Dl_info self;
	char *slash;
	ssize_t len;

	if (!dladdr((void *)(uintptr_t)netobs_version, &self) || !self.dli_fname)
		return false;
	len = snprintf(dir, PATH_MAX, "%s", self.dli_fname);
	/* In a program itself, that is the name it was called by. */
	if (!strchr(self.dli_fname, '/'))
		len = readlink("/proc/self/exe", dir, PATH_MAX - 1);
	if (len < 0 || len >= PATH_MAX)
		return false;
	dir[len] = '\0';
	slash = strrchr(dir, '/');
	if (slash)
		*slash = '\0';
	return slash;
}

/* Beside this library, as in a build directory or a package; else as configured. */
static void *load(const char *name)
{
	char dir[PATH_MAX], path[PATH_MAX + 64];

	if (find_own_dir(dir)) {
		snprintf(path, sizeof(path), "%s/netobs/%s.so", dir, name);
		if (!access(path, F_OK))
			return dlopen(path,
				      RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	}
	snprintf(path, sizeof(path), NETOBS_MODULE_DIR "/%s.so", name);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

const void *shared_object_find(const char *name, const char *symbol, char *why,
			       size_t why_size)
{
	void *library = load(name);
	const struct loaded *loaded = library ? dlsym(library, symbol) : NULL;

	if (!loaded) {
		snprintf(why, why_size, "cannot be loaded: %s", dlerror());
		return NULL;
	}
	if (!strcmp(loaded->version, NETOBS_VERSION))
		return loaded;
	snprintf(why, why_size, "is of version %s, the library is %s",
		 loaded->version, NETOBS_VERSION);
	return NULL;
}
