// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Drops all records: a baseline for benchmarks of other sinks. */
#include "sink/module.h"

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
