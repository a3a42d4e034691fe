/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Capture files through the BPF programs, on the file's own time. */
#include "context.h"

#include "base/util.h"
#include "bpf/parse/headers.h"
#include "capture/capture_file.h"

#include <errno.h>
#include <string.h>

/* A file, and the packet of it that comes next. */
struct source {
	struct capture_file file;
	struct frame frame;
	bool has_frame;
	struct crossings *crossings; /* NULL: the file names no interface */
	uint64_t n_again; /* packets that an earlier interface had, not counted */
};

struct replay {
	struct netobs *ctx;
	struct pipeline *pipeline;
	struct source *sources;
	size_t n_sources;
	struct programs programs;
	struct host nowhere;
	int64_t due_ns; /* file time of the next drain; 0: not known yet */
	int error;	/* of a file that others may go on after; the first */
	const struct selected *selected; /* interfaces; NULL: packets of all are counted */
	uint64_t n_cut; /* packets of which the capture has a part */
	uint64_t n_unnamed; /* not counted, as the file does not say where they passed */
};

/*
 * BPF_PROG_TEST_RUN refuses frames without all of an IP header. The programs
 * would find them too short, so that is what they are counted as.
 */
static bool is_too_short(const struct frame *frame)
{
	uint32_t len = sizeof(struct ether_wire);
	uint16_t type;

	if (frame->len <= len)
		return true;
	type = frame->bytes[12] << 8 | frame->bytes[13];
	if (type == ETHERTYPE_IPV4)
		len += sizeof(struct ipv4_wire);
	else if (type == ETHERTYPE_IPV6)
		len += sizeof(struct ipv6_wire);
	return frame->len < len;
}

/* A frame that no program sees. In replay this thread is the only one to write counters. */
static void count_unparsed(const struct replay *replay,
			   const struct frame *frame, enum unparsed_reason reason)
{
	const struct pipeline *pipeline = replay->pipeline;
	struct counters *counters =
		&pipeline->store.cpus[0].counters[pipeline->generation.current];
	uint64_t bytes = frame->wire_len -
			 min_u64(frame->wire_len, sizeof(struct ether_wire));

	const struct filter *filter = replay->ctx->filter;
	struct count *fate = &counters->unparsed[reason];

	counters->seen.packets++;
	counters->seen.bytes += bytes;
	if (filter) {
		uint32_t judgement = filter_judge(filter, frame->bytes,
						  frame->len, frame->wire_len);

		flow_rules_add(&pipeline->store.maps, judgement,
			       &(struct count){ 1, bytes });
		if (!(judgement & JUDGED_ACCEPT))
			fate = &counters->filtered;
	}
	fate->packets++;
	fate->bytes += bytes;
}

static int run_program(const struct replay *replay, const struct frame *frame)
{
	const struct test_packet packet = {
		.bytes = frame->bytes,
		.len = frame->len,
		.wire_len = frame->wire_len,
		.ns = frame->ns,
	};

	return programs_test_run(replay->programs.fds[INGRESS], &packet);
}

static void drain_replay(struct replay *replay, enum merge_mode mode, int64_t ns)
{
	pipeline_begin(replay->pipeline, mode, ns);
	pipeline_finish(replay->pipeline);
}

static bool is_stopping(const struct replay *replay)
{
	return __atomic_load_n(&replay->ctx->life.is_stopping, __ATOMIC_RELAXED);
}

/* Drain whenever an interval of the file's time ends. */
static void drain_until(struct replay *replay, int64_t ns)
{
	int64_t interval_ns = replay->pipeline->options.merge.interval_ns;
	const struct merge *merge = &replay->pipeline->merge;

	if (!replay->due_ns)
		replay->due_ns = ns + interval_ns;
	if (logs_are_filling(&replay->pipeline->logs) &&
	    !pipeline_relieve_now(replay->pipeline))
		drain_replay(replay, MERGE_EARLY, min_u64(ns, replay->due_ns));
	while (ns >= replay->due_ns && !is_stopping(replay)) {
		drain_replay(replay, MERGE_INTERVAL, replay->due_ns);
		replay->due_ns += interval_ns;
		/* Nothing waits for a timeout: on to the interval of @ns. */
		if (!merge->pending.packets && replay->due_ns <= ns)
			replay->due_ns += (ns - replay->due_ns) / interval_ns *
						  interval_ns +
					  interval_ns;
	}
}

