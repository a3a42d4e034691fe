// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include <netobs/sink.h>

#include "sink.h"
#include "base/options.h"
#include "base/text.h"
#include "base/util.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	TICK_MS = 500, /* between calls of sink_tick() while the spool has records */
	SLICE_MS = 5, /* time of a call for pending records; the next call continues */
	GLANCE = 16, /* records between looks at the clock */
	BATCH = 128, /* unflushed records, at most: they take memory */
};

_Static_assert((int)PACK_MAX <= (int)SEGMENT_RECORD_MAX, "any record fits");

/* ---- Timers -------------------------------------------------------------------- */

static void set_timer(struct netobs_sink *sink)
{
	int64_t at = sink->wake_ms;
	const int64_t at_once = 1;

	if (sink->tick_ms && (!at || sink->tick_ms < at))
		at = sink->tick_ms;
	loop_set_timer(sink->timer,
		       sink->is_unfinished ? at_once : at * NSEC_PER_MSEC);
}

static void start_ticking(struct netobs_sink *sink)
{
	if (sink->tick_ms)
		return;
	sink->tick_ms = now_ms() + TICK_MS;
	set_timer(sink);
}

static void set_age_clock(struct netobs_sink *sink)
{
	sink->asleep_ms = clock_ms(CLOCK_BOOTTIME) - now_ms();
}

static const char *name_of(const struct netobs_sink *sink)
{
	return sink->name ?: "sink";
}

static void sink_tick(struct netobs_sink *sink)
{
	bool are_dropped;

	set_age_clock(sink);
	spool_expire(&sink->spool, sink_age_ms(sink));
	spool_start_sync(&sink->spool);
	are_dropped = drop_log_note(&sink->drops, &sink->log, name_of(sink),
				    &sink->spool, now_ms());
	sink->tick_ms = 0;
	if (are_dropped || spool_pending(&sink->spool).seq ||
	    !spool_is_settled(&sink->spool))
		start_ticking(sink);
}

static int on_sink_timer(void *arg, int fd)
{
	struct netobs_sink *sink = arg;
	int64_t now = now_ms();

	(void)fd;
	if (sink->wake_ms && now >= sink->wake_ms)
		sink->wake_ms = 0;
	if (sink->tick_ms && now >= sink->tick_ms)
		sink_tick(sink);
	set_timer(sink);
	return 0;
}

static int on_spool(void *arg, int fd)
{
	struct netobs_sink *sink = arg;

	(void)fd;
	spool_finish_sync(&sink->spool);
	return 0;
}

/* ---- What modules are given ------------------------------------------------------ */

/* An earlier process may have written other types to the spool. */
static int unpack_item(struct netobs_sink *sink, const struct spool_item *item,
		       const struct netobs_record **ret_record)
{
	int err = unpack_record(item->record, item->len, &sink->unpacked,
				ret_record);

	if (err || sink->host.types & 1U << (*ret_record)->type)
		return err;
	return -ENOTSUP;
}

static bool host_next(struct sink_host *host, struct sink_item *ret_item)
{
	struct netobs_sink *sink = sink_of_host(host);
	struct spool_item item;

	while (!sink->is_unfinished && !sink->is_settling) {
		int err = 0;

		/* The time of a call is bounded, however many records are left. */
		if (++sink->given % GLANCE == 0)
			sink->is_unfinished = now_ms() >= sink->slice_end_ms;
		if (sink->is_unfinished || !spool_read(&sink->spool, &item))
			break;
		if (item.is_in_place)
			ret_item->record = packed_record(item.record);
		else
			err = unpack_item(sink, &item, &ret_item->record);
		ret_item->own = item.own;
		ret_item->end = item.end;
		if (!err)
			return true;
		if (!spool_skip(&sink->spool, &item,
				err == -ENOTSUP ? SPOOL_UNSUPPORTED :
						  SPOOL_DAMAGED))
			return false;
	}
	sink->is_unfinished |= sink->spool.is_searching;
	return false;
}

static bool host_has_more(const struct sink_host *host)
{
	const struct netobs_sink *sink = sink_of_host(host);

	return !sink->is_settling && spool_has_more(&sink->spool);
}

static bool host_is_out_of_time(const struct sink_host *host)
{
	return sink_of_host(host)->is_unfinished;
}

static void host_ack(struct sink_host *host, struct position end)
{
	struct netobs_sink *sink = sink_of_host(host);

	spool_ack(&sink->spool, end);
	sink->delivered_ms = sink_age_ms(sink);
}

