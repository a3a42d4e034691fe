/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "view.h"

#include "base/clock_ms.h"
#include "base/options.h"
#include "base/text.h"
#include "service/text/human.h"

#include <errno.h>
#include <netobs/flow.h>
#include <netobs/names.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MIN_SCREEN_MS = 200 };

/* The values of --sort, besides the keys of --by. */
static const struct {
	const char *name;
	enum netobs_group_sort sort;
	bool flows, groups, hosts, screen; /* has a column there */
} view_sorts[] = {
	{ "bytes", NETOBS_GROUP_BY_BYTES, true, true, true, true },
	{ "packets", NETOBS_GROUP_BY_PACKETS, true, true, true, true },
	{ "flows", NETOBS_GROUP_BY_FLOWS, false, true, true, true },
	{ "sent", NETOBS_GROUP_BY_SENT, false, false, true, true },
	{ "duration", NETOBS_GROUP_BY_DURATION, true, false, false, true },
	{ "time", NETOBS_GROUP_BY_TIME, true, true, true, false },
	{ "rtt", NETOBS_GROUP_BY_RTT, true, true, true, true },
	{ "retransmits", NETOBS_GROUP_BY_RETRANSMITS, true, true, true, true },
	{ "drops", NETOBS_GROUP_BY_DROPS, true, true, true, true },
};

static bool has_column(size_t i, const struct by *by, bool is_lines)
{
	if ((!is_lines && !view_sorts[i].screen) ||
	    !by_has_sort(by, view_sorts[i].sort))
		return false;
	if (!by->keys.n)
		return view_sorts[i].flows;
	return by_has_both_ends(by) ? view_sorts[i].hosts : view_sorts[i].groups;
}

static void explain_sort(const char *text, const struct by *by, bool is_lines,
			 char *why, size_t size)
{
	struct suggestion suggestion = suggestion_for(text, strlen(text));
	const char *best, *before = "; there are ";

	snprintf(why, size, "this table has no such column");
	for (size_t i = 0; i < ARRAY_SIZE(view_sorts); i++)
		if (has_column(i, by, is_lines))
			suggestion_offer(&suggestion, view_sorts[i].name);
	best = suggestion_best(&suggestion);
	if (best) {
		text_append(why, size, "; did you mean '%s'?", best);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(view_sorts); i++) {
		if (!has_column(i, by, is_lines))
			continue;
		text_append(why, size, "%s%s", before, view_sorts[i].name);
		before = ", ";
	}
	if (by->keys.n)
		text_append(why, size, " and the keys of --by");
}

