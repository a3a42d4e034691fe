// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "kinds.h"

#include "util.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	const struct sink_module *module; /* NULL: to be loaded */
} kinds[] = {
	{ "json", &sink_json }, { "ipfix", NULL },	{ "kafka", NULL },
	{ "grpc", NULL },	{ "null", &sink_null },
};

/* Beside this library, as in a build directory or a package; else as configured. */
static void *load(const char *name)
{
	char path[PATH_MAX];
	Dl_info self;

	if (dladdr(kinds, &self) && self.dli_fname) {
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

static int load_module(struct spec *spec, const struct sink_module **ret_module)
{
	void *library = load(spec->kind);
	const struct sink_module *module =
		library ? dlsym(library, SINK_MODULE_SYMBOL) : NULL;

	if (!module) {
		spec_refuse(spec, "this kind of sink cannot be loaded: %s",
			    dlerror());
		return -ENOENT;
	}
	if (strcmp(module->version, NETOBS_VERSION)) {
		spec_refuse(spec,
			    "this kind of sink is of version %s, the library is %s",
			    module->version, NETOBS_VERSION);
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

int kinds_find(struct spec *spec, const struct sink_module **ret_module)
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