static void host_refuse(struct sink_host *host, struct position end)
{
	spool_discard(&sink_of_host(host)->spool, end, SPOOL_REFUSED);
}

static void host_rewind(struct sink_host *host)
{
	spool_rewind(&sink_of_host(host)->spool);
}

static int host_watch(struct sink_host *host, int fd, uint32_t events)
{
	return loop_watch(&sink_of_host(host)->loop, fd, events, NULL, NULL);
}

static void host_wake_in(struct sink_host *host, int ms)
{
	struct netobs_sink *sink = sink_of_host(host);

	sink->wake_ms = ms < 0 ? 0 : now_ms() + ms;
	set_timer(sink);
}

static bool host_get_stats(struct sink_host *host, struct netobs_stats *ret_stats)
{
	const struct netobs_sink *sink = sink_of_host(host);

	*ret_stats = (struct netobs_stats){ .sz = sizeof(*ret_stats) };
	if (sink->get_stats)
		return !sink->get_stats(ret_stats, sink->log.user);
	return sink->link.source &&
	       !netobs_stats_get(sink->link.source->context, ret_stats);
}

static const struct sink_host_ops host_ops = {
	.next = host_next,
	.has_more = host_has_more,
	.is_out_of_time = host_is_out_of_time,
	.ack = host_ack,
	.refuse = host_refuse,
	.rewind = host_rewind,
	.watch = host_watch,
	.wake_in = host_wake_in,
	.get_stats = host_get_stats,
};

/* ---- Opening ------------------------------------------------------------------- */

static void refuse_type(struct spec *spec, const char *name)
{
	char all[128] = "";

	for (unsigned int type = 0; type < NETOBS_RECORD_TYPES; type++)
		text_append(all, sizeof(all), "%s%s", type ? " or " : "",
			    netobs_record_type_name(type));
	spec_refuse(spec, "option records: '%s' is not %s", name, all);
}

static uint32_t parse_type(const struct netobs_sink *sink, struct spec *spec,
			   const char *name)
{
	const uint32_t types = strncmp(spec->kind, "otlp", strlen("otlp")) ?
				       sink->module->types :
				       sink->module->otlp_types;
	unsigned int type = 0;

	while (type < NETOBS_RECORD_TYPES &&
	       strcmp(netobs_record_type_name(type), name))
		type++;
	if (type == NETOBS_RECORD_TYPES)
		refuse_type(spec, name);
	else if (!(types & 1U << type))
		spec_refuse(spec,
			    "option records: a sink of kind %s cannot represent %s",
			    spec->kind, name);
	return 1U << type;
}

/* Options that all kinds have. */
static void parse_types(struct netobs_sink *sink, struct spec *spec)
{
	cleanup_free char *names = strdup(spec_string(spec, "records", "flow"));
	char *rest = names, *name;

	while (rest && (name = strsep(&rest, ",")))
		sink->host.types |= parse_type(sink, spec, name);
}

static void parse_spool(struct spec *spec, struct spool_options *options)
{
	const char *where = spec_string(spec, "spool", "memory");

	if (!strncmp(where, "disk:", 5) && where[5])
		options->dir = where + 5;
	else if (strcmp(where, "memory"))
		spec_refuse(spec,
			    "option spool: '%s' is not memory or disk:DIRECTORY",
			    where);
	options->max_bytes = spec_size(spec, "spool.max_bytes", 1 << 20,
				       1ULL << 50,
				       options->dir ? 1ULL << 30 : 64 << 20);
	options->max_age_ms =
		(int64_t)spec_duration_ms(spec, "spool.max_age", 1000,
					  10ULL * 365 * 24 * 60 * 60 * 1000, 0);
}

static int open_sink_loop(struct netobs_sink *sink)
{
	return loop_open(&sink->loop) ?:
		       loop_add_timer(&sink->loop, CLOCK_MONOTONIC,
				      on_sink_timer, sink, &sink->timer);
}

static int open_spool(struct netobs_sink *sink, struct spool_options *options)
{
	int err;

	set_age_clock(sink);
	options->since_1970_ms = clock_ms(CLOCK_REALTIME) - sink_age_ms(sink);
	err = spool_open(&sink->spool, options);
	if (err || spool_fd(&sink->spool) < 0)
		return err;
	return loop_watch(&sink->loop, spool_fd(&sink->spool), EPOLLIN,
			  on_spool, sink);
}

