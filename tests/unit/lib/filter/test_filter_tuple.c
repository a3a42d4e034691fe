// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Which packets match, by their addresses, ports and protocol alone. */
#include "lib_addr.h"
#include "lib_test.h"

#include "filter/filter.h"

#include <netinet/in.h>

static const struct row {
	const char *expression, *src, *dst;
	uint16_t src_port, dst_port;
	uint8_t proto;
	bool is_match;
} rows[] = {
	{ "udp dst port 53", "10.0.0.1", "10.0.0.2", 5353, 53, IPPROTO_UDP, true },
	{ "udp dst port 53", "10.0.0.1", "10.0.0.2", 53, 5353, IPPROTO_UDP,
	  false },
	{ "tcp port 53", "10.0.0.1", "10.0.0.2", 5353, 53, IPPROTO_UDP, false },
	{ "tcp port 443", "fd00::1", "fd00::2", 443, 1024, IPPROTO_TCP, true },
	{ "sctp port 2905", "10.0.0.1", "10.0.0.2", 2905, 1, IPPROTO_SCTP, true },
	{ "src host 10.0.0.1", "10.0.0.1", "10.0.0.2", 0, 0, IPPROTO_GRE, true },
	{ "src host 10.0.0.2", "10.0.0.1", "10.0.0.2", 0, 0, IPPROTO_GRE, false },
	{ "dst net 10.0.0.0/8", "192.0.2.1", "10.9.9.9", 1, 2, IPPROTO_UDP, true },
	{ "dst net 10.0.0.0/8", "192.0.2.1", "11.9.9.9", 1, 2, IPPROTO_UDP,
	  false },
	{ "ip6", "fd00::1", "fd00::2", 1, 2, IPPROTO_UDP, true },
	{ "ip6", "10.0.0.1", "10.0.0.2", 1, 2, IPPROTO_UDP, false },
	{ "ip proto 47", "10.0.0.1", "10.0.0.2", 0, 0, IPPROTO_GRE, true },
	{ "icmp[icmptype] = icmp-echo", "10.0.0.1", "10.0.0.2", 0, 8 << 8,
	  IPPROTO_ICMP, true },
	{ "icmp[icmptype] = icmp-echo", "10.0.0.1", "10.0.0.2", 0, 3 << 8 | 1,
	  IPPROTO_ICMP, false },
	{ "icmp[icmpcode] = 1", "10.0.0.1", "10.0.0.2", 0, 3 << 8 | 1,
	  IPPROTO_ICMP, true },
	{ "icmp6[icmp6type] = icmp6-echo", "fd00::1", "fd00::2", 0, 128 << 8,
	  IPPROTO_ICMPV6, true },
};

static void assert_row(const struct row *row)
{
	struct filter_tuple tuple = { .src_port = row->src_port,
				      .dst_port = row->dst_port,
				      .proto = row->proto };
	char error[FILTER_ERROR_MAX] = "";
	struct filter *filter = NULL;

	if (filter_new(row->expression, &filter, &error))
		fail_msg("%s: %s", row->expression, error);
	set_addr(tuple.src, row->src);
	set_addr(tuple.dst, row->dst);
	if (filter_match_tuple(filter, &tuple) != row->is_match)
		fail_msg("%s, %s to %s: not %d", row->expression, row->src,
			 row->dst, row->is_match);
	filter_free(filter);
}

TEST(expressions_match_by_the_tuple)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_row(&rows[i]);
}

TEST(without_an_expression_all_match)
{
	const struct filter_tuple tuple = { 0 };

	assert_true(filter_match_tuple(NULL, &tuple));
}