static void read_frame(struct replay *replay, struct source *source)
{
	int ret = capture_file_next(&source->file, &source->frame);

	source->has_frame = ret == 1;
	if (ret < 0 && !replay->error)
		replay->error = ret;
}

/* @return the source of the earliest packet; NULL: all files ended */
static struct source *find_earliest(const struct replay *replay)
{
	struct source *first = NULL;

	for (size_t i = 0; i < replay->n_sources; i++) {
		struct source *source = &replay->sources[i];

		if (source->has_frame &&
		    (!first || source->frame.ns < first->frame.ns))
			first = source;
	}
	return first;
}

/* Without memory, it is counted at each interface. */
static bool is_again(const struct replay *replay, struct source *source)
{
	if (!source->frame.interface ||
	    replay->ctx->opts.flags & NETOBS_PER_INTERFACE)
		return false;
	if (!source->crossings)
		source->crossings = crossings_new();
	return source->crossings &&
	       crossings_is_again(source->crossings, &source->frame);
}

static bool is_selected(struct replay *replay, const struct frame *frame)
{
	if (!replay->selected)
		return true;
	replay->n_unnamed += !frame->interface;
	return frame->interface &&
	       selection_has(&replay->ctx->observation.selection,
			     replay->selected, frame->interface, NULL);
}

/* Frames of other links have an Ethernet header made for them: capture_file.h. */
static int check_filter(const struct replay *replay, const struct filter *filter)
{
	if (!filter)
		return 0;
	return filter_check(filter, LINK_NONE, "files without Ethernet headers",
			    &replay->ctx->life.log);
}

static int check_filters(const struct replay *replay)
{
	const struct alert_set *alerts = replay->ctx->alert_set;

	return check_filter(replay, replay->ctx->filter) ?:
		       check_filter(replay, alerts ? alerts->filter : NULL);
}

/* A pcapng file may have an interface without Ethernet headers from any packet on. */
static int expect_bare(struct replay *replay)
{
	bool *hides = &replay->pipeline->merge.options.hide_link;
	int err = *hides ? 0 : check_filters(replay);

	*hides = true;
	return err;
}

static int replay_frame(struct replay *replay, struct source *source)
{
	int err;

	if (!is_selected(replay, &source->frame))
		return 0;
	if (is_again(replay, source)) {
		source->n_again++;
		return 0;
	}
	err = source->frame.is_bare ? expect_bare(replay) : 0;
	if (err)
		return err;
	replay->n_cut += source->frame.is_cut;
	drain_until(replay, source->frame.ns);
	if (source->frame.refused || is_too_short(&source->frame)) {
		count_unparsed(replay, &source->frame,
			       source->frame.refused ? source->frame.refused - 1 :
						       UNPARSED_SHORT);
		return 0;
	}
	err = run_program(replay, &source->frame);
	if (err)
		log_error(&replay->ctx->life.log, "%s: packet %llu: %s",
			  source->file.path,
			  (unsigned long long)source->file.packets,
			  strerror(-err));
	context_read_alerts(replay->ctx);
	return err;
}

/* Replay packets of all files in the order of time. @return 0 at the end of all files */
static int replay_frames(struct replay *replay)
{
	struct source *source;

	for (size_t i = 0; i < replay->n_sources; i++)
		read_frame(replay, &replay->sources[i]);
	while ((source = find_earliest(replay))) {
		int err;

		if (is_stopping(replay))
			return -ECANCELED;
		err = replay_frame(replay, source);
		if (err)
			return err;
		read_frame(replay, source);
	}
	return replay->error;
}

static int open_sources(struct replay *replay, const char *const *paths, size_t n)
{
	replay->sources = calloc(n, sizeof(*replay->sources));
	if (!replay->sources)
		return -ENOMEM;
	for (; replay->n_sources < n; replay->n_sources++) {
		size_t i = replay->n_sources;
		int err = capture_file_open(&replay->sources[i].file, paths[i],
					    &replay->ctx->life.log);

		if (err)
			return err;
	}
	return 0;
}

