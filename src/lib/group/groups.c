// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The public functions of groups. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/options.h"
#include "base/top_n.h"
#include "base/util.h"
#include "catalogue/records.h"
#include "keys.h"
#include "record/any.h"

enum { DEFAULT_GROUPS = 1 << 16 };

/* Known servers, shared by groups of the same flows. */
struct shared_servers {
	struct servers servers;
	unsigned int users;
};

/* The order of rows. */
struct order {
	enum netobs_group_sort sort;
	size_t offset, size; /* NETOBS_GROUP_BY_KEY: part of the value */
	size_t value_size;   /* the whole value decides between equal rows */
};

struct netobs_groups {
	struct group_keys keys;
	struct group_table table;
	struct netobs_group_sum total; /* of flows, each once */
	struct shared_servers *servers;

	struct order order; /* of the last netobs_groups_top(), */
	struct top_n rows;  /* its struct groups, */
	struct netobs_group_sum others;
};

/* ---- Life ---------------------------------------------------------------------------- */

int netobs_group_keys_parse(const char *text, struct netobs_group_keys *ret_keys,
			    char *error, size_t size)
{
	struct netobs_group_keys found = { .sz = sizeof(found) };
	char why[NETOBS_ERROR_MAX];
	struct group_keys keys;

	if (size)
		*error = '\0';
	if (!text)
		return -EINVAL;
	if (group_keys_parse(text, &keys, why, sizeof(why)) < 0) {
		snprintf(error, size, "%s", why);
		return -EINVAL;
	}
	found.n = (uint32_t)keys.n;
	found.flags = keys.flags;
	for (size_t i = 0; i < keys.n; i++) {
		found.names[i] = keys.keys[i]->name;
		found.headings[i] = keys.keys[i]->heading;
	}
	return ret_keys ? sized_fill(ret_keys, &found, sizeof(found)) : 0;
}

static int fill_groups(struct netobs_groups *groups,
		       const struct netobs_groups_opts *opts)
{
	int err;

	groups->servers = opts->beside ? opts->beside->servers :
					 calloc(1, sizeof(*groups->servers));
	if (!groups->servers)
		return -ENOMEM;
	groups->servers->users++;
	err = group_keys_set_networks(&groups->keys, NULL);
	if (err < 0)
		return err;
	return group_table_init(&groups->table, groups->keys.size,
				groups->keys.value_size,
				opts->max_groups ?: DEFAULT_GROUPS);
}

static int new_groups(const struct netobs_groups_opts *opts,
		      const struct log *log, struct netobs_groups **ret_groups)
{
	char why[NETOBS_ERROR_MAX] = "groups need a key";
	struct group_keys keys = { 0 };
	struct netobs_groups *groups;
	int err;

	if (!opts->keys ||
	    group_keys_parse(opts->keys, &keys, why, sizeof(why)) < 0 || !keys.n) {
		log_error(log, "keys: %s", why);
		return -EINVAL;
	}
	if (opts->max_groups > INT_MAX) {
		log_error(log, "max_groups: more than %d", INT_MAX);
		return -EINVAL;
	}
	groups = calloc(1, sizeof(*groups));
	if (!groups)
		return -ENOMEM;
	groups->keys = keys;
	err = fill_groups(groups, opts);
	if (err < 0)
		netobs_groups_free(groups);
	else
		*ret_groups = groups;
	return err;
}

int netobs_groups_new(const struct netobs_groups_opts *opts,
		      struct netobs_groups **ret_groups)
{
	struct netobs_groups_opts known = { 0 };
	struct log_error error = { 0 };
	const struct log log = { .error = &error };
	int err;

	if (!opts || !ret_groups)
		return -EINVAL;
	err = sized_check(opts, sizeof(known), &log);
	memcpy(&known, opts, min_u64(opts->sz, sizeof(known)));
	if (!err)
		err = new_groups(&known, &log, ret_groups);
	err = log_keep_error(&log, "groups", err);
	if (err < 0)
		log_copy_error(&log, known.error);
	return err;
}

void netobs_groups_clear(struct netobs_groups *groups)
{
	if (!groups)
		return;
	group_table_clear(&groups->table);
	groups->total = (struct netobs_group_sum){ 0 };
}

void netobs_groups_free(struct netobs_groups *groups)
{
	if (!groups)
		return;
	if (groups->servers && --groups->servers->users == 0)
		free(groups->servers);
	group_table_free(&groups->table);
	group_keys_done(&groups->keys);
	top_n_free(&groups->rows);
	free(groups);
}

/* ---- Flows --------------------------------------------------------------------------- */

