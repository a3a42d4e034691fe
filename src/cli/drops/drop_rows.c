// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "drop_rows.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/util.h"
#include "cli/view/row.h"
#include "service/text/human.h"

enum { FIRST_DROPS = 64 };

/* ---- Summing up ---------------------------------------------------------------------- */

void drop_rows_add(struct drop_rows *rows, const struct netobs_drop *drop)
{
	if (array_reserve(&rows->drops, rows->n, &rows->capacity,
			  sizeof(*rows->drops), FIRST_DROPS))
		rows->drops[rows->n++] = *drop;
	else
		rows->is_out_of_memory = true;
}

static int compare_place(const struct netobs_drop *a, const struct netobs_drop *b)
{
	const uint32_t one[] = { a->kind, a->reason, a->netns_inode, a->ifindex };
	const uint32_t two[] = { b->kind, b->reason, b->netns_inode, b->ifindex };
	int order = strcmp(a->cause, b->cause) ?:
						 strcmp(a->function, b->function);

	return order ?: memcmp(one, two, sizeof(one));
}

/* Compare the members from the source to the reason why it was not parsed: the tuple, or its substitute. */
static int compare_flow(const struct netobs_drop *a, const struct netobs_drop *b)
{
	const size_t from = offsetof(struct netobs_drop, src);
	const size_t to = offsetof(struct netobs_drop, protocol) + 1;

	return memcmp((const char *)a + from, (const char *)b + from, to - from);
}

static int compare_packets(const void *a, const void *b)
{
	const struct netobs_drop *one = a, *two = b;

	return (one->packets < two->packets) - (one->packets > two->packets);
}

static int compare_places(const void *a, const void *b)
{
	return compare_place(a, b) ?: compare_packets(a, b);
}

static int compare_flows(const void *a, const void *b)
{
	return compare_place(a, b) ?: compare_flow(a, b);
}

void drop_rows_sum(struct drop_rows *rows, bool by_flow)
{
	struct netobs_drop *drops = rows->drops;
	uint32_t last = 0;

	if (!rows->n)
		return;
	qsort(drops, rows->n, sizeof(*drops),
	      by_flow ? compare_flows : compare_places);
	for (uint32_t i = 1; i < rows->n; i++) {
		if (compare_place(&drops[last], &drops[i]) ||
		    (by_flow && compare_flow(&drops[last], &drops[i]))) {
			drops[++last] = drops[i];
			continue;
		}
		drops[last].packets += drops[i].packets;
		drops[last].bytes += drops[i].bytes;
	}
	rows->n = last + 1;
	qsort(drops, rows->n, sizeof(*drops), compare_packets);
}

void drop_rows_clear(struct drop_rows *rows)
{
	free(rows->drops);
	*rows = (struct drop_rows){ 0 };
}

/* ---- Printing ------------------------------------------------------------------------- */

static void put_reason(const struct netobs_drop *drop, char *buf, size_t size)
{
	const char *name = drop_reason_text(drop);

	snprintf(buf, size, "%s%s", *name ? name : "-",
		 drop->kind == NETOBS_DROP_BENIGN ? " (benign)" : "");
}

static void put_interface(const struct netobs_drop *drop, char *buf, size_t size)
{
	if (*drop->interface)
		snprintf(buf, size, "%s", drop->interface);
	else if (drop->ifindex)
		snprintf(buf, size, "#%" PRIu32, drop->ifindex);
	else
		snprintf(buf, size, "-");
	safe_cell(buf);
}

static void put_address(char *buf, size_t size, const uint8_t ip[16],
			bool has_port, uint16_t port)
{
	if (has_port)
		human_address(buf, size, ip, port);
	else
		netobs_addr_str(ip, buf, size);
}

static void put_flow(const struct netobs_drop *drop, char *buf, size_t size)
{
	const bool has_ports = drop->record.has & NETOBS_DROP_HAS_PORTS &&
			       drop->protocol != IPPROTO_ICMP &&
			       drop->protocol != IPPROTO_ICMPV6;
	char src[NETOBS_ADDR_STR_MAX + 8], dst[sizeof(src)], protocol[24];

	if (drop->record.has & NETOBS_DROP_HAS_REST) {
		snprintf(buf, size, "(too many)");
		return;
	}
	if (!(drop->record.has & NETOBS_DROP_HAS_ADDRS)) {
		snprintf(buf, size, "-");
		return;
	}
	put_address(src, sizeof(src), drop->src, has_ports, drop->src_port);
	put_address(dst, sizeof(dst), drop->dst, has_ports, drop->dst_port);
	human_protocol(protocol, sizeof(protocol), drop->protocol);
	snprintf(buf, size, "%s %s > %s", protocol, src, dst);
}

/* Columns, in the form of row.h. */
#define DROP_COLUMNS(_, type)                                                  \
	_(type, PACKETS, "PACKETS", right, 0, 0, 1,                            \
	  human_count(buf, size, row->packets))                                \
	_(type, BYTES, "BYTES", right, 0, 0, 1,                                \
	  human_bytes(buf, size, row->bytes))                                  \
	_(type, REASON, "REASON", left, 0, 0, 1, put_reason(row, buf, size))   \
	/* within 80 columns */                                                \
	_(type, FLOW, "LARGEST FLOW", left, 0, 0, 1, put_flow(row, buf, size)) \
	_(type, LAYER, "LAYER", left, 0, 0, 1,                                 \
	  snprintf(buf, size, "%s", netobs_drop_layer_name(row->layer)))       \
	_(type, INTERFACE, "INTERFACE", left, 0, 0, 1,                         \
	  put_interface(row, buf, size))                                       \
	_(type, FUNCTION, "FUNCTION", left, 0, 0, 1,                           \
	  snprintf(buf, size, "%s", *row->function ? row->function : "-"))     \
	_(type, NETNS, "NETNS", right, 0, 0, 1,                                \
	  snprintf(buf, size, "%" PRIu32, row->netns_inode))

/* clang-format off */
DROP_COLUMNS(TABLE_TEXT, struct netobs_drop)

static const struct column drop_columns[] = { DROP_COLUMNS(TABLE_COLUMN, ) };
/* clang-format on */

void drop_rows_print(const struct drop_rows *rows, bool by_flow, uint32_t most,
		     uint32_t width)
{
	struct column columns[ARRAY_SIZE(drop_columns)];

	memcpy(columns, drop_columns, sizeof(columns));
	for (size_t i = 0; by_flow && i < ARRAY_SIZE(columns); i++)
		if (columns[i].put == put_FLOW)
			columns[i].heading = "FLOW";
	table_print(columns, ARRAY_SIZE(columns), rows->drops,
		    sizeof(*rows->drops), rows->n, most, width);
}
