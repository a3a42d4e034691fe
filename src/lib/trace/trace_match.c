// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "trace_state.h"

#include "filter/filter.h"

#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool may_match(const char *expression, const char *protocols)
{
	char error[FILTER_ERROR_MAX];
	struct filter *filter = NULL;
	char *text;
	int err;

	if (!expression || !*expression)
		return true;
	if (asprintf(&text, "(%s) and (%s)", expression, protocols) < 0)
		return true;
	err = filter_new(text, &filter, &error);
	filter_free(filter);
	free(text);
	return err != -EINVAL;
}

bool trace_match_has_tcp(const char *expression)
{
	return may_match(expression, "tcp");
}

bool trace_match_has_datagrams(const char *expression)
{
	return may_match(expression, "udp or icmp or icmp6");
}

/* The first end of an ICMP tuple sends requests. */
static uint16_t type_of(const struct trace_tuple *tuple, int from)
{
	if (tuple->proto == IPPROTO_ICMP)
		return from ? ICMP_ECHOREPLY : ICMP_ECHO;
	return from ? ICMP6_ECHO_REPLY : ICMP6_ECHO_REQUEST;
}

bool trace_match(const struct filter *filter, const struct trace_tuple *tuple)
{
	const bool has_type = tuple->proto == IPPROTO_ICMP ||
			      tuple->proto == IPPROTO_ICMPV6;

	for (int from = 0; from < 2; from++) {
		struct filter_tuple packet = {
			.src_port = tuple->ports[from],
			.dst_port = has_type ? type_of(tuple, from) << 8 :
					       tuple->ports[!from],
			.proto = tuple->proto
		};

		memcpy(packet.src, tuple->addrs[from].bytes, sizeof(packet.src));
		memcpy(packet.dst, tuple->addrs[!from].bytes, sizeof(packet.dst));
		if (filter_match_tuple(filter, &packet))
			return true;
	}
	return false;
}