static struct group *add_sum(struct netobs_groups *groups, const uint8_t *value,
			     const struct netobs_group_sum *sum)
{
	struct group *group = group_table_add(&groups->table, value, sum);

	group_keys_take_names(&groups->keys, group->value, value);
	return group;
}

static void add_to_end(struct netobs_groups *groups,
		       const struct netobs_flow *flow, enum flow_end server,
		       enum flow_end end, const struct netobs_group_sum *sum)
{
	_Alignas(uint64_t) uint8_t value[GROUP_VALUE_MAX];

	if (!group_keys_count(&groups->keys, flow, end))
		return;
	group_keys_fill(&groups->keys, flow, server, end, value);
	add_sum(groups, value, sum);
}

int netobs_groups_add(struct netobs_groups *groups, const struct netobs_flow *flow)
{
	struct netobs_group_sum sum;
	union any_record copy;
	enum flow_end server;

	flow = groups && flow ? flow_view(flow, &copy) : NULL;
	if (!flow)
		return -EINVAL;
	server = server_find(&groups->servers->servers, flow);
	sum = sum_of_flow(flow);
	netobs_group_sum_add(&groups->total, &sum);
	add_to_end(groups, flow, server, FLOW_DESTINATION, &sum);
	if (groups->keys.flags & NETOBS_GROUP_BOTH_ENDS) {
		sum.sent_packets = sum.packets;
		sum.sent_bytes = sum.bytes;
	}
	add_to_end(groups, flow, server, FLOW_SOURCE, &sum);
	return 0;
}

int netobs_groups_merge(struct netobs_groups *groups,
			const struct netobs_groups *from)
{
	if (!groups || !from || groups == from ||
	    memcmp(groups->keys.keys, from->keys.keys,
		   sizeof(groups->keys.keys)) != 0)
		return -EINVAL;
	group_table_add_others(&groups->table, &from->table);
	for (uint32_t i = 0; i < from->table.groups.n; i++) {
		const struct group *more = group_table_at(&from->table, i);
		struct group *group =
			add_sum(groups, more->value, &more->public.sum);

		/* The others of @from have no more of this group than it says. */
		group->public.missing_bytes -=
			from->table.evicted_bytes - more->public.missing_bytes;
	}
	netobs_group_sum_add(&groups->total, &from->total);
	return 0;
}

/* ---- Rows ---------------------------------------------------------------------------- */

static int64_t sort_number(enum netobs_group_sort sort,
			   const struct netobs_group_sum *sum)
{
	switch (sort) {
	case NETOBS_GROUP_BY_PACKETS:
		return (int64_t)sum->packets;
	case NETOBS_GROUP_BY_FLOWS:
		return (int64_t)sum->flows;
	case NETOBS_GROUP_BY_SENT:
		return (int64_t)sum->sent_bytes;
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
	case NETOBS_GROUP_BY_KEY:
		return 0;
	default:
		return (int64_t)sum->bytes;
	}
}

/* Equal rows are ordered by their values, so that lines keep their place. */
static int compare_groups(const void *a, const void *b, void *arg)
{
	const struct group *left = a, *right = b;
	const struct order *order = arg;
	const int64_t more = sort_number(order->sort, &left->public.sum);
	const int64_t less = sort_number(order->sort, &right->public.sum);
	int differ;

	if (more != less)
		return more < less ? 1 : -1;
	differ = memcmp(left->value + order->offset,
			right->value + order->offset, order->size);
	return differ ?: memcmp(left->value, right->value, order->value_size);
}

static int begin_rows(struct netobs_groups *groups,
		      const struct netobs_groups_top *top)
{
	const struct group_keys *keys = &groups->keys;
	const bool by_key = top->sort == NETOBS_GROUP_BY_KEY;

	if (top->sort > NETOBS_GROUP_BY_DROPS || (by_key && top->key >= keys->n))
		return -EINVAL;
	groups->order = (struct order){
		.sort = top->sort,
		.offset = by_key ? group_keys_offset(keys, top->key) : 0,
		.size = by_key ? keys->keys[top->key]->size : 0,
		.value_size = keys->size,
	};
	top_n_free(&groups->rows);
	groups->rows = (struct top_n){
		.compare = compare_groups,
		.arg = &groups->order,
		.item_size = groups->table.groups.item_size,
		.most = top->most,
	};
	groups->others = (struct netobs_group_sum){ 0 };
	return 0;
}

