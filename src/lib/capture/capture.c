/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The public life of a capture of packets. */
#include "attach/hooks.h"
#include "base/clock.h"
#include "base/life.h"
#include "base/options.h"
#include "base/privilege.h"
#include "base/util.h"
#include "capture.h"
#include "catalogue/direction.h"
#include "engine/map.h"
#include "filter/filter.h"

#include <errno.h>
#include <netobs/capture.h>
#include <netobs/probe.h>
#include <string.h>

enum {
	/* Packets that come soon after another one are read together with it. */
	GATHER_MS = 20,
	UPKEEP_MS = 1000,
	/* Names of interfaces that are gone, for the packets that are on their way. */
	GONE_MS = 10000,
	AT_ONCE = 1, /* of a timer */
	BUFFER_MIN = 1 << 20,
	BUFFER_DEFAULT = 16 << 20,
	BUFFER_MAX = 1 << 30,
};

struct capture {
	struct life life; /* first */
	struct netobs_capture_opts opts;
	struct host host;
	struct filter *filter; /* NULL: all packets */
	struct observation observation;
	struct packets packets;
	struct clock clock;
	int timer; /* for packets that gather */
	int upkeep_timer;
	bool is_gathering;
	struct map_grace *grace; /* of programs that run when it stops; or NULL */
	bool has_read;		 /* in this netobs_dispatch() */

	struct sources sources;
	struct processes processes;
	uint8_t *frame; /* with its tag in place */
};

static loop_fn on_ring, on_capture_timer, on_upkeep, on_sockets;
static const struct life_ops life_ops;

/* ---- Options ------------------------------------------------------------------------- */

/* Copy the options that the caller knows, with defaults in place. */
static void copy_capture_options(const struct netobs_capture_opts *opts,
				 struct netobs_capture_opts *ret_opts)
{
	struct netobs_capture_opts copy = { 0 };

	memcpy(&copy, opts, min_u64(opts->sz, sizeof(copy)));
	copy.sz = sizeof(copy);
	copy.snap_length = copy.snap_length ?: CAPTURE_SNAP_MAX;
	copy.buffer_bytes = copy.buffer_bytes ?: BUFFER_DEFAULT;
	*ret_opts = copy;
}

static int check_capture_options(const struct netobs_capture_opts *opts,
				 const struct log *log)
{
	const struct option_check checks[] = {
		{ "on_packet", "it is not set", !opts->on_packet },
		{ "direction", "it is none of enum netobs_direction",
		  (unsigned int)opts->direction >= NETOBS_DIRECTIONS },
		{ "attach_order", "it is none of enum netobs_attach_order",
		  opts->attach_order > NETOBS_ATTACH_LAST },
		{ "flags", "one is not in enum netobs_capture_flag",
		  opts->flags & ~(uint64_t)NETOBS_CAPTURE_PROCESSES },
		{ "snap_length", "it is more than 262144",
		  opts->snap_length > CAPTURE_SNAP_MAX },
		{ "buffer_bytes", "it is not from 1 MiB to 1 GiB",
		  opts->buffer_bytes < BUFFER_MIN ||
			  opts->buffer_bytes > BUFFER_MAX },
	};

	return option_check(checks, ARRAY_SIZE(checks), log);
}

/* ---- New and free -------------------------------------------------------------------- */

static int open_capture_loop(struct capture *capture)
{
	struct loop *loop = &capture->life.loop;
	int err = life_open(&capture->life);

	if (!err)
		err = loop_add_timer(loop, CLOCK_BOOTTIME, on_capture_timer,
				     capture, &capture->timer);
	return err ? err :
		     loop_add_timer(loop, CLOCK_BOOTTIME, on_upkeep, capture,
				    &capture->upkeep_timer);
}

