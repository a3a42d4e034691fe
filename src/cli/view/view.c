/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "view.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <netobs/flow.h>

#include "base/clock_ms.h"
#include "service/text/human.h"
#include "group/names.h"
#include "base/suggest.h"

/* Of what --sort is, beside the keys of --by. */
static const struct {
	const char *name;
	enum sort sort;
	bool flows, groups, hosts, screen; /* has a column there */
} view_sorts[] = {
	{ "bytes", SORT_BYTES, true, true, true, true },
	{ "packets", SORT_PACKETS, true, true, true, true },
	{ "flows", SORT_FLOWS, false, true, true, true },
	{ "sent", SORT_SENT, false, false, true, true },
	{ "duration", SORT_DURATION, true, false, false, true },
	{ "time", SORT_TIME, true, true, true, false },
	{ "rtt", SORT_RTT, true, true, true, true },
	{ "retransmits", SORT_RETRANSMITS, true, true, true, true },
};

static bool has_column(size_t i, const struct by *by, bool is_lines)
{
	if ((!is_lines && !view_sorts[i].screen) ||
	    (sort_is_of_rtt(view_sorts[i].sort) && !by->shows_rtt))
		return false;
	if (!by->n)
		return view_sorts[i].flows;
	return by->both_ends ? view_sorts[i].hosts : view_sorts[i].groups;
}

static void explain_sort(const char *text, const struct by *by, bool is_lines,
			 char *why, size_t size)
{
	struct suggestion suggestion = suggestion_for(text, strlen(text));
	const char *best, *before = "";
	size_t used;

	used = (size_t)snprintf(why, size, "this table has no such column");
	for (size_t i = 0; i < ARRAY_SIZE(view_sorts); i++)
		if (has_column(i, by, is_lines))
			suggestion_offer(&suggestion, view_sorts[i].name);
	best = suggestion_best(&suggestion);
	if (best) {
		snprintf(why + used, size - used, "; did you mean '%s'?", best);
		return;
	}
	used += (size_t)snprintf(why + used, size - used, "; there are ");
	for (size_t i = 0; i < ARRAY_SIZE(view_sorts); i++) {
		if (!has_column(i, by, is_lines))
			continue;
		used += (size_t)snprintf(why + used, size - used, "%s%s",
					 before, view_sorts[i].name);
		before = ", ";
	}
	if (by->n)
		snprintf(why + used, size - used, " and the keys of --by");
}

int view_parse_sort(const char *text, const struct by *by, bool is_lines,
		    struct order *ret_order, char *ret_why, size_t size)
{
	struct order order = { SORT_VALUE, 0, 0 };
	int offset = by_offset(by, text, &order.size);

	if (offset >= 0) {
		order.offset = (size_t)offset;
		*ret_order = order;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(view_sorts); i++) {
		if (strcmp(view_sorts[i].name, text) != 0 ||
		    !has_column(i, by, is_lines))
			continue;
		*ret_order = (struct order){ .sort = view_sorts[i].sort };
		return 0;
	}
	explain_sort(text, by, is_lines, ret_why, size);
	return -EINVAL;
}

int view_init(struct view *view, const struct view_options *options, size_t most)
{
	int err;

	*view = (struct view){ .options = options };
	if (options->top && (!most || options->top < most))
		most = options->top;
	rows_init(&view->next, &options->order, !options->by.n, most);
	rows_init(&view->rows, &options->order, !options->by.n, most);
	view->since_ns = clock_ns(CLOCK_MONOTONIC);
	err = options->by.n ?
		      groups_init(&view->groups, options->by.size, VIEW_GROUPS) :
		      0;
	if (err == 0 && options->want_names)
		err = names_new(NULL, &view->names);
	if (err < 0)
		view_free(view);
	return err;
}

static int view_add_flow(struct view *view, const struct netobs_flow *flow,
			 const struct tally *tally)
{
	struct row row = { .tally = *tally };

	by_fill_tuple(flow, &row.flow);
	human_info(row.info, sizeof(row.info), flow);
	human_where(row.where, sizeof(row.where), flow);
	human_processes(row.process, sizeof(row.process), flow->src_process,
			flow->dst_process);
	return rows_add(&view->next, &row);
}

