// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "sessions.h"

#include "base/util.h"
#include "base/worker.h"
#include "engine/control_group.h"
#include "session_accept.skel.h"
#include "session_io.skel.h"
#include "sessions.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <stdio.h>

static const struct log silent;

enum { SOCKET_POINTS = 6, FIRST_ROOM_MAX = 512 << 10 };

/* The second ones list sockets by the files of processes. The last of each serves counters only. */
static const struct attach_point socket_points[2][SOCKET_POINTS] = {
	{
		{ .program = "netobs_sess_set", .kind = ATTACH_SECTION },
		{ .program = "netobs_sess_end", .kind = ATTACH_SECTION },
		{ .program = "netobs_sess_own", .kind = ATTACH_ITERATOR },
		{ .program = "netobs_sess_ls",
		  .kind = ATTACH_ITERATOR,
		  .map = "session_sockets" },
		{ .program = "netobs_sess_mk",
		  .kind = ATTACH_ITERATOR,
		  .map = "session_sockets" },
		{ .program = "netobs_sess_spc", .kind = ATTACH_SECTION },
	},
	{
		{ .program = "netobs_sess_set", .kind = ATTACH_SECTION },
		{ .program = "netobs_sess_end", .kind = ATTACH_SECTION },
		{ .program = "netobs_sess_own", .kind = ATTACH_ITERATOR },
		{ .program = "netobs_sess_lsf", .kind = ATTACH_ITERATOR },
		{ .program = "netobs_sess_mkf", .kind = ATTACH_ITERATOR },
		{ .program = "netobs_sess_spc", .kind = ATTACH_SECTION },
	},
};

static const struct attach_point io_points[] = {
	{ .program = "netobs_sess_snd", .kind = ATTACH_SECTION },
	{ .program = "netobs_sess_rcv", .kind = ATTACH_SECTION },
};

static int prepare_sockets(struct bpf_object *object, void *ctx)
{
	struct sessions_bpf__rodata *rodata =
		program_set_knobs(object, sizeof(*rodata));
	struct bpf_map *events =
		bpf_object__find_map_by_name(object, "session_events");
	const struct session_programs *programs = ctx;
	const struct session_knobs *knobs = &programs->knobs;

	if (!rodata || !events)
		return -ENOENT;
	rodata->config_wake = knobs->ring_bytes / 2;
	rodata->config_owners = knobs->wants_owners;
	rodata->config_lists_files = programs->list_error;
	return bpf_map__set_max_entries(events, knobs->ring_bytes);
}

static int prepare_io(struct bpf_object *object, void *ctx)
{
	struct session_io_bpf__rodata *rodata =
		program_set_knobs(object, sizeof(*rodata));
	const struct session_knobs *knobs = ctx;

	if (!rodata)
		return -ENOENT;
	rodata->config_wake = knobs->ring_bytes / 2;
	rodata->config_owners = knobs->wants_owners;
	return 0;
}

static void init_sets(struct session_programs *programs, const struct log *log)
{
	programs->sockets = (struct program_set){
		.name = "sessions_bpf",
		.elf = sessions_bpf__elf_bytes,
		.doing = "load BPF programs for sessions",
		.log = log,
		.points_only = true,
		.n_points = SOCKET_POINTS - programs->knobs.wants_owners,
		.prepare = prepare_sockets,
		.ctx = programs,
	};
	programs->io = (struct program_set){
		.name = "session_io_bpf",
		.elf = session_io_bpf__elf_bytes,
		.log = &silent,
		.base = &programs->sockets,
		.points = io_points,
		.n_points = ARRAY_SIZE(io_points),
		.prepare = prepare_io,
		.ctx = &programs->knobs,
	};
	programs->cgroup_fd = cgroup_root_open();
	programs->accept_points[0] = (struct attach_point){
		.program = "netobs_sess_ac4",
		.kind = ATTACH_CGROUP,
		.cgroup_fd = programs->cgroup_fd,
	};
	programs->accept_points[1] = programs->accept_points[0];
	programs->accept_points[1].program = "netobs_sess_ac6";
	programs->accept = (struct program_set){
		.name = "session_accept_bpf",
		.elf = session_accept_bpf__elf_bytes,
		.log = &silent,
		.base = &programs->sockets,
		.points = programs->accept_points,
		.n_points = ARRAY_SIZE(programs->accept_points),
	};
}

/* Some kernels refuse iterators over maps. */
static int load_sockets(struct session_programs *programs)
{
	const struct log *log = programs->sockets.log;

	programs->sockets.log = &silent;
	programs->sockets.points = socket_points[false];
	programs->list_error = programs->knobs.no_lists ?
				       -ENOTSUP :
				       program_set_ref(&programs->sockets);
	programs->sockets.log = log;
	if (!programs->list_error)
		return 0;
	programs->sockets.points = socket_points[true];
	return program_set_ref(&programs->sockets);
}

static int load_accept(struct session_programs *programs)
{
	return programs->cgroup_fd < 0 ? programs->cgroup_fd :
					 program_set_ref(&programs->accept);
}