static int init_capture(struct capture *capture,
			const struct netobs_capture_opts *opts)
{
	int err = sized_check(opts, sizeof(*opts), &capture->life.log);

	err = err ?: check_capture_options(&capture->opts, &capture->life.log);
	if (!err)
		err = filter_compile(capture->opts.filter, &capture->life.log,
				     &capture->filter);
	host_init(&capture->host, &capture->life.log);
	if (!err)
		err = observation_init(&capture->observation, &capture->host,
				       capture->opts.interfaces,
				       capture->opts.exclude);
	if (err)
		return err;
	capture->opts.interfaces = NULL;
	capture->opts.exclude = NULL;
	capture->opts.filter =
		capture->filter ? filter_expression(capture->filter) : NULL;
	capture->frame = malloc(CAPTURE_SNAP_MAX + TAG_LEN);
	return capture->frame ? open_capture_loop(capture) : -ENOMEM;
}

int netobs_capture_new(const struct netobs_capture_opts *opts,
		       struct netobs **ret_capture)
{
	struct capture *capture;

	if (!opts || !ret_capture)
		return -EINVAL;
	capture = calloc(1, sizeof(*capture));
	if (!capture)
		return -ENOMEM;
	copy_capture_options(opts, &capture->opts);
	life_init(&capture->life, &life_ops, capture->opts.on_log,
		  capture->opts.user);
	return life_made(&capture->life, "a capture", init_capture(capture, opts),
			 capture->opts.error, ret_capture);
}

static void free_capture(void *object)
{
	struct capture *capture = object;

	observation_done(&capture->observation);
	processes_close(&capture->processes);
	host_done(&capture->host);
	map_grace_abandon(capture->grace);
	packets_close(&capture->packets);
	filter_free(capture->filter);
	sources_done(&capture->sources);
	free(capture->frame);
}

/* ---- Start ------------------------------------------------------------------------- */

static uint32_t power_of_two(uint64_t bytes)
{
	uint32_t power = BUFFER_MIN;

	while (power < bytes)
		power *= 2;
	return power;
}

static int load_capture_programs(void *packets, uint16_t netns,
				 enum link_kind link, bool is_next,
				 struct programs *ret_programs)
{
	(void)is_next; /* a capture's filter is never replaced */
	return packets_load_programs(packets, netns, link, ret_programs);
}

static int deliver_packet(void *ctx, const struct capture_packet *packet);

static int watch_rings(struct capture *capture)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < capture->packets.n_rings; i++)
		err = loop_watch(&capture->life.loop,
				 capture->packets.rings[i].fd,
				 EPOLLIN | EPOLLET, on_ring, capture);
	return err;
}

static int open_processes(struct capture *capture)
{
	const struct netobs_capture_opts *opts = &capture->opts;

	if (!(opts->flags & NETOBS_CAPTURE_PROCESSES))
		return 0;
	return processes_open(&capture->processes, &capture->host,
			      opts->disable_features, &capture->life.log);
}

static int watch_sockets(struct capture *capture)
{
	const int fd = processes_fd(&capture->processes);

	return fd < 0 ? 0 :
			loop_watch(&capture->life.loop, fd, EPOLLIN, on_sockets,
				   capture);
}

static int start_capture(void *owner)
{
	struct capture *capture = owner;
	const struct netobs_capture_opts *opts = &capture->opts;
	const struct packets_options options = {
		.snap_length = opts->snap_length,
		.rate = opts->rate,
		.buffer_bytes = power_of_two(opts->buffer_bytes),
		.direction = opts->direction,
		.filter = capture->filter,
	};
	const struct program_source programs = {
		.load = load_capture_programs,
		.ctx = &capture->packets,
	};
	const struct attach_options attach =
		attach_options_of(&capture->life.log, opts->disable_features,
				  opts->direction, opts->attach_order);
	int err;

	clock_init(&capture->clock, CLOCK_HOST);
	err = packets_open(&capture->packets, &options, deliver_packet, capture,
			   &capture->life.log);
	sources_init(&capture->sources, &capture->host, &capture->packets);
	capture->observation.stop_fd = capture->life.stop_fd;
	err = err ?: open_processes(capture);
	if (!err)
		err = observation_start(&capture->observation, &programs,
					&attach, NULL);
	err = err ?: observation_watch(&capture->observation, &capture->life.loop);
	err = err ?: watch_rings(capture);
	err = err ?: watch_sockets(capture);
	if (err) {
		observation_done(&capture->observation);
		return err;
	}
	processes_list(&capture->processes);
	capture->life.state = LIFE_RUNNING;
	loop_repeat_timer(capture->upkeep_timer, UPKEEP_MS);
	log_info(&capture->life.log, "capturing at %u interfaces",
		 capture->observation.n_attached);
	return 0;
}

