// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "drop_rows.h"

#include <ifaddrs.h>
#include <inttypes.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

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

/* ---- Counters of interfaces ------------------------------------------------------------ */

/* include/uapi/linux/if_link.h explains each. They wrap, so differences are what counts; a driver may reset them. */
#define COUNTER(name)                                         \
	{                                                     \
#name, offsetof(struct rtnl_link_stats, name) \
	}
static const struct {
	const char *name;
	size_t offset;
} shown[] = {
	COUNTER(rx_dropped),	    COUNTER(rx_missed_errors),
	COUNTER(rx_over_errors),    COUNTER(rx_fifo_errors),
	COUNTER(rx_crc_errors),	    COUNTER(rx_length_errors),
	COUNTER(tx_dropped),	    COUNTER(tx_fifo_errors),
	COUNTER(tx_carrier_errors), COUNTER(tx_aborted_errors),
};
#undef COUNTER

static bool has_stats(const struct ifaddrs *interface)
{
	return interface->ifa_addr &&
	       interface->ifa_addr->sa_family == AF_PACKET &&
	       interface->ifa_data;
}

bool is_selected(const struct args_list *names, const char *name)
{
	for (size_t i = 0; i < names->n; i++)
		if (!strcmp(names->items[i], name))
			return true;
	return !names->n;
}

static unsigned int find_index(const struct ifaddrs *interface)
{
	return (unsigned int)((const struct sockaddr_ll *)(const void *)
				      interface->ifa_addr)
		->sll_ifindex;
}

/* Find an interface by its index: its name may belong to another one now. */
static const struct ifaddrs *find_before(const struct drop_counters *counters,
					 const struct ifaddrs *now)
{
	const struct ifaddrs *one = counters->before;

	while (one && (!has_stats(one) || find_index(one) != find_index(now)))
		one = one->ifa_next;
	return one;
}

static uint32_t read_counter(const struct ifaddrs *interface, size_t i)
{
	uint32_t value;

	memcpy(&value, (const char *)interface->ifa_data + shown[i].offset,
	       sizeof(value));
	return value;
}

/* A counter that is lower by much was reset, not wrapped. */
static uint32_t find_growth(uint32_t before, uint32_t now)
{
	return now < before && now - before > INT32_MAX ? now : now - before;
}

static void print_growth(const struct ifaddrs *before, const struct ifaddrs *now)
{
	char name[32];
	bool is_first = true;

	snprintf(name, sizeof(name), "%s", now->ifa_name);
	safe_cell(name);
	for (size_t i = 0; i < ARRAY_SIZE(shown); i++) {
		const uint32_t growth = find_growth(read_counter(before, i),
						    read_counter(now, i));

		if (!growth)
			continue;
		if (is_first)
			printf("counters of %s: ", name);
		printf("%s%s %" PRIu32, is_first ? "" : ", ", shown[i].name,
		       growth);
		is_first = false;
	}
	if (!is_first)
		putchar('\n');
}

void drop_counters_print(struct drop_counters *counters,
			 const struct args_list *names)
{
	struct ifaddrs *now;

	if (getifaddrs(&now))
		return;
	for (const struct ifaddrs *one = now; one; one = one->ifa_next) {
		const struct ifaddrs *before =
			has_stats(one) && is_selected(names, one->ifa_name) ?
				find_before(counters, one) :
				NULL;

		if (before)
			print_growth(before, one);
	}
	drop_counters_clear(counters);
	counters->before = now;
}

void drop_counters_clear(struct drop_counters *counters)
{
	if (counters->before)
		freeifaddrs(counters->before);
	counters->before = NULL;
}