int session_programs_open(struct session_programs *programs,
			  const struct session_knobs *knobs,
			  const struct log *log)
{
	int err;

	*programs = (struct session_programs){ .knobs = *knobs };
	init_sets(programs, log);
	err = load_sockets(programs);
	if (err) {
		session_programs_close(programs);
		return err;
	}
	programs->io_error = knobs->no_io ? -ENOTSUP :
					    program_set_ref(&programs->io);
	programs->accept_error = knobs->no_accept ? -ENOTSUP :
						    load_accept(programs);
	return 0;
}

void session_programs_detach(struct session_programs *programs)
{
	program_set_unref(&programs->accept);
	program_set_unref(&programs->io);
	program_set_detach(&programs->sockets, "netobs_sess_set");
	program_set_detach(&programs->sockets, "netobs_sess_end");
	programs->is_detached = true;
}

void session_programs_close(struct session_programs *programs)
{
	if (!programs->sockets.name)
		return;
	program_set_unref(&programs->accept);
	program_set_unref(&programs->io);
	program_set_unref(&programs->sockets);
	worker_free(TAKE_PTR(programs->lister));
	worker_free(TAKE_PTR(programs->marker));
	close_fd(&programs->cgroup_fd);
	programs->sockets.name = NULL;
}

/* Iterators write nothing. */
static int read_once(int fd)
{
	char none;

	return read(fd, &none, sizeof(none)) < 0 ? -errno : 0;
}

int session_programs_find_holders(const struct session_programs *programs)
{
	cleanup_fd int fd =
		program_set_open_iterator(&programs->sockets, "netobs_sess_own");
	int err;

	do {
		err = fd < 0 ? fd : read_once(fd);
	} while (err == -EAGAIN || err == -EINTR);
	return err;
}

/*
 * An iterator that is read in a thread: each read(2) walks one of the kernel's few buckets of sockets
 * from its beginning again.
 */
struct reading {
	int map_fd; /* before 6.0, the iterator does not keep the map of sockets */
	int fd;
	int err; /* of the last read; -EAGAIN: there are more sockets */
};

static void read_on(void *work)
{
	struct reading *reading = work;

	reading->err = read_once(reading->fd);
}

static void free_reading(void *work)
{
	struct reading *reading = work;

	close(reading->fd);
	close_fd(&reading->map_fd);
	free(reading);
}

/* Takes @fd over; @err: of the first read. */
static int begin_reading(const struct session_programs *programs, int fd,
			 int err, struct worker **ret_worker)
{
	const int map_fd =
		program_set_map_fd(&programs->sockets, "session_sockets");
	struct reading *reading = calloc(1, sizeof(*reading));
	int failed = reading ? worker_new(read_on, free_reading, ret_worker) :
			       -ENOMEM;

	if (failed) {
		close(fd);
		free(reading);
		return failed;
	}
	*reading = (struct reading){ fcntl(map_fd, F_DUPFD_CLOEXEC, 0), fd, err };
	worker_put_done(*ret_worker, reading);
	return 0;
}

static int go_on_reading(struct worker **worker)
{
	struct reading *reading = worker_take(*worker);
	int err = reading ? reading->err : -EAGAIN;

	if (worker_is_lost(*worker)) {
		worker_free(TAKE_PTR(*worker));
		return -ECANCELED;
	}
	if (reading && (err == -EAGAIN || err == -EINTR)) {
		worker_start_or_run(*worker, reading);
		return -EAGAIN;
	}
	if (reading) {
		free_reading(reading);
		worker_free(TAKE_PTR(*worker));
	}
	return err;
}

int session_programs_begin_marks(struct session_programs *programs)
{
	int fd = program_set_open_iterator(
		&programs->sockets,
		programs->list_error ? "netobs_sess_mkf" : "netobs_sess_mk");

	return fd < 0 ? fd :
			begin_reading(programs, fd, -EAGAIN, &programs->marker);
}

int session_programs_go_on_marking(struct session_programs *programs)
{
	return go_on_reading(&programs->marker);
}

static void write_list(struct session_programs *programs, uint32_t room)
{
	const uint32_t first = 0;

	programs->list.room = room;
	/* An update of an array's element cannot fail. */
	bpf_map_update_elem(program_set_map_fd(&programs->sockets, "session_list"),
			    &first, &programs->list, BPF_ANY);
}

/* @return the bytes that a call reads: an eighth of the ring buffer, less of a large one */
static uint32_t first_room(const struct session_programs *programs)
{
	return (uint32_t)min_u64(programs->knobs.ring_bytes / 8, FIRST_ROOM_MAX);
}

int session_programs_begin_list(struct session_programs *programs)
{
	int fd;

	programs->list.number++;
	programs->list.is_last = programs->is_detached;
	write_list(programs, first_room(programs));
	fd = program_set_open_iterator(&programs->sockets,
				       programs->list_error ? "netobs_sess_lsf" :
							      "netobs_sess_ls");
	return fd < 0 ? fd :
			begin_reading(programs, fd, read_once(fd),
				      &programs->lister);
}