static bool hides_link(const struct replay *replay)
{
	for (size_t i = 0; i < replay->n_sources; i++)
		if (capture_file_hides_link(&replay->sources[i].file))
			return true;
	return false;
}

static int start_replay(struct replay *replay)
{
	struct pipeline_options options = context_pipeline_options(replay->ctx);
	int err = hides_link(replay) ? check_filters(replay) : 0;

	if (err)
		return err;
	replay->ctx->opts.direction = NETOBS_INGRESS; /* as all packets are */
	options.store.clock = CLOCK_PACKET;
	options.merge.single_point = true;
	options.merge.hide_link = hides_link(replay);
	err = context_open_pipeline(replay->ctx, &options, &replay->nowhere);
	err = err ?: context_open_alerts(replay->ctx);
	if (err)
		return err;
	return store_load_programs(&replay->pipeline->store,
				   options.store.filter, &options.store.rate, 0,
				   LINK_ETHERNET, &replay->programs);
}

/* Warn of losses that records do not show. */
static void warn_of_gaps(const struct replay *replay)
{
	const struct log *log = &replay->ctx->life.log;
	NETOBS_OPTS(netobs_stats, stats);
	uint64_t n_short = 0;

	if (!netobs_stats_get(replay->ctx, &stats))
		n_short = min_u64(stats.unparsed[NETOBS_UNPARSED_SHORT].packets,
				  replay->n_cut);
	if (n_short)
		log_warning(log,
			    "%llu packets are in no flow: the capture cut them before their ports; with tcpdump, use a larger -s",
			    (unsigned long long)n_short);
	if (replay->n_unnamed)
		log_warning(log,
			    "%llu packets were left out: their files do not say which interface they passed, as pcapng does",
			    (unsigned long long)replay->n_unnamed);
	for (size_t i = 0; i < replay->n_sources; i++) {
		capture_file_report(&replay->sources[i].file);
		if (replay->sources[i].n_again)
			log_info(log,
				 "%s has %llu packets again, at further interfaces",
				 replay->sources[i].file.path,
				 (unsigned long long)replay->sources[i].n_again);
	}
}

/* NULL: all. */
static const struct selected *find_selected(const struct netobs *ctx)
{
	const struct selection *selection = &ctx->observation.selection;
	const struct selected *own = selection_find(selection, NULL);

	return own && own->is_all && !selection->exclude.count ? NULL : own;
}

static void replay_done(struct replay *replay)
{
	for (size_t i = 0; i < replay->n_sources; i++) {
		crossings_free(replay->sources[i].crossings);
		capture_file_close(&replay->sources[i].file);
	}
	free(replay->sources);
	programs_close(&replay->programs);
	/* The context keeps the pipeline for its statistics, but not this. */
	replay->pipeline->merge.host = &replay->ctx->host;
}

static int run_replay(struct netobs *ctx, const char *const *paths, size_t n)
{
	__attribute__((cleanup(replay_done))) struct replay replay = {
		.ctx = ctx,
		.pipeline = &ctx->pipeline,
		.programs = { { -1, -1 } },
		.selected = find_selected(ctx),
	};
	int err = open_sources(&replay, paths, n);

	err = err ?: start_replay(&replay);
	if (err)
		return err;
	err = replay_frames(&replay);
	drain_replay(&replay, MERGE_FINAL, replay.due_ns);
	warn_of_gaps(&replay);
	ctx->life.state = LIFE_STOPPED;
	context_read_alerts(ctx);
	return err ?: (int)ctx->pipeline.merge.records;
}

int netobs_replay_files(struct netobs *ctx, const char *const *paths, size_t n)
{
	size_t n_stdin = 0;

	if (!is_context(ctx) || !paths || !n || ctx->life.state != LIFE_NEW)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (!paths[i])
			return -EINVAL;
		n_stdin += !strcmp(paths[i], "-");
	}
	if (n_stdin > 1)
		return -EINVAL;
	ctx->life.state = LIFE_FAILED;
	log_expect_error(&ctx->life.log);
	return log_keep_error(&ctx->life.log, paths[0],
			      run_replay(ctx, paths, n));
}
