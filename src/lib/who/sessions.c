// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * An observer of sessions: reads the ring buffer of ended sessions, and each interval the list of
 * live ones, in slices of some milliseconds.
 */
#include "base/clock.h"
#include "base/life.h"
#include "base/privilege.h"
#include "base/options.h"
#include "base/util.h"
#include "engine/map.h"
#include "containers.h"
#include "sessions.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <netobs/probe.h>
#include <netobs/session.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	GATHER_MS = 20, /* how long the first session waits for others */
	SLICE_MS = 4,	/* of a call, for sessions */
	LIST_MS = 1,	/* between looks at what a thread has listed */
	UPKEEP_MS = 500,
	GLANCE = 16, /* sessions between looks at the clock */
	INTERVAL_MIN_MS = 100,
	BUFFER_MIN = 64 << 10,
	BUFFER_DEFAULT = 4 << 20,
	BUFFER_MAX = 1 << 30,
};

struct sessions {
	struct life life; /* first */
	struct netobs_sessions_opts opts;
	int ring_timer, list_timer, upkeep_timer;

	struct session_programs programs;
	struct ring_buffer *ring;
	int counts_fd, cgroups_fd, names_fd; /* maps; they outlive the programs */
	struct cgroups_upkeep upkeep;
	struct map_grace *grace;
	bool is_gathering; /* the timer will read the ring buffer */
	bool is_listing;   /* live sessions are being listed */
	bool is_last_list; /* programs have ended: live sessions are listed once more */

	struct clock clock;
	char *container_root;	       /* NULL: "/" */
	struct container_names *names; /* NULL: none are wanted */
	bool are_names_shared;
	struct session_source source;
	struct netobs_sessions_stats stats;
	int64_t slice_end_ns; /* when the current call has to return */
};

static loop_fn on_ring, on_ring_timer, on_list_timer, on_upkeep;
static const struct life_ops life_ops;

/* ---- Options --------------------------------------------------------------------------- */

static bool is_interval(uint32_t interval_ms)
{
	return !interval_ms || interval_ms >= INTERVAL_MIN_MS;
}

static int check_session_options(const struct netobs_sessions_opts *opts,
				 const struct log *log)
{
	const struct option_check checks[] = {
		{ "on_record", "it is not set", !opts->on_record },
		{ "flags", "one is not known",
		  opts->flags & ~(uint32_t)NETOBS_CONTAINER_NAMES },
		{ "interval_ms", "it is less than 100 ms",
		  !is_interval(opts->interval_ms) },
		{ "buffer_bytes", "it is not from 64 KiB to 1 GiB",
		  opts->buffer_bytes < BUFFER_MIN ||
			  opts->buffer_bytes > BUFFER_MAX },
	};

	return option_check(checks, ARRAY_SIZE(checks), log);
}

static int open_sessions_loop(struct sessions *sessions)
{
	const struct {
		loop_fn *fn;
		int *timer;
	} timers[] = {
		{ on_ring_timer, &sessions->ring_timer },
		{ on_list_timer, &sessions->list_timer },
		{ on_upkeep, &sessions->upkeep_timer },
	};
	int err = life_open(&sessions->life);

	for (size_t i = 0; !err && i < ARRAY_SIZE(timers); i++)
		err = loop_add_timer(&sessions->life.loop, CLOCK_BOOTTIME,
				     timers[i].fn, sessions, timers[i].timer);
	return err;
}

static int init_sessions(struct sessions *sessions,
			 const struct netobs_sessions_opts *opts)
{
	int err = sized_check(opts, sizeof(*opts), &sessions->life.log);

	err = err ?: check_session_options(&sessions->opts, &sessions->life.log);
	if (!err)
		err = copy_optional(sessions->opts.container_root,
				    &sessions->container_root);
	return err ?: open_sessions_loop(sessions);
}

int netobs_sessions_new(const struct netobs_sessions_opts *opts,
			struct netobs **ret_sessions)
{
	struct sessions *sessions;

	if (!opts || !ret_sessions)
		return -EINVAL;
	sessions = calloc(1, sizeof(*sessions));
	if (!sessions)
		return -ENOMEM;
	sessions->counts_fd = sessions->cgroups_fd = sessions->names_fd = -1;
	memcpy(&sessions->opts, opts, min_u64(opts->sz, sizeof(*opts)));
	sessions->opts.buffer_bytes = sessions->opts.buffer_bytes ?:
					      BUFFER_DEFAULT;
	life_init(&sessions->life, &life_ops, sessions->opts.on_log,
		  sessions->opts.user);
	return life_made(&sessions->life, "an observer of sessions",
			 init_sessions(sessions, opts), sessions->opts.error,
			 ret_sessions);
}

