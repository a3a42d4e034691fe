/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "top_tables.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

#include <netobs/flow.h>

#include "base/clock_ms.h"
#include <netobs/names.h>

/* In the order of the keyboard keys, 1 to 9. */
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

/* All tables get the same flows, and share knowledge of servers. */
static int top_table_init(struct top_table *table, const char *name,
			  const struct by *by, struct netobs_groups *beside)
{
	struct netobs_groups_opts opts = { .sz = sizeof(opts),
					   .keys = by->text,
					   .beside = beside };
	int err;

	*table = (struct top_table){ .name = name, .by = *by };
	err = netobs_groups_new(&opts, &table->next);
	if (!err) {
		opts.beside = table->next;
		err = netobs_groups_new(&opts, &table->shown);
	}
	return err ? err : netobs_groups_new(&opts, &table->total);
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
		by.shows_drops = first->shows_drops;
		err = top_table_init(&tables->tables[tables->n++],
				     top_kinds[i].name, &by,
				     tables->tables[0].next);
		if (err < 0) {
			top_tables_free(tables);
			return err;
		}
	}
	return 0;
}

void top_tables_add(struct top_tables *tables, const struct netobs_flow *flow)
{
	netobs_group_sum_flow(&tables->next_sum, flow);
	for (size_t i = 0; i < tables->n; i++)
		netobs_groups_add(tables->tables[i].next, flow);
}

int64_t top_tables_age_ns(const struct top_tables *tables)
{
	return clock_ns(CLOCK_MONOTONIC) - tables->since_ns;
}

static void top_table_turn(struct top_table *table)
{
	struct netobs_groups *done = table->next;

	table->next = table->shown;
	table->shown = done;
	netobs_groups_clear(table->next);
	netobs_groups_merge(table->total, table->shown);
}

static int64_t tally_ns(const struct netobs_group_sum *tally)
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
	netobs_group_sum_add(&total->tally, &shown->tally);
	total->ns = is_file ? tally_ns(&total->tally) : total->ns + age_ns;
	tables->next_sum = (struct netobs_group_sum){ 0 };
	tables->since_ns += age_ns;
}

const struct top_sum *top_tables_sum(const struct top_tables *tables,
				     bool since_start)
{
	return since_start ? &tables->total_sum : &tables->shown_sum;
}

struct netobs_groups *top_tables_groups(const struct top_tables *tables,
					size_t table, bool since_start)
{
	return since_start ? tables->tables[table].total :
			     tables->tables[table].shown;
}

/* A search in rows, and the groups that it searches. */
struct top_search {
	const struct top_query *query;
	const struct netobs_groups *groups;
	uint32_t n_keys;
};

static int has_text(const struct netobs_group *group, void *arg)
{
	const struct top_search *search = arg;
	char text[NETOBS_GROUP_TEXT_MAX];

	for (uint32_t i = 0; i < search->n_keys; i++) {
		netobs_group_text(search->groups, group, i,
				  search->query->names, text, sizeof(text));
		if (strcasestr(text, search->query->search))
			return true;
	}
	return false;
}

int top_tables_select(const struct top_tables *tables,
		      const struct top_query *query, struct rows *ret_rows)
{
	struct netobs_groups *groups =
		top_tables_groups(tables, query->table, query->since_start);
	struct top_search search = { query, groups,
				     tables->tables[query->table].by.keys.n };
	struct netobs_groups_top top = { .sz = sizeof(top),
					 .sort = query->order.sort,
					 .key = query->order.key,
					 .most = query->most,
					 .want = *query->search ? has_text : NULL,
					 .user = &search };

	rows_init(ret_rows, &query->order, 0);
	return rows_take_groups(ret_rows, groups, &top);
}

void top_tables_free(struct top_tables *tables)
{
	for (size_t i = 0; i < tables->n; i++) {
		netobs_groups_free(tables->tables[i].next);
		netobs_groups_free(tables->tables[i].shown);
		netobs_groups_free(tables->tables[i].total);
	}
	tables->n = 0;
}
