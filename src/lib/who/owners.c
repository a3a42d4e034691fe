// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "owners.h"

#include "base/clock.h"
#include "base/util.h"
#include "containers.h"
#include "engine/map.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <netobs/probe.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

enum {
	RING_BYTES = 4 << 20,
	SLICE_MS = 1,
	LIST_WAIT_MS = 1, /* for a thread that reads the list */
};

/*
 * @return the programs' time stamp for now: clock_boot_ns() without the time namespace's offset
 */
static int64_t stamp_ns(void)
{
	struct clock clock;

	clock_init(&clock, CLOCK_HOST);
	return clock_to_stamp(&clock, clock_boot_ns());
}

static bool is_slice_over(const struct owners *owners)
{
	return clock_boot_ns() >= owners->slice_end_ns;
}

static void begin_slice(struct owners *owners)
{
	owners->slice_end_ns = clock_boot_ns() + SLICE_MS * NSEC_PER_MSEC;
}

/* ---- Start and end ----------------------------------------------------------------------- */

static int take_owner_event(void *ctx, void *data, size_t size)
{
	struct owners *owners = ctx;

	if (size >= SESSION_OWNED_SIZE)
		owner_table_note(&owners->table, data);
	return is_slice_over(owners) ? -EAGAIN : 0;
}

static int open_owner_maps(struct owners *owners)
{
	const struct program_set *set = &owners->programs.sockets;

	owners->counts_fd = program_set_map_fd(set, "session_counts");
	owners->names_fd = program_set_map_fd(set, "session_names");
	owners->upkeep.cgroups_fd = program_set_map_fd(set, "session_cgroups");
	owners->upkeep.round_fd = program_set_map_fd(set, "session_round");
	if (owners->counts_fd < 0 || owners->names_fd < 0 ||
	    owners->upkeep.cgroups_fd < 0)
		return -ENOENT;
	return session_programs_read(&owners->programs, take_owner_event,
				     owners, &owners->ring);
}

static void note_absent(const struct owners *owners)
{
	const struct session_programs *programs = &owners->programs;

	if (programs->io_error)
		log_info(owners->log,
			 "processes of UDP sockets that are made from now on are not known (session_io): %s",
			 strerror(-programs->io_error));
	if (programs->accept_error)
		log_info(owners->log,
			 "the process that accepts a connection is not known until it sends, receives or closes (no session_accept): %s",
			 strerror(-programs->accept_error));
}

int owners_open(struct owners *owners, uint64_t disabled, uint32_t max,
		owner_visit_fn *visit, void *visitor, const struct log *log)
{
	const struct session_knobs knobs = {
		.ring_bytes = RING_BYTES,
		.no_lists = disabled >> NETOBS_FEATURE_SOCKET_LISTS & 1,
		.no_io = disabled >> NETOBS_FEATURE_SESSION_IO & 1,
		.no_accept = disabled >> NETOBS_FEATURE_SESSION_ACCEPT & 1,
		.wants_owners = true,
	};
	int err;

	*owners =
		(struct owners){ .log = log, .visit = visit, .visitor = visitor };
	err = owner_table_init(&owners->table, max);
	err = err ?: session_programs_open(&owners->programs, &knobs, log);
	owners->table.since_ns = stamp_ns();
	err = err ?: open_owner_maps(owners);
	if (err) {
		owners_close(owners);
		return err;
	}
	err = session_programs_find_holders(&owners->programs);
	if (err)
		log_warning(log, "processes of earlier sockets are not known: %s",
			    strerror(-err));
	note_absent(owners);
	return 0;
}

void owners_close(struct owners *owners)
{
	if (!owners->log)
		return;
	ring_buffer__free(owners->ring);
	session_programs_close(&owners->programs);
	owner_table_done(&owners->table);
	*owners = (struct owners){ 0 };
}

int owners_fd(const struct owners *owners)
{
	return ring_buffer__epoll_fd(owners->ring);
}

/* ---- Sockets ------------------------------------------------------------------------------ */