int session_programs_go_on_listing(struct session_programs *programs)
{
	write_list(programs, programs->knobs.ring_bytes / 4);
	return go_on_reading(&programs->lister);
}

int session_programs_list_more(struct session_programs *programs)
{
	struct reading *reading = worker_take(programs->lister);
	int err = reading->err;

	if (err == -EAGAIN)
		err = reading->err = read_once(reading->fd);
	worker_put_done(programs->lister, reading);
	return err;
}

void session_programs_end_list(struct session_programs *programs)
{
	worker_free(TAKE_PTR(programs->lister));
}

int session_programs_read(const struct session_programs *programs,
			  ring_buffer_sample_fn on_event, void *ctx,
			  struct ring_buffer **ret_ring)
{
	const struct program_set *set = &programs->sockets;
	struct ring_buffer *ring;
	int err;

	log_borrow_libbpf(set->log);
	ring = ring_buffer__new(program_set_map_fd(set, "session_events"),
				on_event, ctx, NULL);
	err = ring ? 0 : -errno;
	log_return_libbpf();
	if (err)
		log_error(set->log, "cannot read BPF maps of sessions: %s",
			  strerror(-err));
	else
		*ret_ring = ring;
	return err;
}

/* ---- Control groups ------------------------------------------------------------------ */

enum {
	/* Groups added since the last removal; up to twice as many may be unused. */
	LOOK_AFTER = SESSION_CGROUPS_MAX / 4,
	REMOVE_AT_ONCE = 512, /* about a millisecond's work */
};

/* Join the names of a group and those above it. False: only a part of the path is known. */
static bool join_names(const struct session_cgroup *names, char *path, size_t size)
{
	size_t used = 0;

	if (names->is_cut || names->n > SESSION_CGROUP_LEVELS)
		return false;
	snprintf(path, size, "/");
	for (uint32_t i = names->n; i-- && used < size;)
		used += (size_t)snprintf(path + used, size - used, "/%.*s",
					 SESSION_CGROUP_NAME, names->names[i]);
	return used < size;
}

bool cgroups_find(int cgroups_fd, const struct session_cgroup_key *key,
		  struct cgroup_info *ret_info)
{
	struct session_cgroup names;
	struct cgroup_info info = { 0 };

	if (bpf_map_lookup_elem(cgroups_fd, key, &names) ||
	    !join_names(&names, info.path, sizeof(info.path)))
		return false;
	info.names = cgroup_names_of(info.path);
	*ret_info = info;
	return true;
}

static void end_marking(struct cgroups_upkeep *upkeep, int err,
			const struct log *log)
{
	if (err)
		log_warning(log, "cannot find the control groups of sockets: %s",
			    strerror(-err));
	err = err ?: bpf_map_get_next_key(upkeep->cgroups_fd, NULL, &upkeep->next);
	upkeep->phase = err ? CGROUPS_AT_REST : CGROUPS_REMOVING;
}

/* Groups without a socket keep the number of an earlier round. */
void cgroups_look_after(struct cgroups_upkeep *upkeep,
			struct session_programs *programs, uint64_t kept,
			const struct log *log)
{
	const uint32_t first = 0;
	int err;

	if (upkeep->phase != CGROUPS_AT_REST ||
	    kept - upkeep->kept_then < LOOK_AFTER)
		return;
	upkeep->kept_then = kept;
	upkeep->round.number++;
	err = bpf_map_update_elem(upkeep->round_fd, &first, &upkeep->round,
				  BPF_ANY);
	err = err ?: session_programs_begin_marks(programs);
	if (err)
		end_marking(upkeep, err, log);
	else
		upkeep->phase = CGROUPS_MARKING;
}

/* The next key is read before the removal, since it is found by the removed one. */
static void remove_some(struct cgroups_upkeep *upkeep)
{
	struct session_cgroup names;
	int err = 0;

	for (int i = 0; !err && i < REMOVE_AT_ONCE; i++) {
		const struct session_cgroup_key key = upkeep->next;

		err = bpf_map_get_next_key(upkeep->cgroups_fd, &key,
					   &upkeep->next);
		if (!bpf_map_lookup_elem(upkeep->cgroups_fd, &key, &names) &&
		    upkeep->round.number - names.round > 1)
			bpf_map_delete_elem(upkeep->cgroups_fd, &key);
	}
	if (err)
		upkeep->phase = CGROUPS_AT_REST;
}

bool cgroups_step(struct cgroups_upkeep *upkeep,
		  struct session_programs *programs, const struct log *log)
{
	int err;

	if (upkeep->phase == CGROUPS_MARKING) {
		err = session_programs_go_on_marking(programs);
		if (err == -EAGAIN)
			return false;
		end_marking(upkeep, err, log);
	} else if (upkeep->phase == CGROUPS_REMOVING) {
		remove_some(upkeep);
	}
	return upkeep->phase != CGROUPS_AT_REST;
}
