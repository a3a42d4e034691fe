/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "top_tables.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <netobs/flow.h>

#include "base/clock_ms.h"
#include "group/names.h"

/* In the order of their keys, 1 to 9. */
static const struct {
	const char *name, *keys; /* NULL: those of --by */
} top_kinds[] = {
	{ "talkers", NULL },
	{ "flows", "tuple" },
	{ "hosts", "host" },
	{ "pairs", "pair" },
	{ "services", "service" },
	{ "ports", "port" },
	{ "interfaces", "interface,direction" },
	{ "protocols", "proto" },
	{ "processes", "process" },
};

static int top_table_init(struct top_table *table, const char *name,
			  const struct by *by)
{
	int err;

	*table = (struct top_table){ .name = name, .by = *by };
	err = groups_init(&table->next, by->size, TOP_GROUPS);
	if (!err)
		err = groups_init(&table->shown, by->size, TOP_GROUPS);
	return err ? err : groups_init(&table->total, by->size, TOP_GROUPS);
}

int top_tables_init(struct top_tables *tables, const struct by *first)
{
	char why[160];

	*tables = (struct top_tables){ .since_ns = clock_ns(CLOCK_MONOTONIC) };
	for (size_t i = 0; i < sizeof(top_kinds) / sizeof(top_kinds[0]); i++) {
		struct by by = *first;
		int err;

		if (top_kinds[i].keys)
			by_parse(top_kinds[i].keys, &by, why, sizeof(why));
		by.shows_rtt = first->shows_rtt;
		err = top_table_init(&tables->tables[tables->n++],
				     top_kinds[i].name, &by);
		if (err < 0) {
			top_tables_free(tables);
			return err;
		}
	}
	return 0;
}

static void top_table_add(struct top_table *table, const struct netobs_flow *flow,
			  enum by_end server, struct tally tally)
{
	_Alignas(uint64_t) uint8_t value[BY_SIZE];

	if (by_counts(&table->by, flow, BY_DESTINATION)) {
		by_fill(&table->by, flow, server, BY_DESTINATION, value);
		groups_add(&table->next, value, &tally);
	}
	if (table->by.both_ends) {
		tally.sent_packets = tally.packets;
		tally.sent_bytes = tally.bytes;
	}
	if (!by_counts(&table->by, flow, BY_SOURCE))
		return;
	by_fill(&table->by, flow, server, BY_SOURCE, value);
	groups_add(&table->next, value, &tally);
}

void top_tables_add(struct top_tables *tables, const struct netobs_flow *flow)
{
	const enum by_end server = server_find(&tables->servers, flow);
	const struct tally tally = tally_of(flow);

	tally_add(&tables->next_sum, &tally);
	for (size_t i = 0; i < tables->n; i++)
		top_table_add(&tables->tables[i], flow, server, tally);
}

int64_t top_tables_age_ns(const struct top_tables *tables)
{
	return clock_ns(CLOCK_MONOTONIC) - tables->since_ns;
}

static void top_table_turn(struct top_table *table)
{
	const struct groups done = table->next;

	table->next = table->shown;
	table->shown = done;
	groups_clear(&table->next);
	groups_add_all(&table->total, &table->shown);
}

static int64_t tally_ns(const struct tally *tally)
{
	return tally->end_ns - tally->start_ns;
}

void top_tables_turn(struct top_tables *tables, bool is_file)
{
	const int64_t age_ns = top_tables_age_ns(tables);
	struct top_sum *shown = &tables->shown_sum, *total = &tables->total_sum;

	for (size_t i = 0; i < tables->n; i++)
		top_table_turn(&tables->tables[i]);
	shown->tally = tables->next_sum;
	shown->ns = is_file ? tally_ns(&shown->tally) : age_ns;
	tally_add(&total->tally, &shown->tally);
	total->ns = is_file ? tally_ns(&total->tally) : total->ns + age_ns;
	tables->next_sum = (struct tally){ 0 };
	tables->since_ns += age_ns;
}

const struct top_sum *top_tables_sum(const struct top_tables *tables,
				     bool since_start)
{
	return since_start ? &tables->total_sum : &tables->shown_sum;
}

static bool row_has_text(const struct by *by, const uint8_t *value,
			 const struct top_query *query)
{
	char text[5 * NAMES_MAX];

	if (!*query->search)
		return true;
	for (size_t i = 0; i < by->n; i++) {
		by_text(by, i, value, query->names, text, sizeof(text));
		if (strcasestr(text, query->search))
			return true;
	}
	return false;
}

int top_tables_select(const struct top_tables *tables,
		      const struct top_query *query, struct rows *ret_rows)
{
	const struct top_table *table = &tables->tables[query->table];
	const struct groups *groups = query->since_start ? &table->total :
							   &table->shown;
	int err = 0;

	rows_init(ret_rows, &query->order, false, query->most);
	for (size_t i = 0; i < groups->n && !err; i++) {
		const struct group *group = groups_at(groups, i);

		if (row_has_text(&table->by, group->value, query))
			err = rows_add_group(ret_rows, group, table->by.size);
	}
	rows_sort(ret_rows);
	if (err < 0)
		return err;
	if (!groups->others.flows || *query->search)
		return 0;
	tally_add(&ret_rows->sum, &groups->others);
	return 1;
}

void top_tables_free(struct top_tables *tables)
{
	for (size_t i = 0; i < tables->n; i++) {
		groups_free(&tables->tables[i].next);
		groups_free(&tables->tables[i].shown);
		groups_free(&tables->tables[i].total);
	}
	tables->n = 0;
}
