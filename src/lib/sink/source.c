// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "source.h"

#include <stddef.h>

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
