// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The modules of sinks, of which most are loaded on first use. */
#include "sink.h"

#include "base/shared_object.h"
#include "base/text.h"
#include "base/util.h"

#include <errno.h>
#include <stddef.h>
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

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!kinds[i].prefix)
			text_append(all, sizeof(all), "%s%s", *all ? ", " : "",
				    kinds[i].name);
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
	while (!LIST_EMPTY(&source->links))
		sink_source_remove(LIST_FIRST(&source->links));
}

void sink_source_add(struct sink_source *source, struct sink_link *link)
{
	link->source = source;
	LIST_INSERT_HEAD(&source->links, link, of_source);
}

void sink_source_remove(struct sink_link *link)
{
	if (link->source)
		LIST_REMOVE(link, of_source);
	link->source = NULL;
}

/* ---- A sink that drops all ----------------------------------------------------------- */

/* Drops all records: a baseline for benchmarks of other sinks. */

struct null {
	struct sink_host *host;
};

static int null_open(struct spec *spec, struct sink_host *host, void *state)
{
	struct null *null = state;

	if (spec->target)
		spec_refuse(spec, "it takes no target: '%s'", spec->target);
	null->host = host;
	return spec_finish(spec);
}

static int null_work(void *state, bool flush)
{
	const struct null *null = state;
	struct sink_host *host = null->host;
	struct sink_item item;

	(void)flush;
	while (host->ops->next(host, &item))
		host->ops->ack(host, item.end);
	return 0;
}

static void null_close(void *state)
{
	(void)state;
}

const struct sink_module sink_null = {
	.version = NETOBS_VERSION,
	.types = UINT32_MAX,
	.state_size = sizeof(struct null),
	.open = null_open,
	.work = null_work,
	.close = null_close,
};