int view_parse_sort(const char *text, const struct by *by, bool is_lines,
		    struct order *ret_order, char *ret_why, size_t size)
{
	for (uint32_t i = 0; i < by->keys.n; i++) {
		if (strcmp(by->keys.names[i], text) != 0)
			continue;
		*ret_order = (struct order){ NETOBS_GROUP_BY_KEY, i };
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

static int view_init_groups(struct view *view)
{
	const struct netobs_groups_opts opts = { .sz = sizeof(opts),
						 .keys = view->options->by.text,
						 .max_groups = VIEW_GROUPS };

	return view->options->by.keys.n ?
		       netobs_groups_new(&opts, &view->groups) :
		       0;
}

int view_init(struct view *view, const struct view_options *options, size_t most)
{
	int err;

	*view = (struct view){ .options = options };
	if (options->top && (!most || options->top < most))
		most = options->top;
	view->most = most;
	rows_init(&view->next, &options->order, most);
	rows_init(&view->rows, &options->order, most);
	view->since_ns = clock_ns(CLOCK_MONOTONIC);
	err = view_init_groups(view);
	if (err == 0 && options->want_names)
		err = netobs_names_new(NULL, &view->names);
	if (err < 0)
		view_free(view);
	return err;
}

static void fill_tuple(const struct netobs_flow *flow,
		       struct flow_tuple *ret_tuple)
{
	memcpy(ret_tuple->src, flow->src, sizeof(ret_tuple->src));
	memcpy(ret_tuple->dst, flow->dst, sizeof(ret_tuple->dst));
	ret_tuple->has_ports = !!(flow->has & NETOBS_HAS_PORTS);
	ret_tuple->src_port = flow->src_port;
	ret_tuple->dst_port = flow->dst_port;
	ret_tuple->proto = flow->proto;
}

static int view_add_flow(struct view *view, const struct netobs_flow *flow,
			 const struct netobs_group_sum *sum)
{
	struct row row = { .sum = *sum };

	fill_tuple(flow, &row.flow);
	human_info(row.info, sizeof(row.info), flow);
	human_where(row.where, sizeof(row.where), flow);
	human_processes(row.process, sizeof(row.process), flow->src_process,
			flow->dst_process);
	human_translation(row.nat, sizeof(row.nat), flow);
	human_drop_cause(row.cause, sizeof(row.cause), flow);
	return rows_add(&view->next, &row);
}

int view_add(struct view *view, const struct netobs_flow *flow)
{
	struct netobs_group_sum sum = { 0 };

	netobs_group_sum_flow(&sum, flow);
	netobs_group_sum_add(&view->next_sum, &sum);
	if (view->groups)
		return netobs_groups_add(view->groups, flow);
	return view_add_flow(view, flow, &sum);
}

int64_t view_age_ns(const struct view *view)
{
	return clock_ns(CLOCK_MONOTONIC) - view->since_ns;
}

bool view_is_due(const struct view_options *options, int64_t age_ns,
		 bool is_screen)
{
	const int64_t least_ms = options->interval_ms * INT64_C(3) / 4;

	return age_ns / NSEC_PER_MSEC >=
	       (is_screen && least_ms < MIN_SCREEN_MS ? MIN_SCREEN_MS : least_ms);
}

static int view_take_groups(struct view *view)
{
	struct netobs_groups_top top = { .sz = sizeof(top),
					 .sort = view->options->order.sort,
					 .key = view->options->order.key,
					 .most = view->most };
	const int r = rows_take_groups(&view->rows, view->groups, &top);

	view->has_others = r > 0;
	netobs_groups_clear(view->groups);
	return r < 0 ? r : 0;
}

static void view_take_flows(struct view *view)
{
	struct rows done = view->next;

	view->next = view->rows;
	view->rows = done;
	rows_clear(&view->next);
	rows_sort(&view->rows);
}

int view_turn(struct view *view)
{
	int err = 0;

	if (view->groups)
		err = view_take_groups(view);
	else
		view_take_flows(view);
	view->sum = view->next_sum;
	view->next_sum = (struct netobs_group_sum){ 0 };
	view->took_ns = view_age_ns(view);
	view->since_ns += view->took_ns;
	return err;
}

void view_free(struct view *view)
{
	netobs_groups_free(view->groups);
	view->groups = NULL;
	rows_free(&view->next);
	rows_free(&view->rows);
	netobs_names_free(view->names);
	view->names = NULL;
}

/* ---- Text ----------------------------------------------------------------------- */

const char *view_mixed_text(const struct netobs_group_sum *sum)
{
	return sum->is_mixed ? ", sampled at different rates" : "";
}

void view_sum_text(const struct netobs_group_sum *sum, const char *flows,
		   int64_t ns, char *buf, size_t size)
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
	const struct netobs_group_sum rest = rows_rest(rows, n);
	char packets[16], bytes[16];

	human_count(packets, sizeof(packets), rest.packets);
	human_bytes(bytes, sizeof(bytes), rest.bytes);
	snprintf(buf, size, "and %s%llu more%s: %s packets, %s%s",
		 has_others ? "over " : "", (unsigned long long)(rows->added - n),
		 noun, packets, bytes, view_mixed_text(&rest));
}

/* ---- Rows ---------------------------------------------------------------------------- */

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
