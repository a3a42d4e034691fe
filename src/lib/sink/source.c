// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "source.h"

#include "base/log.h"

#include <netobs/netobs.h>
#include <netobs/sink.h>
#include <string.h>

static void resume_link(const struct sink_link *link)
{
	const uint64_t number = netobs_commits(sink_source_context(link->source));
	int err = number ? netobs_sink_resume(link->sink, number) : 0;

	if (err)
		log_error(link->log,
			  "the spool cannot be written to: %s: after a kill, records may be lost or sent twice",
			  strerror(-err));
}

void sink_source_commit(struct sink_source *source, uint64_t number)
{
	/* A disk that fails is logged by the spool, once. */
	for (struct sink_link *link = source->links; link; link = link->next)
		netobs_sink_commit(link->sink, number);
}

void sink_source_resume(struct sink_source *source)
{
	for (struct sink_link *link = source->links; link; link = link->next)
		resume_link(link);
}

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
	resume_link(link);
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