/* ---- Packets ----------------------------------------------------------------------- */

static int deliver_packet(void *ctx, const struct capture_packet *packet)
{
	struct capture *capture = ctx;
	struct netobs_packet out = {
		.sz = sizeof(out),
		.time_ns = clock_to_wall(&capture->clock, packet->time_ns),
		.bytes = (const uint8_t *)(packet + 1),
		.captured = packet->captured,
		.length = packet->length,
		.direction = direction_of_index(packet->direction),
	};
	int source = sources_ensure(&capture->sources, packet);

	if (source < 0)
		return source;
	if (packet->vlan_type && packet->link == LINK_ETHERNET) {
		out.captured = tag_insert(capture->frame, packet,
					  capture->opts.snap_length);
		out.bytes = capture->frame;
		out.length += TAG_LEN;
	}
	out.interface = source;
	processes_find(&capture->processes, packet, &out);
	capture->sources.list[source].captured++;
	capture->life.delivered++;
	return capture->opts.on_packet(&out, capture->opts.user);
}

/* @return as packets_read(); -EBUSY: packets wait for their processes until *@ret_at_ns */
static int read_ready(struct capture *capture, int64_t *ret_at_ns)
{
	int64_t until_ns;
	int ret;

	*ret_at_ns = processes_prepare(&capture->processes,
				       packets_are_many(&capture->packets),
				       &until_ns);
	if (*ret_at_ns)
		return -EBUSY;
	ret = packets_read(&capture->packets, until_ns);
	if (ret >= 0)
		processes_done_reading(&capture->processes);
	*ret_at_ns = ret < 0 ? AT_ONCE :
			       clock_boot_ns() + GATHER_MS * NSEC_PER_MSEC;
	return ret;
}

/* @ret of read_ready(): there may be more, or on_packet() ended it. */
static int read_result(const struct capture *capture, int ret)
{
	if (ret >= 0 || ret == -EAGAIN || ret == -EBUSY)
		return 0;
	return ret == -ECANCELED ? capture->packets.result : ret;
}

/* The next call reads the remaining packets at once, or those that arrive meanwhile. */
static int read_packets(struct capture *capture)
{
	int64_t at_ns = AT_ONCE;
	int ret;

	/* Several rings may ask for it: a dispatch takes some milliseconds. */
	if (capture->has_read) {
		loop_set_timer(capture->timer, at_ns);
		return 0;
	}
	capture->has_read = true;
	ret = read_ready(capture, &at_ns);
	capture->is_gathering = ret;
	if (ret)
		loop_set_timer(capture->timer, at_ns);
	return read_result(capture, ret);
}

/*
 * The first packet waits for others. While they gather, it is another first one that wakes,
 * after the ring buffer was read, unless there are many: to read each at once would keep
 * it empty, and have each packet cause a wake-up.
 */
static int on_ring(void *ctx, int fd)
{
	struct capture *capture = ctx;

	(void)fd;
	if (capture->is_gathering)
		return packets_are_many(&capture->packets) ?
			       read_packets(capture) :
			       0;
	capture->is_gathering = true;
	loop_set_timer(capture->timer,
		       clock_boot_ns() + GATHER_MS * NSEC_PER_MSEC);
	return 0;
}

static int on_capture_timer(void *ctx, int fd)
{
	(void)fd;
	return read_packets(ctx);
}

static int on_sockets(void *ctx, int fd)
{
	struct capture *capture = ctx;

	(void)fd;
	processes_read(&capture->processes);
	return 0;
}

/*
 * The wall clock may have been stepped, and drifts. No wake-up may come for packets that
 * were reserved after another one which is not submitted yet.
 */
static int on_upkeep(void *ctx, int fd)
{
	struct capture *capture = ctx;

	(void)fd;
	clock_calibrate(&capture->clock);
	host_sweep(&capture->host, clock_boot_ns() - GONE_MS * NSEC_PER_MSEC);
	return read_packets(capture);
}