static void free_sessions(void *object)
{
	struct sessions *sessions = object;

	session_programs_close(&sessions->programs);
	map_grace_abandon(sessions->grace);
	ring_buffer__free(sessions->ring);
	close_fd(&sessions->counts_fd);
	close_fd(&sessions->cgroups_fd);
	close_fd(&sessions->names_fd);
	if (sessions->are_names_shared)
		container_names_leave(sessions->names);
	else
		container_names_close(sessions->names);
	free(sessions->container_root);
}

int sessions_use_names(struct netobs *netobs, struct container_names *names)
{
	struct sessions *sessions = life_as(netobs, &life_ops);

	if (!sessions)
		return -EINVAL;
	if (sessions->life.state != LIFE_NEW || sessions->names)
		return -EALREADY;
	sessions->names = container_names_share(names);
	sessions->are_names_shared = true;
	return 0;
}

/* ---- Delivery --------------------------------------------------------------------------- */

static void begin_slice(struct sessions *sessions)
{
	sessions->slice_end_ns = clock_boot_ns() + SLICE_MS * NSEC_PER_MSEC;
}

static bool is_slice_over(const struct sessions *sessions)
{
	return sessions->life.delivered % GLANCE == 0 &&
	       clock_boot_ns() >= sessions->slice_end_ns;
}

static void deliver_session(struct sessions *sessions,
			    const struct session_event *event)
{
	struct netobs_session session;

	session_fill(&sessions->source, event, &session);
	if (session.ended)
		sessions->stats.reported++;
	else
		sessions->stats.updates++;
	sessions->life.delivered++;
	sessions->opts.on_record(&session.record, sessions->opts.user);
}

/* ---- Ended sessions ---------------------------------------------------------------------- */

static int take_session_event(void *ctx, void *data, size_t size)
{
	const struct session_event *event = data;
	struct sessions *sessions = ctx;

	(void)size;
	/* The last list has the sessions whose sockets are not closed yet. */
	if (event->end.time_ns || sessions->opts.interval_ms)
		deliver_session(sessions, event);
	return is_slice_over(sessions) ? -EAGAIN : 0;
}

/* Read the ring buffer; if there is more, the next call reads it at once. */
static int read_ring(struct sessions *sessions)
{
	const int64_t at_once = 1;
	int r;

	begin_slice(sessions);
	r = ring_buffer__consume(sessions->ring);
	sessions->is_gathering = r == -EAGAIN;
	if (r == -EAGAIN)
		loop_set_timer(sessions->ring_timer, at_once);
	return r == -EAGAIN || r > 0 ? 0 : r;
}

/* The first session waits for others, so a flood causes 50 wake-ups per second. */
static int on_ring(void *ctx, int fd)
{
	struct sessions *sessions = ctx;

	(void)fd;
	if (!sessions->is_gathering)
		loop_set_timer(sessions->ring_timer,
			       clock_boot_ns() + GATHER_MS * NSEC_PER_MSEC);
	sessions->is_gathering = true;
	return 0;
}

static int on_ring_timer(void *ctx, int fd)
{
	(void)fd;
	return read_ring(ctx);
}

/*
 * The wall clock may have been stepped, and drifts. A session that a program has added while the ring
 * buffer was read may cause no wake-up.
 */
static int on_upkeep(void *ctx, int fd)
{
	struct sessions *sessions = ctx;
	struct session_counts counts;

	(void)fd;
	clock_calibrate(&sessions->clock);
	if (sessions->life.state != LIFE_RUNNING)
		return sessions->ring ? read_ring(sessions) : 0;
	map_sum_cpus(sessions->counts_fd, &counts, sizeof(counts));
	cgroups_look_after(&sessions->upkeep, &sessions->programs,
			   counts.cgroups, &sessions->life.log);
	begin_slice(sessions);
	while (cgroups_step(&sessions->upkeep, &sessions->programs,
			    &sessions->life.log) &&
	       clock_boot_ns() < sessions->slice_end_ns)
		;
	return read_ring(sessions);
}

/* ---- Live sessions ----------------------------------------------------------------------- */

static void set_list_timer(struct sessions *sessions)
{
	const int64_t interval_ns = sessions->opts.interval_ms * NSEC_PER_MSEC;

	loop_set_timer(sessions->list_timer,
		       interval_ns ? clock_boot_ns() + interval_ns : 0);
}

static void end_list(struct sessions *sessions, int err)
{
	if (err)
		log_warning(&sessions->life.log, "cannot list sessions: %s",
			    strerror(-err));
	sessions->is_listing = false;
	if (sessions->life.state == LIFE_RUNNING)
		set_list_timer(sessions);
}

