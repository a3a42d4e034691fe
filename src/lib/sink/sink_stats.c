// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "base/json.h"
#include "base/options.h"
#include "base/outage.h"
#include "base/util.h"
#include "sink.h"

#include <errno.h>
#include <netobs/sink.h>

static const char *const drop_names[NETOBS_SINK_DROPS] = {
	[NETOBS_SINK_SPOOL_FULL] = "spool_full",
	[NETOBS_SINK_TOO_OLD] = "too_old",
	[NETOBS_SINK_DAMAGED] = "damaged",
	[NETOBS_SINK_UNWRITTEN] = "unwritten",
	[NETOBS_SINK_REFUSED] = "refused",
	[NETOBS_SINK_UNSUPPORTED] = "unsupported",
};

_Static_assert((int)NETOBS_SINK_DROPS <= NETOBS_REASONS_MAX, "there is room");
_Static_assert((int)NETOBS_SINK_SPOOL_FULL == (int)SPOOL_FULL &&
		       (int)NETOBS_SINK_TOO_OLD == (int)SPOOL_TOO_OLD &&
		       (int)NETOBS_SINK_DAMAGED == (int)SPOOL_DAMAGED &&
		       (int)NETOBS_SINK_UNWRITTEN == (int)SPOOL_UNWRITTEN &&
		       (int)NETOBS_SINK_REFUSED == (int)SPOOL_REFUSED &&
		       (int)NETOBS_SINK_UNSUPPORTED == (int)SPOOL_UNSUPPORTED &&
		       (int)NETOBS_SINK_DROPS == (int)SPOOL_DROPS,
	       "the reasons are the spool's");

const char *netobs_sink_drop_name(unsigned int reason)
{
	return reason < NETOBS_SINK_DROPS ? drop_names[reason] : NULL;
}

static struct netobs_sink_count count_of(struct position position)
{
	return (struct netobs_sink_count){ position.seq, position.packets,
					   position.bytes };
}

/* The oldest segment was begun before its records, of which some may be delivered. */
static uint64_t pending_ms(const struct netobs_sink *sink)
{
	const struct spool *spool = &sink->spool;
	int64_t since_ms = sink->pending_since_ms;

	if (!spool_pending(spool).seq)
		return 0;
	if (spool->oldest)
		since_ms = max_i64(since_ms, spool->oldest->made_ms);
	return max_i64(sink_age_ms(sink) - since_ms, 1);
}

/* Use the clock of delivered_ns, which does not follow changes of the time. */
static int64_t outage_ns(const struct netobs_sink *sink)
{
	const struct outage *outage = sink->host.outage;
	int64_t began_ms;

	if (!outage || !outage_is_on(outage))
		return 0;
	began_ms = sink_age_ms(sink) - (now_ms() - outage->began_ms);
	return (began_ms + sink->spool.options.since_1970_ms) * NSEC_PER_MSEC;
}

int netobs_sink_stats_get(const struct netobs_sink *sink,
			  struct netobs_sink_stats *ret_stats)
{
	struct netobs_sink_stats stats = { 0 };
	const struct spool *spool;

	if (!sink || !ret_stats)
		return -EINVAL;
	spool = &sink->spool;
	stats.taken = count_of(spool->accepted);
	stats.recovered = count_of(spool->recovered);
	stats.delivered = count_of(spool->delivered);
	stats.pending = count_of(spool_pending(spool));
	for (int i = 0; i < SPOOL_DROPS; i++)
		stats.dropped[i] = count_of(spool->dropped[i]);
	stats.spool_bytes = spool->size;
	stats.durable_records = spool->durable.seq;
	stats.spool_max_bytes = spool->options.max_bytes;
	stats.pending_ms = pending_ms(sink);
	stats.delivered_ns =
		sink->delivered_ms ?
			(sink->delivered_ms + spool->options.since_1970_ms) *
				NSEC_PER_MSEC :
			0;
	stats.outage_ns = outage_ns(sink);
	return sized_fill(ret_stats, &stats, sizeof(stats));
}