/* ---- Stop --------------------------------------------------------------------------- */

/* Programs capture nothing from now on, however long detaching takes. */
static void stop_programs(struct capture *capture)
{
	int err = packets_stop(&capture->packets) ?:
			  map_grace_begin(&capture->grace);

	if (err)
		log_warning(&capture->life.log,
			    "programs may count a little longer: %s",
			    strerror(-err));
}

static void stop_capture(void *owner)
{
	struct capture *capture = owner;

	stop_programs(capture);
	observation_detach(&capture->observation);
}

static bool is_capture_quiet(struct capture *capture)
{
	if (capture->grace && map_grace_result(&capture->grace) == -EAGAIN)
		return false;
	return observation_is_detached(&capture->observation);
}

/* Read the remaining packets once no program captures any more. */
static int go_on_stopping(struct capture *capture)
{
	int64_t at_ns;
	int ret;

	if (!is_capture_quiet(capture)) {
		loop_set_timer(capture->timer,
			       clock_boot_ns() + GATHER_MS * NSEC_PER_MSEC);
		return 0;
	}
	if (packets_are_none(&capture->packets)) {
		capture->life.state = LIFE_STOPPED;
		return 0;
	}
	ret = read_ready(capture, &at_ns);
	loop_set_timer(capture->timer, ret == -EBUSY ? at_ns : AT_ONCE);
	return read_result(capture, ret);
}

static void begin_dispatch(void *owner)
{
	((struct capture *)owner)->has_read = false;
}

static int step_capture(void *owner)
{
	struct capture *capture = owner;

	return capture->life.state == LIFE_STOPPING ? go_on_stopping(capture) : 0;
}

static const struct life_ops life_ops = {
	.start = start_capture,
	.stop = stop_capture,
	.begin = begin_dispatch,
	.step = step_capture,
	.free = free_capture,
	.privileges = PRIVILEGE_ALL,
};

/* ---- Statistics ---------------------------------------------------------------------- */

static void sum_counters(struct capture *capture,
			 struct netobs_capture_stats *stats)
{
	struct sources *sources = &capture->sources;

	stats->matched = stats->lost = packets_uncounted(&capture->packets);
	sources_add_counted(sources);
	for (uint32_t i = 0; i < sources->n; i++) {
		const struct capture_counters counters =
			sources_counters(sources, i);

		stats->matched += counters.matched;
		stats->limited += counters.limited;
		stats->lost += counters.lost;
		stats->captured += sources->list[i].captured;
	}
	stats->interfaces = sources->n;
}

int netobs_capture_interface(const struct netobs *netobs, uint32_t index,
			     struct netobs_capture_interface *ret_interface)
{
	const struct capture *capture = life_as(netobs, &life_ops);
	struct netobs_capture_interface interface;
	const struct source *source;
	struct capture_counters counters;

	if (!capture || !ret_interface)
		return -EINVAL;
	if (index >= capture->sources.n)
		return -ENOENT;
	source = &capture->sources.list[index];
	counters = sources_counters(&capture->sources, index);
	interface = (struct netobs_capture_interface){
		.name = source->name,
		.netns = source->netns,
		.ifindex = source->key.ifindex,
		.link_type = source->link == LINK_ETHERNET ? NETOBS_LINK_ETHERNET :
							     NETOBS_LINK_RAW,
		.snap_length = capture->opts.snap_length,
		.matched = counters.matched,
		.captured = source->captured,
		.limited = counters.limited,
		.lost = counters.lost,
		.filter = capture->opts.filter,
	};
	return sized_fill(ret_interface, &interface, sizeof(interface));
}

int netobs_capture_stats_get(struct netobs *netobs,
			     struct netobs_capture_stats *ret_stats)
{
	struct capture *capture = life_as(netobs, &life_ops);
	struct netobs_capture_stats stats = { 0 };

	if (!capture || !ret_stats)
		return -EINVAL;
	if (capture->packets.per_cpu)
		sum_counters(capture, &stats);
	stats.attached = capture->observation.n_attached;
	return sized_fill(ret_stats, &stats, sizeof(stats));
}
