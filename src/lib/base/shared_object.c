// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "shared_object.h"

#include "util.h"

#include <netobs/version.h>

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The directory that the library is in; false: unknown. */
static bool find_own_dir(char dir[PATH_MAX])
{
	static const char own;
	/*
	 * netobsctl, which has a copy of this, takes the library's. The address of a function
	 * would be one of the program if that is not position-independent.
	 */
	const void *address = dlsym(RTLD_NEXT, "netobs_version") ?: &own;
	const struct link_map *object;
	Dl_info info;
	char *slash;
	ssize_t len;

	if (!dladdr1(address, &info, (void **)&object, RTLD_DL_LINKMAP))
		return false;
	len = snprintf(dir, PATH_MAX, "%s", object->l_name);
	/* The program has no name here: it may be called by any. */
	if (!len)
		len = readlink("/proc/self/exe", dir, PATH_MAX - 1);
	if (len < 0 || len >= PATH_MAX)
		return false;
	dir[len] = '\0';
	slash = strrchr(dir, '/');
	if (slash)
		*slash = '\0';
	return slash;
}

/* Packages of modules, in Debian and RPM; other packages have what they need. */
static const struct {
	const char *name, *package;
} packages[] = {
	{ "gzip", "netobs-sink-json" },	    { "zstd", "netobs-sink-json" },
	{ "json_net", "netobs-sink-json" }, { "ipfix", "netobs-sink-ipfix" },
	{ "kafka", "netobs-sink-kafka" },   { "grpc", "netobs-sink-grpc" },
	{ "http", "netobs-sink-http" },	    { "httpd", "netobsctl" },
};

/* Load it from beside this library, as in a build directory or a package; else as configured. */
static void *load_object(const char *name, bool *ret_is_there)
{
	char dir[PATH_MAX], path[PATH_MAX + 64];

	if (find_own_dir(dir)) {
		snprintf(path, sizeof(path), "%s/netobs/%s.so", dir, name);
		*ret_is_there = !access(path, F_OK);
		if (*ret_is_there)
			return dlopen(path,
				      RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	}
	snprintf(path, sizeof(path), NETOBS_MODULE_DIR "/%s.so", name);
	*ret_is_there = !access(path, F_OK);
	return *ret_is_there ?
		       dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) :
		       NULL;
}

static void explain_absence(const char *name, char *why, size_t why_size)
{
	for (size_t i = 0; i < ARRAY_SIZE(packages); i++)
		if (!strcmp(packages[i].name, name))
			snprintf(why, why_size,
				 "is not installed: install the package %s",
				 packages[i].package);
}

const void *shared_object_find(const char *name, const char *symbol, char *why,
			       size_t why_size)
{
	bool is_there;
	void *library = load_object(name, &is_there);
	const struct loaded *loaded = library ? dlsym(library, symbol) : NULL;

	if (!loaded && is_there)
		snprintf(why, why_size, "cannot be loaded: %s", dlerror());
	else if (!loaded)
		explain_absence(name, why, why_size);
	if (!loaded)
		return NULL;
	if (!strcmp(loaded->version, NETOBS_VERSION))
		return loaded;
	snprintf(why, why_size, "is of version %s, the library is %s",
		 loaded->version, NETOBS_VERSION);
	return NULL;
}