static bool read_ring(struct owners *owners)
{
	return ring_buffer__consume(owners->ring) == -EAGAIN;
}

bool owners_read(struct owners *owners)
{
	begin_slice(owners);
	return read_ring(owners);
}

static void end_list(struct owners *owners, int err)
{
	if (err)
		log_warning(owners->log, "cannot list sockets: %s",
			    strerror(-err));
	owners->is_listed = !err;
	owners->phase = OWNERS_READING;
}

/* The iterator reports live sockets through the ring buffer, too. */
static void read_list(struct owners *owners, uint32_t *ret_wait_ms)
{
	int err;

	if (read_ring(owners))
		return;
	err = session_programs_go_on_listing(&owners->programs);
	if (err == -EAGAIN)
		*ret_wait_ms = LIST_WAIT_MS;
	else
		end_list(owners, err);
}

static void note_lost(struct owners *owners, const struct session_counts *counts)
{
	const uint64_t lost =
		counts->lost + counts->owners_lost + owners->table.refused;

	if (lost == owners->lost)
		return;
	log_warning(owners->log,
		    "the processes of %llu sockets are not known: there are too many",
		    (unsigned long long)(lost - owners->lost));
	owners->lost = lost;
}

void owners_begin(struct owners *owners, int64_t keep_ns)
{
	int err;

	if (owners->phase != OWNERS_AT_REST)
		return;
	owners->keep_ns = keep_ns;
	owner_table_begin_round(&owners->table, stamp_ns());
	err = session_programs_begin_list(&owners->programs);
	if (err)
		end_list(owners, err);
	else
		owners->phase = OWNERS_LISTING;
}

void owners_glance(struct owners *owners, int64_t budget_ns)
{
	if (owners->phase != OWNERS_AT_REST)
		return;
	owners->slice_end_ns = clock_boot_ns() + budget_ns;
	if (read_ring(owners) || session_programs_begin_list(&owners->programs))
		return;
	while (!read_ring(owners) && clock_boot_ns() < owners->slice_end_ns &&
	       session_programs_list_more(&owners->programs) == -EAGAIN)
		;
	session_programs_end_list(&owners->programs);
}

static void end_sweep(struct owners *owners)
{
	struct session_counts counts;

	map_sum_cpus(owners->counts_fd, &counts, sizeof(counts));
	note_lost(owners, &counts);
	cgroups_look_after(&owners->upkeep, &owners->programs, counts.cgroups,
			   owners->log);
	owners->phase = OWNERS_TIDYING;
}

bool owners_step(struct owners *owners, uint32_t *ret_wait_ms)
{
	const int64_t now_ns = stamp_ns();

	begin_slice(owners);
	switch (owners->phase) {
	case OWNERS_AT_REST:
		return false;
	case OWNERS_LISTING:
		read_list(owners, ret_wait_ms);
		return true;
	case OWNERS_READING:
		if (read_ring(owners))
			return true;
		owners->cursor = owners->is_listed ? 0 : owners->table.n_buckets;
		owners->phase = OWNERS_SWEEPING;
		return true;
	case OWNERS_SWEEPING:
		if (owner_table_sweep(&owners->table, &owners->cursor, now_ns,
				      now_ns - owners->keep_ns, owners->visit,
				      owners->visitor))
			return true;
		end_sweep(owners);
		return true;
	case OWNERS_TIDYING:
		if (cgroups_step(&owners->upkeep, &owners->programs, owners->log))
			return true;
		owners->phase = OWNERS_AT_REST;
		return false;
	}
	return false;
}

/* ---- Processes ---------------------------------------------------------------------------- */

/* A small cache suffices: most flows belong to a few control groups. */
static const struct cgroup_info *info_of(struct owners *owners,
					 const struct session_cgroup_key *key)
{
	typeof(&owners->cache[0]) cached =
		&owners->cache[(key->id ^ key->hierarchy) % OWNERS_CACHED];

	if (!cached->is_known || memcmp(&cached->key, key, sizeof(*key))) {
		cached->key = *key;
		cached->is_known = cgroups_find(owners->upkeep.cgroups_fd, key,
						&cached->info);
	}
	return cached->is_known ? &cached->info : NULL;
}

