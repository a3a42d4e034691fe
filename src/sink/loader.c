// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "loader.h"

#include "base/shared_object.h"
#include "base/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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
	const struct sink_module *module = shared_object_find(
		spec->kind, SINK_MODULE_SYMBOL, why, sizeof(why));

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
