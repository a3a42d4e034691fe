// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "loader.h"

#include <netobs/version.h>

#include "base/util.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The directory that this code is in; false: unknown. */
static bool find_own_dir(char dir[PATH_MAX])
{
	Dl_info self;
	char *slash;
	ssize_t len;

	if (!dladdr(__func__, &self) || !self.dli_fname)
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

/* ---- Kinds of sinks ---------------------------------------------------------------- */

static const struct {
	const char *name;
	const struct sink_module *module; /* NULL: to be loaded */
} kinds[] = {
	{ "json", &sink_json }, { "ipfix", NULL },	{ "kafka", NULL },
	{ "grpc", NULL },	{ "null", &sink_null },
};

static int load_module(struct spec *spec, const struct sink_module **ret_module)
{
	char why[512];
	const struct sink_module *module =
		loader_find(spec->kind, SINK_MODULE_SYMBOL, why, sizeof(why));

	if (!module) {
		spec_refuse(spec, "this kind of sink %s", why);
		return -ENOENT;
	}
	*ret_module = module;
	return 0;
}

static void refuse_kind(struct spec *spec)
{
	char all[256] = "";

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		size_t used = strlen(all);

		snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "",
			 kinds[i].name);
	}
	spec_refuse(spec, "there is no such kind of sink; there are %s", all);
}

int loader_find_kind(struct spec *spec, const struct sink_module **ret_module)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strcmp(kinds[i].name, spec->kind))
			continue;
		*ret_module = kinds[i].module;
		return *ret_module ? 0 : load_module(spec, ret_module);
	}
	refuse_kind(spec);
	return -EINVAL;
}