/* The module reads its options first: a typing error makes no directory. */
static int open_module(struct netobs_sink *sink, struct spec *spec)
{
	struct spool_options options = { .log = &sink->log };
	int err = open_sink_loop(sink);

	if (err)
		return err;
	err = sink_find_module(spec, &sink->module);
	if (err)
		return err;
	parse_types(sink, spec);
	parse_spool(spec, &options);
	err = sink_module_open(sink->module, spec, &sink->host, &sink->state);
	if (err)
		return err;
	return spec->is_wrong ? -EINVAL : open_spool(sink, &options);
}

static int check_sink_options(const struct netobs_sink_opts *opts,
			      const struct log *log)
{
	int err = sized_check(opts, sizeof(*opts), log);

	if (err || opts->sz < offsetof(struct netobs_sink_opts, error) ||
	    opts->sampling_mode <= NETOBS_SAMPLE_FLOWS)
		return err;
	log_error(log, "sampling_mode: %u is none of enum netobs_sampling",
		  opts->sampling_mode);
	return -EINVAL;
}

static int open_spec(struct netobs_sink *sink, const char *text, bool is_trial)
{
	struct spec spec;
	int err = spec_parse(&spec, text, &sink->log);

	if (err)
		return err;
	spec.is_trial = is_trial;
	sink->name = strndup(text, strcspn(text, "?"));
	err = open_module(sink, &spec);
	spec_free(&spec);
	return err;
}

static int open_or_try(const char *text, const struct netobs_sink_opts *opts,
		       bool is_trial, struct netobs_sink **ret_sink)
{
	struct sink_source *source;
	struct netobs_sink_opts known = { 0 };
	struct netobs_sink *sink;
	int err;

	if (opts)
		memcpy(&known, opts, min_u64(opts->sz, sizeof(known)));
	sink = calloc(1, sizeof(*sink));
	if (!sink)
		return -ENOMEM;
	source = sink_source_of(known.context);
	if (source && !known.sampling) {
		known.sampling = source->sampling;
		known.sampling_mode = source->sampling_mode;
	}
	sink->log = (struct log){ known.on_log, known.user, &sink->error };
	sink->host = (struct sink_host){
		.ops = &host_ops,
		.log = &sink->log,
		.sampling = known.sampling ?: 1,
		.sampling_mode = known.sampling_mode,
	};
	sink->get_stats = known.get_stats;
	sink->link.sink = sink;
	sink->loop.fd = -1;

	err = opts ? check_sink_options(opts, &sink->log) : 0;
	if (!err && known.context && !source) {
		log_error(&sink->log, "context: it observes no flows");
		err = -EINVAL;
	}
	err = log_keep_error(&sink->log, text,
			     err ?: open_spec(sink, text, is_trial));
	if (err) {
		log_copy_error(&sink->log, known.error);
		netobs_sink_close(sink);
		return err;
	}
	if (source)
		sink_source_add(source, &sink->link);
	if (spool_pending(&sink->spool).seq)
		host_wake_in(&sink->host, 0);
	*ret_sink = sink;
	return 0;
}

int netobs_sink_open(const char *text, const struct netobs_sink_opts *opts,
		     struct netobs_sink **ret_sink)
{
	return text && ret_sink ? open_or_try(text, opts, false, ret_sink) :
				  -EINVAL;
}

int netobs_sink_check(const char *text, const struct netobs_sink_opts *opts)
{
	struct netobs_sink *none;
	int err = text ? open_or_try(text, opts, true, &none) : -EINVAL;

	return err == -ECANCELED ? 0 : err;
}

void netobs_sink_close(struct netobs_sink *sink)
{
	if (!sink)
		return;
	sink_source_remove(&sink->link);
	if (sink->state)
		sink_module_close(sink->module, sink->state);
	spool_close(&sink->spool);
	loop_close(&sink->loop);
	free(sink->name);
	free(sink);
}

/* ---- Use ----------------------------------------------------------------------- */

/* Limits a call to SLICE_MS; the descriptor stays readable while records wait. */
static int sink_work(struct netobs_sink *sink, bool flush)
{
	bool was_unfinished = sink->is_unfinished;
	int err;

	flush |= sink->is_flushing;
	sink->unflushed = sink->given = 0;
	sink->is_unfinished = false;
	sink->slice_end_ms = now_ms() + SLICE_MS;
	err = sink->module->work(sink->state, flush);
	sink->is_flushing = flush && sink->is_unfinished;
	if (sink->is_unfinished || was_unfinished)
		set_timer(sink);
	return err;
}

