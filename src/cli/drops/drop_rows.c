// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "drop_rows.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "service/text/human.h"
#include "cli/view/text_table.h"

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

enum drop_column {
	PACKETS,
	BYTES,
	REASON,
	FLOW, /* within 80 columns */
	LAYER,
	INTERFACE,
	FUNCTION,
	NETNS,
	DROP_COLUMNS
};

static void put_reason(const struct netobs_drop *drop, char *buf)
{
	const char *name = drop_reason_text(drop);

	snprintf(buf, TEXT_CELL_MAX, "%s%s", *name ? name : "-",
		 drop->kind == NETOBS_DROP_BENIGN ? " (benign)" : "");
}

static void put_interface(const struct netobs_drop *drop, char *buf)
{
	if (*drop->interface)
		snprintf(buf, TEXT_CELL_MAX, "%s", drop->interface);
	else if (drop->ifindex)
		snprintf(buf, TEXT_CELL_MAX, "#%" PRIu32, drop->ifindex);
	else
		snprintf(buf, TEXT_CELL_MAX, "-");
}

static void put_address(char *buf, size_t size, const uint8_t ip[16],
			bool has_port, uint16_t port)
{
	if (has_port)
		human_address(buf, size, ip, port);
	else
		netobs_addr_str(ip, buf, size);
}

static void put_flow(const struct netobs_drop *drop, char *buf)
{
	const bool has_ports = drop->record.has & NETOBS_DROP_HAS_PORTS &&
			       drop->protocol != IPPROTO_ICMP &&
			       drop->protocol != IPPROTO_ICMPV6;
	char src[NETOBS_ADDR_STR_MAX + 8], dst[sizeof(src)], protocol[24];

	if (drop->record.has & NETOBS_DROP_HAS_REST) {
		snprintf(buf, TEXT_CELL_MAX, "(too many)");
		return;
	}
	if (!(drop->record.has & NETOBS_DROP_HAS_ADDRS)) {
		snprintf(buf, TEXT_CELL_MAX, "-");
		return;
	}
	put_address(src, sizeof(src), drop->src, has_ports, drop->src_port);
	put_address(dst, sizeof(dst), drop->dst, has_ports, drop->dst_port);
	human_protocol(protocol, sizeof(protocol), drop->protocol);
	snprintf(buf, TEXT_CELL_MAX, "%s %s > %s", protocol, src, dst);
}

static void fill_drop_cells(const void *drops, uint32_t row,
			    char (*text)[TEXT_CELL_MAX])
{
	const struct netobs_drop *drop = (const struct netobs_drop *)drops + row;

	human_count(text[PACKETS], TEXT_CELL_MAX, drop->packets);
	human_bytes(text[BYTES], TEXT_CELL_MAX, drop->bytes);
	put_reason(drop, text[REASON]);
	snprintf(text[LAYER], TEXT_CELL_MAX, "%s",
		 netobs_drop_layer_name(drop->layer));
	snprintf(text[FUNCTION], TEXT_CELL_MAX, "%s",
		 *drop->function ? drop->function : "-");
	put_interface(drop, text[INTERFACE]);
	snprintf(text[NETNS], TEXT_CELL_MAX, "%" PRIu32, drop->netns_inode);
	put_flow(drop, text[FLOW]);
}

void drop_rows_print(const struct drop_rows *rows, bool by_flow, uint32_t most,
		     uint32_t width)
{
	const char *const headings[DROP_COLUMNS] = {
		"PACKETS",  "BYTES",
		"REASON",   by_flow ? "FLOW" : "LARGEST FLOW",
		"LAYER",    "INTERFACE",
		"FUNCTION", "NETNS",
	};

	text_table_print(&(struct text_table){ .headings = headings,
					       .n_columns = DROP_COLUMNS,
					       .right = 1 << PACKETS |
							1 << BYTES | 1 << NETNS,
					       .n_rows = rows->n,
					       .most = most,
					       .width = width,
					       .fill = fill_drop_cells,
					       .rows = rows->drops });
}