static void add_sink_count(struct json *json, const char *key,
			   const struct netobs_sink_count *count)
{
	json_key(json, key);
	json_open(json, '{');
	json_key_u64(json, "records", count->records);
	json_key_u64(json, "packets", count->packets);
	json_key_u64(json, "bytes", count->bytes);
	json_close(json, '}');
}

static void add_counter(void *ctx, const char *name, uint64_t value)
{
	json_key_u64(ctx, name, value);
}

int netobs_sink_counters(const struct netobs_sink *sink,
			 void (*take)(void *user, const char *name,
				      uint64_t value),
			 void *user)
{
	if (!sink || !take)
		return -EINVAL;
	if (sink->module->counters)
		sink->module->counters(sink->state, take, user);
	return 0;
}

int netobs_sink_stats_json(const struct netobs_sink *sink, char *buf, size_t size)
{
	struct netobs_sink_stats stats = { .sz = sizeof(stats) };
	struct json json;

	if (!sink || !buf)
		return -EINVAL;
	netobs_sink_stats_get(sink, &stats);
	json_begin(&json, buf, size);
	json_open(&json, '{');
	json_key(&json, "sink");
	json_string(&json, sink->name ?: "");
	add_sink_count(&json, "taken", &stats.taken);
	add_sink_count(&json, "recovered", &stats.recovered);
	add_sink_count(&json, "delivered", &stats.delivered);
	add_sink_count(&json, "pending", &stats.pending);
	json_key(&json, "dropped");
	json_open(&json, '{');
	for (int i = 0; i < NETOBS_SINK_DROPS; i++)
		add_sink_count(&json, drop_names[i], &stats.dropped[i]);
	json_close(&json, '}');
	if (sink->module->counters) {
		json_key(&json, "counters");
		json_open(&json, '{');
		sink->module->counters(sink->state, add_counter, &json);
		json_close(&json, '}');
	}
	json_close(&json, '}');
	return json_end(&json);
}

/* ---- Log of drops -------------------------------------------------------------------- */

enum { EVERY_MS = 60 * 1000 };

static const char *const reasons[SPOOL_DROPS] = {
	[SPOOL_FULL] = "the spool is full (spool_full)",
	[SPOOL_TOO_OLD] = "they waited too long (too_old)",
	[SPOOL_DAMAGED] = "they are damaged or missing on the disk (damaged)",
	[SPOOL_UNWRITTEN] = "disk or memory refused them (unwritten)",
	[SPOOL_REFUSED] = "the peer refused them (refused)",
	[SPOOL_UNSUPPORTED] =
		"this sink does not take records of their type (unsupported)",
};

static void note_episode(struct drop_episode *episode, const struct log *log,
			 const char *name, const char *reason, uint64_t dropped,
			 bool is_idle, int64_t now_ms)
{
	const unsigned long long more = dropped - episode->logged;
	const unsigned long long all = dropped - episode->before;

	if (!episode->due_ms && !more)
		return;
	if (!episode->due_ms) {
		log_warning(log, "%s: records are dropped: %s; %llu so far",
			    name, reason, all);
	} else if (is_idle || (now_ms >= episode->due_ms && !more)) {
		log_warning(log,
			    "%s: no more records are dropped; %llu were, as %s",
			    name, all, reason);
		*episode = (struct drop_episode){ .before = dropped,
						  .logged = dropped };
		return;
	} else if (now_ms < episode->due_ms) {
		return;
	} else {
		log_warning(log,
			    "%s: %llu more records were dropped in the last minute: %s; %llu so far",
			    name, more, reason, all);
	}
	episode->logged = dropped;
	episode->due_ms = now_ms + EVERY_MS;
}

bool drop_log_note(struct drop_log *drops, const struct log *log,
		   const char *name, const struct spool *spool, int64_t now_ms)
{
	bool is_idle = !spool_pending(spool).seq, does_any_last = false;

	for (int i = 0; i < SPOOL_DROPS; i++) {
		struct drop_episode *episode = &drops->episodes[i];

		note_episode(episode, log, name, reasons[i],
			     spool->dropped[i].seq, is_idle, now_ms);
		does_any_last |= episode->due_ms != 0;
	}
	return does_any_last;
}
