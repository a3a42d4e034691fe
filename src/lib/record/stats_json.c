/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include <netobs/stats.h>

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "any.h"

static const char *const unparsed_names[NETOBS_UNPARSED_REASONS] = {
	[NETOBS_UNPARSED_SHORT] = "short",
	[NETOBS_UNPARSED_BAD_HEADER] = "bad_header",
	[NETOBS_UNPARSED_TOO_DEEP] = "too_deep",
	[NETOBS_UNPARSED_ARP] = "arp",
	[NETOBS_UNPARSED_NOT_IP] = "not_ip",
};

static const char *const lost_names[NETOBS_LOST_REASONS] = {
	[NETOBS_LOST_TABLE_FULL] = "table_full",
	[NETOBS_LOST_KERNEL_MEMORY] = "kernel_memory",
	[NETOBS_LOST_MEMORY] = "memory",
	[NETOBS_LOST_RESTART] = "restart",
};

_Static_assert(NETOBS_UNPARSED_REASONS <= NETOBS_REASONS_MAX &&
		       NETOBS_LOST_REASONS <= NETOBS_REASONS_MAX,
	       "there is room");

const char *netobs_unparsed_name(unsigned int reason)
{
	return reason < NETOBS_UNPARSED_REASONS ? unparsed_names[reason] : NULL;
}

const char *netobs_lost_name(unsigned int reason)
{
	return reason < NETOBS_LOST_REASONS ? lost_names[reason] : NULL;
}

/* A part of the count before, which is no term of the sum. */
static void add_part(struct json *json, const char *packets, const char *bytes,
		     const struct netobs_count *part)
{
	json_key_u64(json, packets, part->packets);
	json_key_u64(json, bytes, part->bytes);
}

/* Opens an object, for parts to follow. */
static void open_count(struct json *json, const char *name,
		       const struct netobs_count *count)
{
	json_key(json, name);
	json_open(json, '{');
	add_part(json, "packets", "bytes", count);
}

static void add_count(struct json *json, const char *key,
		      const struct netobs_count *count)
{
	open_count(json, key, count);
	json_close(json, '}');
}

static void add_counts(struct json *json, const char *key,
		       const char *const *names,
		       const struct netobs_count *counts, unsigned int n)
{
	json_key(json, key);
	json_open(json, '{');
	for (unsigned int i = 0; i < n; i++)
		add_count(json, names[i], &counts[i]);
	json_close(json, '}');
}

static void add_seen(struct json *json, const struct netobs_stats *stats)
{
	open_count(json, "seen", &stats->seen);
	add_part(json, "observed_packets", "observed_bytes", &stats->observed);
	if (stats->inferred.packets)
		add_part(json, "inferred_packets", "inferred_bytes",
			 &stats->inferred);
	json_close(json, '}');
}

static void add_filtered(struct json *json, const struct netobs_stats *stats)
{
	open_count(json, "filtered", &stats->filtered);
	if (stats->small.packets)
		add_part(json, "small_packets", "small_bytes", &stats->small);
	json_close(json, '}');
}

static void add_stats(struct json *json, const struct netobs_stats *stats)
{
	add_seen(json, stats);
	add_count(json, "exported", &stats->exported);
	if (stats->pending.packets)
		add_count(json, "pending", &stats->pending);
	add_filtered(json, stats);
	add_count(json, "sampled_out", &stats->sampled_out);
	add_counts(json, "unparsed", unparsed_names, stats->unparsed,
		   NETOBS_UNPARSED_REASONS);
	add_counts(json, "lost", lost_names, stats->lost, NETOBS_LOST_REASONS);
}

int netobs_stats_json(const struct netobs_stats *stats, char *buf, size_t size)
{
	struct netobs_stats known = { 0 };
	struct json json;

	if (!stats || !buf || stats->sz < sizeof(stats->sz))
		return -EINVAL;
	memcpy(&known, stats, min_u64(stats->sz, sizeof(known)));

	json_begin(&json, buf, size);
	json_open(&json, '{');
	add_stats(&json, &known);
	json_close(&json, '}');
	return json_end(&json);
}

int stats_record_json(const struct netobs_record *record, char *buf, size_t size)
{
	const struct netobs_stats_record *stats = (const void *)record;
	struct json json;

	json_begin(&json, buf, size);
	json_open(&json, '{');
	json_key(&json, "type");
	json_string(&json, netobs_record_type_name(NETOBS_RECORD_STATS));
	json_key(&json, "TimeMs");
	json_i64(&json, record->time_ns / NSEC_PER_MSEC);
	add_stats(&json, &stats->stats);
	json_close(&json, '}');
	return json_end(&json);
}