/* False: it was dropped, and counted. */
static bool pass_record(struct netobs_sink *sink,
			const struct netobs_record *record)
{
	struct position own = { .seq = 1 };
	void *place;

	if (record->type == NETOBS_RECORD_FLOW) {
		own.packets = as_flow(record)->packets;
		own.bytes = as_flow(record)->bytes;
	}
	if (!spool_pending(&sink->spool).seq)
		sink->pending_since_ms = sink_age_ms(sink);
	place = spool_reserve(&sink->spool, pack_room(record), own,
			      sink_age_ms(sink));
	if (!sink->tick_ms)
		start_ticking(sink);
	if (!place)
		return false;
	spool_commit(&sink->spool, pack_record(record, place));
	return true;
}

/* A record may be sent by another run, so it has to have its sampling itself. */
static const struct netobs_record *set_sampling(const struct netobs_sink *sink,
						const struct netobs_record *record,
						union any_record *copy)
{
	if (record->type != NETOBS_RECORD_FLOW ||
	    as_flow(record)->has & NETOBS_HAS_SAMPLING)
		return record;
	if (record != &copy->record)
		copy->flow = *as_flow(record);
	copy->flow.sz = sizeof(copy->flow);
	copy->flow.has |= NETOBS_HAS_SAMPLING;
	copy->flow.sampling = sink->host.sampling;
	copy->flow.sampling_mode = (uint8_t)sink->host.sampling_mode;
	return &copy->record;
}

int netobs_sink_write(struct netobs_sink *sink, const struct netobs_record *record)
{
	union any_record copy;
	bool is_kept;

	if (!sink || !record)
		return -EINVAL;
	record = record_view(record, &copy);
	if (!record)
		return -EINVAL;
	if (!(sink->host.types & 1U << record->type))
		return 0;
	if (sink->host.sampling > 1)
		record = set_sampling(sink, record, &copy);
	is_kept = pass_record(sink, record);
	if (++sink->unflushed >= BATCH && !sink->is_unfinished)
		sink_work(sink, false); /* a permanent failure is reported again */
	return is_kept ? 0 : -ENOBUFS;
}

/* Totals that have changed, as a record of their own. */
static void add_sink_stats(struct netobs_sink *sink)
{
	struct netobs_stats_record record = {
		.record = { .sz = sizeof(record), .type = NETOBS_RECORD_STATS },
	};

	if (!(sink->host.types & SINK_TYPE(STATS)) ||
	    !host_get_stats(&sink->host, &record.stats) ||
	    !memcmp(&record.stats, &sink->last_stats, sizeof(record.stats)))
		return;
	sink->last_stats = record.stats;
	record.record.time_ns = clock_ms(CLOCK_REALTIME) * NSEC_PER_MSEC;
	pass_record(sink, &record.record);
}

int netobs_sink_flush(struct netobs_sink *sink)
{
	if (!sink)
		return -EINVAL;
	start_ticking(sink);
	add_sink_stats(sink);
	/* A failed write is tried again, and reported, by the next sync. */
	spool_write_out(&sink->spool);
	return sink_work(sink, true);
}

int netobs_sink_fd(const struct netobs_sink *sink)
{
	return sink ? sink->loop.fd : -EINVAL;
}

int netobs_sink_dispatch(struct netobs_sink *sink)
{
	if (!sink)
		return -EINVAL;
	loop_dispatch(&sink->loop);
	return sink_work(sink, false);
}

int netobs_sink_reopen(struct netobs_sink *sink)
{
	int r;

	if (!sink)
		return -EINVAL;
	r = sink->module->reopen ? sink->module->reopen(sink->state) : 0;
	return r < 0 ? r : sink_work(sink, false);
}

/* The first call sends what fits into its time; what that leaves stays in the spool. */
int netobs_sink_settle(struct netobs_sink *sink)
{
	int err;

	if (!sink)
		return -EINVAL;
	err = netobs_sink_flush(sink);
	if (!err && !sink->is_settling) {
		sink->is_settling = true;
		err = sink_work(sink, true);
	}
	return err ?: spool_has_unacked(&sink->spool) ? -EAGAIN : 0;
}

int netobs_sink_wait(struct netobs_sink *sink, int timeout_ms)
{
	int64_t end = now_ms() + timeout_ms;
	int err;

	if (!sink)
		return -EINVAL;
	sink->is_settling = false;
	err = netobs_sink_flush(sink);
	while (!err && spool_pending(&sink->spool).seq) {
		struct pollfd fd = { .fd = sink->loop.fd, .events = POLLIN };
		int64_t left = end - now_ms();

		if (timeout_ms >= 0 && left <= 0)
			return -ETIMEDOUT;
		poll(&fd, 1, timeout_ms < 0 ? -1 : (int)left);
		err = netobs_sink_dispatch(sink);
	}
	return err;
}
