/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "rows.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* "10.0.0.1:40000", or the host alone. */
static void put_end(const struct flow_tuple *tuple, const uint8_t addr[16],
		    uint16_t port, struct netobs_names *names, char *buf,
		    size_t size)
{
	char host[NETOBS_NAME_MAX], service[NETOBS_NAME_MAX];

	netobs_names_host(names, addr, host, sizeof(host));
	if (!tuple->has_ports) {
		snprintf(buf, size, "%s", host);
		return;
	}
	netobs_names_port(names, port, tuple->proto, service, sizeof(service));
	human_endpoint(buf, size, host, service);
}

void tuple_text(const struct flow_tuple *tuple, struct netobs_names *names,
		char *buf, size_t size)
{
	char src[2 * NETOBS_NAME_MAX + 4], dst[2 * NETOBS_NAME_MAX + 4];

	put_end(tuple, tuple->src, tuple->src_port, names, src, sizeof(src));
	put_end(tuple, tuple->dst, tuple->dst_port, names, dst, sizeof(dst));
	snprintf(buf, size, "%s \u2192 %s", src, dst);
}

static int64_t rows_sort_number(enum netobs_group_sort sort,
				const struct netobs_group_sum *sum)
{
	switch (sort) {
	case NETOBS_GROUP_BY_PACKETS:
		return (int64_t)sum->packets;
	case NETOBS_GROUP_BY_RTT:
		return (int64_t)sum_rtt_ns(sum);
	case NETOBS_GROUP_BY_RETRANSMITS:
		return (int64_t)sum->retransmits;
	case NETOBS_GROUP_BY_DROPS:
		return (int64_t)sum->drop_packets;
	case NETOBS_GROUP_BY_DURATION:
		return sum->end_ns - sum->start_ns;
	case NETOBS_GROUP_BY_TIME:
		return -sum->start_ns;
	default:
		return (int64_t)sum->bytes;
	}
}

/* Equal flows in the order of their addresses, so that lines keep their place. */
static int rows_compare(const void *a, const void *b, void *arg)
{
	const struct row *left = a, *right = b;
	const struct order *order = arg;
	const int64_t more = rows_sort_number(order->sort, &left->sum);
	const int64_t less = rows_sort_number(order->sort, &right->sum);

	if (more != less)
		return more < less ? 1 : -1;
	return memcmp(&left->flow, &right->flow, sizeof(left->flow));
}

void rows_init(struct rows *rows, const struct order *order, size_t most)
{
	*rows = (struct rows){ .order = *order,
			       .list = { .compare = rows_compare,
					 .item_size = sizeof(struct row),
					 .most = most } };
}

int rows_add(struct rows *rows, const struct row *row)
{
	rows->list.arg = &rows->order;
	rows->added++;
	netobs_group_sum_add(&rows->sum, &row->sum);
	return top_n_add(&rows->list, row);
}

int rows_take_groups(struct rows *rows, struct netobs_groups *groups,
		     struct netobs_groups_top *top)
{
	const int n = netobs_groups_top(groups, top);
	int err = n < 0 ? n : 0;

	rows_clear(rows);
	rows->list.item_size = offsetof(struct row, info);
	rows->list.most = 0;
	for (size_t i = 0; !err && i < (size_t)n; i++) {
		const struct netobs_group *group = netobs_groups_row(groups, i);

		err = rows_add(rows, &(struct row){ .sum = group->sum,
						    .group = group });
	}
	if (err < 0)
		return err;
	rows->added = top->groups;
	netobs_group_sum_add(&rows->sum, &top->others);
	return (int)top->has_more;
}

void rows_sort(struct rows *rows)
{
	rows->list.arg = &rows->order;
	top_n_sort(&rows->list);
}

struct netobs_group_sum rows_rest(const struct rows *rows, size_t n)
{
	struct netobs_group_sum rest = rows->sum;

	for (size_t i = 0; i < n; i++) {
		const struct netobs_group_sum *shown = &rows_at(rows, i)->sum;

		rest.flows -= shown->flows;
		rest.packets -= shown->packets;
		rest.bytes -= shown->bytes;
		rest.sent_packets -= shown->sent_packets;
		rest.sent_bytes -= shown->sent_bytes;
		rest.rtt_samples -= shown->rtt_samples;
		rest.rtt_sum_ns -= shown->rtt_sum_ns;
		rest.retransmits -= shown->retransmits;
		rest.drop_packets -= shown->drop_packets;
		rest.drop_bytes -= shown->drop_bytes;
	}
	return rest;
}

void rows_clear(struct rows *rows)
{
	top_n_clear(&rows->list);
	rows->added = 0;
	rows->sum = (struct netobs_group_sum){ 0 };
}

void rows_free(struct rows *rows)
{
	top_n_free(&rows->list);
}
