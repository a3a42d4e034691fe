/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <netobs/drop.h>

#include "base/text.h"
#include "base/util.h"
#include "cli/flows/flows_request.h"
#include "cli/view/row.h"
#include "cli/view/verb_run.h"
#include "service/observe/flows_config.h"
#include "service/options/privileges.h"
#include "service/text/human.h"

enum { INTERVAL_MIN_MS = 100, JSON = 1, BY_FLOW = 1, FIRST_DROPS = 64 };

struct options {
	struct args_list interfaces; /* names; none: all */
	struct args_list filter_words;
	bool wants_benign;
	int output, by;
	uint32_t interval_ms;
	uint32_t duration_ms;
	uint32_t rows; /* 0: all */
	uint32_t verbose;
};

static const struct args_option options[] = {
#define SELECT_drops OPTION_SELECTED
#define OPTIONS_STRUCT struct options
#include "service/options/option_rows.h"
};

static const struct args_command command = {
	.name = "drops",
	.summary = "Show the packets that this kernel drops, and why",
	.options = options,
	.operands = "[FILTER]",
	.operand_list = offsetof(struct options, filter_words),
	.notes = "FILTER chooses drops by addresses, ports and protocol: see pcap-filter(7).\n",
};

/* Dropped packets of an interval, summed up for a table. */
struct drop_rows {
	struct netobs_drop *drops; /* the row's sum; the tuple is the largest flow's */
	uint32_t n, capacity;
	bool is_out_of_memory;
};

/* ---- Summing up ---------------------------------------------------------------------- */

static void drop_rows_add(struct drop_rows *rows, const struct netobs_drop *drop)
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

/* Sum up those of the same reason, place and interface, and with @by_flow of the same flow; the most
 * packets come first. */
static void drop_rows_sum(struct drop_rows *rows, bool by_flow)
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

static void drop_rows_clear(struct drop_rows *rows)
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

TABLE(drop_columns, DROP_COLUMNS, struct netobs_drop);

/**
 * @param most   rows to print; 0: all
 * @param width  of the line, at most; 0: there is no limit
 */
static void drop_rows_print(const struct drop_rows *rows, bool by_flow,
			    uint32_t most, uint32_t width)
{
	struct column columns[ARRAY_SIZE(drop_columns)];

	memcpy(columns, drop_columns, sizeof(columns));
	for (size_t i = 0; by_flow && i < ARRAY_SIZE(columns); i++)
		if (columns[i].put == put_FLOW)
			columns[i].heading = "FLOW";
	table_print(columns, ARRAY_SIZE(columns), rows->drops,
		    sizeof(*rows->drops), rows->n, most, width);
}

/* ---- The verb ------------------------------------------------------------------------- */

struct drops {
	struct verb verb;
	struct options options;
	char *filter; /* NULL: all */
	struct drop_rows rows;
};

static bool is_json(const struct drops *drops)
{
	return drops->options.output == JSON;
}

/* ---- Records --------------------------------------------------------------------------- */

/* @return whether @names have @name, or are none */
static bool is_selected(const struct args_list *names, const char *name)
{
	for (size_t i = 0; i < names->n; i++)
		if (!strcmp(names->items[i], name))
			return true;
	return !names->n;
}

static void on_drop(const struct netobs_record *record, void *user)
{
	const struct netobs_drop *drop = (const void *)record;
	struct drops *drops = user;
	char text[NETOBS_DROP_JSON_MAX];

	if (drops->verb.write_error ||
	    (drop->kind == NETOBS_DROP_BENIGN && !drops->options.wants_benign) ||
	    !is_selected(&drops->options.interfaces, drop->interface))
		return;
	if (!is_json(drops))
		drop_rows_add(&drops->rows, drop);
	else if (netobs_record_json(record, text, sizeof(text)) > 0 &&
		 puts(text) < 0)
		verb_flush(&drops->verb);
}

/* ---- Tables ---------------------------------------------------------------------------- */