/* Read a part of the list; the next call continues. */
static int read_list(struct sessions *sessions)
{
	int r;

	begin_slice(sessions);
	r = ring_buffer__consume(sessions->ring);
	if (r < 0 && r != -EAGAIN)
		return r;
	r = r < 0 ? r : session_programs_go_on_listing(&sessions->programs);
	if (r == -EAGAIN) {
		loop_set_timer(sessions->list_timer,
			       clock_boot_ns() + LIST_MS * NSEC_PER_MSEC);
		return 0;
	}
	if (r == -ECANCELED) /* by fork(2): this process begins its last list anew */
		sessions->is_last_list = false;
	end_list(sessions, r);
	return read_ring(sessions);
}

static int begin_list(struct sessions *sessions)
{
	int err = session_programs_begin_list(&sessions->programs);

	if (err) {
		end_list(sessions, err);
		return 0;
	}
	sessions->is_listing = true;
	return read_list(sessions);
}

static int on_list_timer(void *ctx, int fd)
{
	struct sessions *sessions = ctx;

	(void)fd;
	if (sessions->is_listing)
		return read_list(sessions);
	return sessions->life.state == LIFE_RUNNING ? begin_list(sessions) : 0;
}

int netobs_sessions_interval_set(struct netobs *netobs, uint32_t interval_ms)
{
	struct sessions *sessions = life_as(netobs, &life_ops);

	if (!sessions)
		return -EINVAL;
	log_expect_error(&sessions->life.log);
	if (!is_interval(interval_ms)) {
		log_error(&sessions->life.log,
			  "interval_ms: it is less than %d ms", INTERVAL_MIN_MS);
		return -EINVAL;
	}
	sessions->opts.interval_ms = interval_ms;
	/* A list that is being read sets the timer at its end. */
	if (sessions->life.state == LIFE_RUNNING && !sessions->is_listing)
		set_list_timer(sessions);
	return 0;
}

/* ---- Start ------------------------------------------------------------------------------- */

static uint32_t ring_size(uint64_t bytes)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t size = BUFFER_MIN;

	while (size < bytes || size < page)
		size *= 2;
	return (uint32_t)size;
}

static int keep_map(const struct sessions *sessions, const char *name, int *ret_fd)
{
	int fd = program_set_map_fd(&sessions->programs.sockets, name);

	if (fd < 0)
		return fd;
	*ret_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (*ret_fd >= 0)
		return 0;
	fd = -errno;
	log_error(&sessions->life.log, "cannot keep BPF maps of sessions: %s",
		  strerror(-fd));
	return fd;
}

static int open_session_maps(struct sessions *sessions)
{
	const struct session_programs *programs = &sessions->programs;
	int err;

	err = keep_map(sessions, "session_counts", &sessions->counts_fd);
	err = err ?: keep_map(sessions, "session_cgroups", &sessions->cgroups_fd);
	err = err ?: keep_map(sessions, "session_names", &sessions->names_fd);
	if (err)
		return err;
	sessions->upkeep.cgroups_fd = sessions->cgroups_fd;
	sessions->upkeep.round_fd =
		program_set_map_fd(&programs->sockets, "session_round");
	return session_programs_read(programs, take_session_event, sessions,
				     &sessions->ring);
}

static void note_absent(const struct sessions *sessions)
{
	const struct session_programs *programs = &sessions->programs;

	if (programs->list_error)
		log_info(&sessions->life.log,
			 "open connections are listed by the files of processes (no socket_lists): %s",
			 strerror(-programs->list_error));
	if (programs->io_error)
		log_info(&sessions->life.log,
			 "processes that send and receive are not known (session_io): %s",
			 strerror(-programs->io_error));
	if (programs->accept_error)
		log_info(&sessions->life.log,
			 "the process that accepts a connection is not known until it sends, receives or closes (no session_accept): %s",
			 strerror(-programs->accept_error));
}

