// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The modules of sinks, of which most are loaded on first use. */
#include "sink.h"

#include "base/shared_object.h"
#include "base/util.h"
#include "source.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct kind {
	const char *name;
	const char *prefix; /* prefix of targets that the module is for; NULL: all others */
	const struct sink_module *module; /* NULL: to be loaded, from NAME.so: */
	const char *file;		  /* or from FILE.so */
} kinds[] = {
	{ .name = "json", .prefix = "tcp:", .file = "json_net" },
	{ .name = "json", .prefix = "tls:", .file = "json_net" },
	{ .name = "json", .module = &sink_json },
	{ .name = "ipfix" },
	{ .name = "kafka" },
	{ .name = "grpc" },
	{ .name = "http" },
	{ .name = "https", .file = "http" },
	{ .name = "otlp", .file = "grpc" },
	{ .name = "otlp+http", .file = "http" },
	{ .name = "otlp+https", .file = "http" },
	{ .name = "null", .module = &sink_null },
};

static int load_module(struct spec *spec, const struct kind *kind,
		       const struct sink_module **ret_module)
{
	char why[512];
	const struct sink_module *module = shared_object_find(
		kind->file ?: kind->name, SINK_MODULE_SYMBOL, why, sizeof(why));

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

		if (!kinds[i].prefix)
			snprintf(all + used, sizeof(all) - used, "%s%s",
				 used ? ", " : "", kinds[i].name);
	}
	spec_refuse(spec, "there is no such kind of sink; there are %s", all);
}

static bool is_of_kind(const struct spec *spec, const struct kind *kind)
{
	const char *prefix = kind->prefix ?: "";

	return !strcmp(kind->name, spec->kind) &&
	       !strncmp(spec->target ?: "", prefix, strlen(prefix));
}

int sink_find_module(struct spec *spec, const struct sink_module **ret_module)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!is_of_kind(spec, &kinds[i]))
			continue;
		*ret_module = kinds[i].module;
		return *ret_module ? 0 : load_module(spec, &kinds[i], ret_module);
	}
	refuse_kind(spec);
	return -EINVAL;
}

/* ---- Sources ------------------------------------------------------------------------- */

void sink_source_release(struct sink_source *source)
{
	while (source->links)
		sink_source_remove(source->links);
}

void sink_source_add(struct sink_source *source, struct sink_link *link)
{
	link->source = source;
	link->next = source->links;
	source->links = link;
}

void sink_source_remove(struct sink_link *link)
{
	struct sink_link **at = link->source ? &link->source->links : NULL;

	while (at && *at != link)
		at = &(*at)->next;
	if (at)
		*at = link->next;
	link->source = NULL;
}