static void print_rows(struct drops *drops)
{
	struct live *live = &drops->verb.live;

	live_begin(live, drops->filter ?: "drops of this kernel",
		   drops->options.interval_ms);
	drop_rows_print(&drops->rows, drops->options.by == BY_FLOW,
			live_room(live, drops->options.rows), live->columns);
	if (live->is_screen && !drops->rows.n)
		puts("No packet was dropped in this interval.");
}

static void show_table(struct drops *drops)
{
	/* The last interval is short: keep the rows that were shown before. */
	if (drops->verb.is_stopping && !drops->rows.n)
		return;
	drop_rows_sum(&drops->rows, drops->options.by == BY_FLOW);
	if (drops->verb.live.is_paused)
		return;
	if (drops->rows.n || drops->verb.live.is_screen)
		print_rows(drops);
	if (drops->rows.is_out_of_memory)
		fprintf(stderr, "netobsctl drops: cannot keep all drops: %s\n",
			strerror(ENOMEM));
	drop_rows_clear(&drops->rows);
}

static void on_interval(void *user)
{
	struct drops *drops = user;

	if (!is_json(drops) && !drops->verb.write_error)
		show_table(drops);
	verb_flush(&drops->verb);
}

/* ---- The run --------------------------------------------------------------------------- */

static int start_drops(void *object)
{
	struct drops *drops = object;
	NETOBS_OPTS(netobs_drops_opts, opts, .filter = drops->filter,
		    .interval_ms = drops->options.interval_ms,
		    .on_record = on_drop, .on_interval = on_interval,
		    .on_log = verb_log, .user = drops);
	int r = netobs_drops_new(&opts, &drops->verb.observer);

	drops->verb.status = r < 0 ? args_refusal_status(r) : EXIT_FINE;
	r = r ?: netobs_start(drops->verb.observer);
	if (r < 0)
		return verb_fail(&drops->verb, "start", r);
	privileges_drop(NULL, KEEP_FILES);
	live_start(&drops->verb.live, !is_json(drops));
	if (!drops->verb.live.is_screen)
		live_say("drops", "waiting for drops");
	if (is_json(drops))
		return 0;
	print_rows(drops); /* the headings */
	verb_flush(&drops->verb);
	return 0;
}

static int print_left_out(void *object, int r)
{
	const struct drops *drops = object;
	struct netobs_drops_stats stats = { .sz = sizeof(stats) };

	netobs_drops_stats_get(drops->verb.observer, &stats);
	if (stats.lost_packets || stats.missed)
		fprintf(stderr,
			"netobsctl drops: not shown: %" PRIu64
			" packets without room in the tables, %" PRIu64
			" drops in interrupts\n",
			stats.lost_packets, stats.missed);
	return r;
}

static const struct verb_ops drops_ops = {
	.start = start_drops,
	.finish = print_left_out,
};

static int run_drops(struct drops *drops)
{
	int status;

	drops->verb = (struct verb){
		.ops = &drops_ops,
		.name = command.name,
		.verbose = drops->options.verbose,
		.duration_ms = drops->options.duration_ms,
	};
	status = verb_run(&drops->verb);
	drop_rows_clear(&drops->rows);
	return status;
}

int cmd_drops(int argc, char **argv)
{
	struct drops drops = { .options.interval_ms = 1000 };
	struct options *wanted = &drops.options;
	int result = args_parse(&command, argc, argv, wanted);

	if (result == ARGS_RUN &&
	    flows_join_filter(&command, &wanted->filter_words, &drops.filter) < 0)
		result = EXIT_FAILED;
	if (result == ARGS_RUN && wanted->interval_ms < INTERVAL_MIN_MS) {
		args_complain(&command, "--interval: it is less than %d ms",
			      INTERVAL_MIN_MS);
		result = EXIT_USAGE;
	}
	if (result == ARGS_RUN)
		result = run_drops(&drops);
	free(drops.filter);
	args_list_clear(&wanted->filter_words);
	args_list_clear(&wanted->interfaces);
	return result;
}