static int take_rows(struct netobs_groups *groups, struct netobs_groups_top *top)
{
	const struct group_table *table = &groups->table;

	for (uint32_t i = 0; i < table->groups.n; i++) {
		const struct group *group = group_table_at(table, i);

		if (top->want && !top->want(&group->public, top->user))
			continue;
		if (top_n_add(&groups->rows, group) < 0)
			return -ENOMEM;
		netobs_group_sum_add(&groups->others, &group->public.sum);
		top->groups++;
	}
	if (!top->want && table->others.flows) {
		netobs_group_sum_add(&groups->others, &table->others);
		top->has_more = 1;
	}
	top_n_sort(&groups->rows);
	for (size_t i = 0; i < groups->rows.n; i++)
		sum_subtract(&groups->others, &netobs_groups_row(groups, i)->sum);
	return 0;
}

int netobs_groups_top(struct netobs_groups *groups, struct netobs_groups_top *top)
{
	struct netobs_groups_top known = { 0 };
	int err;

	if (!groups || !top || top->sz < sizeof(top->sz))
		return -EINVAL;
	memcpy(&known, top, min_u64(top->sz, sizeof(known)));
	known.groups = 0;
	known.has_more = 0;
	err = begin_rows(groups, &known);
	if (!err)
		err = take_rows(groups, &known);
	if (err < 0)
		return err;
	known.total = groups->total;
	known.others = groups->others;
	err = sized_fill(top, &known, sizeof(known));
	return err < 0 ? err : (int)groups->rows.n;
}

const struct netobs_group *netobs_groups_row(const struct netobs_groups *groups,
					     size_t i)
{
	if (!groups || i >= groups->rows.n)
		return NULL;
	return &((const struct group *)top_n_at(&groups->rows, i))->public;
}

/* ---- Text ---------------------------------------------------------------------------- */

static const uint8_t *value_of(const struct netobs_group *group)
{
	return ((const struct group *)group)->value;
}

int netobs_group_text(const struct netobs_groups *groups,
		      const struct netobs_group *group, uint32_t key,
		      struct netobs_names *names, char *buf, size_t size)
{
	if (!groups || !group || key >= groups->keys.n || !buf || !size)
		return -EINVAL;
	group_keys_text(&groups->keys, key, value_of(group),
			&(struct group_text){ names, buf, size });
	return (int)strlen(buf);
}

static void json_sum(struct json *json, const struct netobs_group_sum *sum,
		     bool is_host)
{
	json_key_i64(json, "TimeFlowStartMs", record_ms(sum->start_ns));
	json_key_i64(json, "TimeFlowEndMs", record_ms(sum->end_ns));
	json_key_u64(json, "Flows", sum->flows);
	json_key_u64(json, "Packets", sum->packets);
	json_key_u64(json, "Bytes", sum->bytes);
	if (sum->rtt_samples) {
		json_key_u64(json, "TimeFlowRttNs", sum_rtt_ns(sum));
		json_key_u64(json, "RttSamples", sum->rtt_samples);
	}
	if (sum->retransmits)
		json_key_u64(json, "Retransmits", sum->retransmits);
	if (sum->drop_packets) {
		json_key_u64(json, "PktDropPackets", sum->drop_packets);
		json_key_u64(json, "PktDropBytes", sum->drop_bytes);
	}
	if (!is_host)
		return;
	json_key_u64(json, "SentPackets", sum->sent_packets);
	json_key_u64(json, "SentBytes", sum->sent_bytes);
}

static void json_sampling(struct json *json, const struct netobs_group_sum *sum)
{
	if (sum->is_mixed) {
		json_key_u64(json, "SamplingMixed", 1);
	} else if (sum->sampling) {
		json_key_u64(json, "Sampling", sum->sampling);
		json_key_u64(json, "SamplingMode", sum->sampling_mode);
	}
}

int netobs_group_json(const struct netobs_groups *groups,
		      const struct netobs_group *group, int64_t time_ns,
		      char *buf, size_t size)
{
	const struct netobs_group_sum *sum;
	struct json json;

	if (!groups || !buf || !size)
		return -EINVAL;
	sum = group ? &group->sum : &groups->others;
	json_begin(&json, buf, size);
	json_open(&json, '{');
	json_key_string(&json, "type", group ? "group" : "others");
	json_key_i64(&json, "TimeMs", record_ms(time_ns));
	if (group)
		group_keys_json(&groups->keys, value_of(group), &json);
	json_sum(&json, sum, groups->keys.flags & NETOBS_GROUP_BOTH_ENDS);
	if (group && group->missing_bytes)
		json_key_u64(&json, "MissingBytesMax", group->missing_bytes);
	json_sampling(&json, sum);
	json_close(&json, '}');
	return json_end(&json);
}