static void view_add_to_group(struct view *view, const struct netobs_flow *flow,
			      enum by_end end, const struct tally *tally)
{
	const struct by *by = &view->options->by;
	_Alignas(uint64_t) uint8_t value[BY_SIZE];

	by_fill(by, flow, server_find(&view->servers, flow), end, value);
	groups_add(&view->groups, value, tally);
}

int view_add(struct view *view, const struct netobs_flow *flow)
{
	const struct by *by = &view->options->by;
	struct tally tally = tally_of(flow);

	tally_add(&view->next_sum, &tally);
	if (!by->n)
		return view_add_flow(view, flow, &tally);
	if (by_counts(by, flow, BY_DESTINATION))
		view_add_to_group(view, flow, BY_DESTINATION, &tally);
	if (by->both_ends) {
		tally.sent_packets = tally.packets;
		tally.sent_bytes = tally.bytes;
	}
	if (by_counts(by, flow, BY_SOURCE))
		view_add_to_group(view, flow, BY_SOURCE, &tally);
	return 0;
}

int64_t view_age_ns(const struct view *view)
{
	return clock_ns(CLOCK_MONOTONIC) - view->since_ns;
}

/* Others are in the sum, and in no row. */
static int view_take_groups(struct view *view)
{
	int err = 0;

	rows_clear(&view->rows);
	for (size_t i = 0; i < view->groups.n && !err; i++)
		err = rows_add_group(&view->rows, groups_at(&view->groups, i),
				     view->options->by.size);
	tally_add(&view->rows.sum, &view->groups.others);
	view->has_others = view->groups.others.flows;
	groups_clear(&view->groups);
	return err;
}

static void view_take_flows(struct view *view)
{
	struct rows done = view->next;

	view->next = view->rows;
	view->rows = done;
	rows_clear(&view->next);
}

int view_turn(struct view *view)
{
	int err = 0;

	if (view->options->by.n)
		err = view_take_groups(view);
	else
		view_take_flows(view);
	rows_sort(&view->rows);
	view->sum = view->next_sum;
	view->next_sum = (struct tally){ 0 };
	view->took_ns = view_age_ns(view);
	view->since_ns += view->took_ns;
	return err;
}

void view_free(struct view *view)
{
	groups_free(&view->groups);
	rows_free(&view->next);
	rows_free(&view->rows);
	names_free(view->names);
	view->names = NULL;
}

/* ---- Text ----------------------------------------------------------------------- */

const char *view_mixed_text(const struct tally *sum)
{
	return sum->is_mixed ? ", sampled at different rates" : "";
}

void view_sum_text(const struct tally *sum, const char *flows, int64_t ns,
		   char *buf, size_t size)
{
	char count[16], packets[16], bytes[16], rate[24], pace[16];

	human_count(count, sizeof(count), sum->flows);
	human_count(packets, sizeof(packets), sum->packets);
	human_bytes(bytes, sizeof(bytes), sum->bytes);
	human_pace(pace, sizeof(pace), sum->packets, ns);
	human_rate(rate, sizeof(rate), sum->bytes, ns);
	snprintf(buf, size, "%s %s, %s packets (%s/s), %s (%s)%s", count, flows,
		 packets, pace, bytes, rate, view_mixed_text(sum));
}

void view_rest_text(const struct rows *rows, size_t n, bool has_others,
		    const char *noun, char *buf, size_t size)
{
	const struct tally rest = rows_rest(rows, n);
	char packets[16], bytes[16];

	human_count(packets, sizeof(packets), rest.packets);
	human_bytes(bytes, sizeof(bytes), rest.bytes);
	snprintf(buf, size, "and %s%llu more%s: %s packets, %s%s",
		 has_others ? "over " : "", (unsigned long long)(rows->added - n),
		 noun, packets, bytes, view_mixed_text(&rest));
}
