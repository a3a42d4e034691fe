/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* One JSON object per line. */
#include <errno.h>

#include <netobs/flow.h>

#include "output.h"

static void write_flow(struct output *output, const struct netobs_flow *flow)
{
	/* A record of more points than are promised to fit takes another round. */
	for (size_t size = NETOBS_FLOW_JSON_MAX;; size *= 2) {
		char *line = stream_room(&output->stream, size + 1);
		int len;

		if (!line)
			return;
		len = netobs_flow_json(flow, line, size);
		if (len == -ENOBUFS)
			continue;
		if (len < 0) {
			output->stream.error = len;
			return;
		}
		line[len] = '\n';
		stream_advance(&output->stream, (size_t)len + 1);
		return;
	}
}

const struct output_kind output_json = {
	.flow = write_flow,
};
