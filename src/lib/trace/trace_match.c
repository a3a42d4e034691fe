// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "trace_match.h"

#include "filter/tuple.h"

#include <netinet/in.h>
#include <string.h>

bool trace_match(const struct filter *filter, const struct trace_tuple *tuple)
{
	for (int from = 0; from < 2; from++) {
		struct filter_tuple segment = { .src_port = tuple->ports[from],
						.dst_port = tuple->ports[!from],
						.proto = IPPROTO_TCP };

		memcpy(segment.src, tuple->addrs[from].bytes, 16);
		memcpy(segment.dst, tuple->addrs[!from].bytes, 16);
		if (filter_match_tuple(filter, &segment))
			return true;
	}
	return false;
}