static int start_sessions(void *owner)
{
	struct sessions *sessions = owner;
	const uint64_t disabled = sessions->opts.disable_features;
	const struct session_knobs knobs = {
		.ring_bytes = ring_size(sessions->opts.buffer_bytes),
		.no_lists = disabled >> NETOBS_FEATURE_SOCKET_LISTS & 1,
		.no_io = disabled >> NETOBS_FEATURE_SESSION_IO & 1,
		.no_accept = disabled >> NETOBS_FEATURE_SESSION_ACCEPT & 1,
	};
	int err;

	clock_init(&sessions->clock, CLOCK_HOST);
	err = session_programs_open(&sessions->programs, &knobs,
				    &sessions->life.log);
	err = err ?: open_session_maps(sessions);
	if (!err)
		err = loop_watch(&sessions->life.loop,
				 ring_buffer__epoll_fd(sessions->ring),
				 EPOLLIN | EPOLLET, on_ring, sessions);
	if (!err && sessions->opts.flags & NETOBS_CONTAINER_NAMES &&
	    !sessions->names)
		err = container_names_open(sessions->container_root,
					   &sessions->life.loop,
					   &sessions->life.log, &sessions->names);
	if (err) {
		session_programs_close(&sessions->programs);
		return err;
	}
	sessions->source = (struct session_source){
		.clock = &sessions->clock,
		.cgroups_fd = sessions->cgroups_fd,
		.names_fd = sessions->names_fd,
		.names = sessions->names,
		.tick_ns = session_tick_ns(),
	};
	err = session_programs_find_holders(&sessions->programs);
	if (err)
		log_warning(&sessions->life.log,
			    "processes of earlier connections are not known: %s",
			    strerror(-err));
	log_info(&sessions->life.log, "following the TCP sockets of this host");
	note_absent(sessions);
	sessions->life.state = LIFE_RUNNING;
	loop_repeat_timer(sessions->upkeep_timer, UPKEEP_MS);
	set_list_timer(sessions);
	return 0;
}

/* ---- Stop -------------------------------------------------------------------------------- */

static void note_unsettled(const struct sessions *sessions, int err)
{
	if (err)
		log_warning(&sessions->life.log,
			    "the last sessions may not be reported: %s",
			    strerror(-err));
}

/* A program that runs on another CPU may still report. */
static void stop_sessions(void *owner)
{
	struct sessions *sessions = owner;

	session_programs_detach(&sessions->programs);
	note_unsettled(sessions, map_grace_begin(&sessions->grace));
}

static bool is_observer_quiet(struct sessions *sessions)
{
	int err = sessions->grace ? map_grace_result(&sessions->grace) : 0;

	if (err != -EAGAIN)
		note_unsettled(sessions, err);
	return err != -EAGAIN;
}

/* Begin the last list once programs are at rest, and the list of an interval has ended. */
static int list_last(struct sessions *sessions)
{
	if (sessions->is_listing || !is_observer_quiet(sessions)) {
		loop_set_timer(sessions->ring_timer,
			       clock_boot_ns() + GATHER_MS * NSEC_PER_MSEC);
		return 0;
	}
	sessions->is_last_list = true;
	return begin_list(sessions);
}

/* Deliver sessions that ended before a process accepted them: no file of a process has their socket. */
static void deliver_queued(struct sessions *sessions)
{
	const int fd = program_set_map_fd(&sessions->programs.sockets,
					  "session_queued");
	struct session_event event;
	uint64_t cookie;

	while (!bpf_map_get_next_key(fd, NULL, &cookie)) {
		const bool is_there = !bpf_map_lookup_elem(fd, &cookie, &event);

		if (bpf_map_delete_elem(fd, &cookie) || !is_there)
			return;
		sessions->stats.ended++;
		deliver_session(sessions, &event);
	}
}

static int step_sessions(void *owner)
{
	struct sessions *sessions = owner;
	const int64_t at_once = 1;
	int err;

	if (sessions->life.state != LIFE_STOPPING)
		return 0;
	err = sessions->is_last_list ? 0 : list_last(sessions);
	if (err || !sessions->is_last_list || sessions->is_listing)
		return err;
	err = read_ring(sessions);
	if (!err && !sessions->is_gathering) {
		if (sessions->programs.list_error)
			deliver_queued(sessions);
		session_programs_close(&sessions->programs);
		sessions->life.state = LIFE_STOPPED;
	}
	loop_set_timer(sessions->ring_timer, at_once);
	return err;
}

static const struct life_ops life_ops = {
	.start = start_sessions,
	.stop = stop_sessions,
	.step = step_sessions,
	.free = free_sessions,
	.privileges = PRIVILEGE_PROGRAMS,
};

/* ---- Statistics -------------------------------------------------------------------------- */

int netobs_sessions_stats_get(const struct netobs *netobs,
			      struct netobs_sessions_stats *ret_stats)
{
	const struct sessions *sessions = life_as(netobs, &life_ops);
	struct netobs_sessions_stats stats;
	struct session_counts counts;

	if (!sessions || !ret_stats)
		return -EINVAL;
	stats = sessions->stats;
	if (sessions->counts_fd >= 0) {
		map_sum_cpus(sessions->counts_fd, &counts, sizeof(counts));
		stats.ended += counts.ended;
		stats.lost += counts.lost;
		if (sessions->life.state == LIFE_RUNNING)
			stats.open = counts.open;
	}
	return sized_fill(ret_stats, &stats, sizeof(stats));
}
