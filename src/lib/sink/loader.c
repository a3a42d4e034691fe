// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "loader.h"

#include <netobs/version.h>

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Beside this library, as in a build directory or a package; else as configured. */
static void *load(const char *name)
{
	char path[PATH_MAX];
	Dl_info self;

	if (dladdr(__func__, &self) && self.dli_fname) {
		const char *slash = strrchr(self.dli_fname, '/');
		int dir = slash ? (int)(slash - self.dli_fname) : 1;

		snprintf(path, sizeof(path), "%.*s/netobs/%s.so", dir,
			 slash ? self.dli_fname : ".", name);
		if (!access(path, F_OK))
			return dlopen(path,
				      RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	}
	snprintf(path, sizeof(path), NETOBS_MODULE_DIR "/%s.so", name);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

const void *loader_find(const char *name, const char *symbol, char *why,
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