void owners_describe(struct owners *owners, const struct session_owner *owner,
		     struct netobs_process *ret_process)
{
	const struct cgroup_info *info = info_of(owners, &owner->cgroup);

	*ret_process = (struct netobs_process){
		.sz = sizeof(*ret_process),
		.pid = owner->pid_tgid >> 32,
		.uid = owner->uid,
		.cgroup_id = owner->cgroup_id,
	};
	memcpy(ret_process->command, owner->comm,
	       sizeof(ret_process->command) - 1);
	if (strncmp(owner->thread, owner->comm, sizeof(owner->comm)) != 0)
		memcpy(ret_process->thread, owner->thread,
		       sizeof(ret_process->thread) - 1);
	process_name_find(owners->names_fd, owner, ret_process->long_name);
	if (!info)
		return;
	memcpy(ret_process->cgroup_path, info->path,
	       sizeof(ret_process->cgroup_path));
	memcpy(ret_process->container_id, info->names.container_id,
	       sizeof(ret_process->container_id));
	memcpy(ret_process->pod_uid, info->names.pod_uid,
	       sizeof(ret_process->pod_uid));
	memcpy(ret_process->unit, info->names.unit, sizeof(ret_process->unit));
	memcpy(ret_process->slice, info->names.slice, sizeof(ret_process->slice));
	memcpy(ret_process->machine, info->names.machine,
	       sizeof(ret_process->machine));
	container_names_fill(owners->names, &info->names,
			     CONTAINER_TEXTS(ret_process));
}

/* ---- Names of processes -------------------------------------------------------------- */

enum { KEPT = SESSION_COMM_LEN - 1 };

static bool is_begun(const char *name, size_t len, const char *comm)
{
	return len >= KEPT && !memcmp(name, comm, KEPT);
}

static void copy_longer(const char *name, size_t len, char *ret_name)
{
	if (len <= KEPT || len >= PROCESS_NAME_SIZE)
		return;
	memcpy(ret_name, name, len);
	ret_name[len] = '\0';
}

/* execve(2) names a process by the last part of its path. */
static const char *last_part(const char *path, size_t len)
{
	const char *slash = memrchr(path, '/', len);

	return slash ? slash + 1 : path;
}

/* The first argument that begins so names the process, also if it is not longer. */
static void search_arguments(const struct session_name *name, size_t n,
			     const char *comm, char *ret_name)
{
	const char *at = name->arguments, *end = at + n, *nul;

	for (; (nul = memchr(at, '\0', (size_t)(end - at))); at = nul + 1) {
		const char *part = last_part(at, (size_t)(nul - at));

		if (is_begun(part, (size_t)(nul - part), comm)) {
			copy_longer(part, (size_t)(nul - part), ret_name);
			return;
		}
	}
}

void process_name_of(const struct session_name *name,
		     const char comm[SESSION_COMM_LEN],
		     char ret_name[PROCESS_NAME_SIZE])
{
	const size_t len = strnlen(name->file, sizeof(name->file));

	ret_name[0] = '\0';
	if (strnlen(comm, SESSION_COMM_LEN) < KEPT)
		return;
	if (is_begun(name->file, len, comm))
		copy_longer(name->file, len, ret_name);
	else if (name->n <= sizeof(name->arguments))
		search_arguments(name, name->n, comm, ret_name);
}

void process_name_find(int names_fd, const struct session_owner *owner,
		       char ret_name[PROCESS_NAME_SIZE])
{
	struct session_name_key key = {
		.exec = owner->exec,
		.tgid = owner->pid_tgid >> 32,
	};
	struct session_name name;

	ret_name[0] = '\0';
	memcpy(key.comm, owner->comm, sizeof(key.comm));
	if (owner->comm[KEPT - 1] && !bpf_map_lookup_elem(names_fd, &key, &name))
		process_name_of(&name, owner->comm, ret_name);
}
