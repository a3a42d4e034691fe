// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "translations.h"

#include "base/clock.h"
#include "base/util.h"
#include "bpf/types.h"
#include "connect.skel.h"
#include "connect_traced.skel.h"
#include "engine/control_group.h"
#include "engine/map.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	KEPT_BYTES = NAT_RING_BYTES / 8, /* programs wake us at twice as many */
	/* In the ring, where all are equal: so each position is a multiple. */
	REPORT_BYTES = sizeof(struct nat_event) + BPF_RINGBUF_HDR_SZ,
};

_Static_assert(REPORT_BYTES % 8 == 0, "there is no gap between reports");

static size_t generation_size(const struct nat *nat)
{
	return (size_t)nat->n_cpus * nat->seen_buckets * sizeof(*nat->seen);
}

static size_t seen_size(const struct nat *nat)
{
	return GENERATIONS * generation_size(nat);
}

static size_t counters_size(const struct nat *nat)
{
	return nat->n_cpus * sizeof(*nat->counters);
}

_Static_assert(sizeof(long) == sizeof(uint64_t), "positions of a ring are long");

/* The pages in front of a ring, which libbpf maps, and shows from 1.3 on. */
static int map_positions(struct nat *nat)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *consumed = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED,
			      nat->ring_fd, 0);
	void *produced = MAP_FAILED;

	if (consumed != MAP_FAILED) {
		nat->consumed = consumed;
		produced = mmap(NULL, page, PROT_READ, MAP_SHARED, nat->ring_fd,
				(off_t)page);
	}
	if (produced == MAP_FAILED)
		return -errno;
	nat->produced = produced;
	nat->read = nat->kept = *nat->consumed;
	return 0;
}

static int open_nat_maps(struct nat *nat, const struct program_set *maps,
			 ring_buffer_sample_fn on_event, void *ctx)
{
	nat->seen = program_set_mmap(maps, "nat_seen", seen_size(nat));
	if (!nat->seen)
		return -errno;
	nat->counters =
		program_set_mmap(maps, "nat_counters", counters_size(nat));
	if (!nat->counters)
		return -errno;
	nat->ring_fd = program_set_map_fd(maps, "nat_events");
	log_borrow_libbpf(nat->log);
	nat->ring = ring_buffer__new(nat->ring_fd, on_event, ctx, NULL);
	log_return_libbpf();
	return nat->ring ? map_positions(nat) : -errno;
}

int nat_open(struct nat *nat, const struct program_set *maps, uint32_t n_cpus,
	     ring_buffer_sample_fn on_event, void *ctx, const struct log *log)
{
	int err;

	*nat = (struct nat){ .log = log,
			     .n_cpus = n_cpus,
			     .seen_buckets = nat_seen_buckets(n_cpus) };
	err = open_nat_maps(nat, maps, on_event, ctx);
	if (err) {
		log_error(log, "cannot make BPF maps for translations: %s",
			  strerror(-err));
		nat_close(nat);
		return err;
	}
	/* An earlier process has taken the reports in maps that it left. */
	for (uint32_t generation = 0; generation < GENERATIONS; generation++)
		nat_forget(nat, generation);
	nat->flips[0] = nat->flips[1] = nat->kept;
	return 0;
}

void nat_close(struct nat *nat)
{
	if (nat->seen)
		map_munmap(nat->seen, seen_size(nat));
	if (nat->counters)
		map_munmap(nat->counters, counters_size(nat));
	ring_buffer__free(nat->ring);
	if (nat->consumed)
		munmap(nat->consumed, (size_t)sysconf(_SC_PAGESIZE));
	if (nat->produced)
		munmap((void *)nat->produced, (size_t)sysconf(_SC_PAGESIZE));
	*nat = (struct nat){ 0 };
}

int nat_fd(const struct nat *nat)
{
	return nat->ring ? nat->ring_fd : -1;
}

static uint64_t count_from(const struct nat *nat, uint64_t position)
{
	return __atomic_load_n(nat->produced, __ATOMIC_SEQ_CST) - position;
}

/* Keep the kernel from overwriting the reports from @kept on; of too many, the last ones. */
static void spare_reports(struct nat *nat)
{
	const uint64_t n_bytes = count_from(nat, nat->kept);

	if (n_bytes > KEPT_BYTES)
		nat->kept += (n_bytes - KEPT_BYTES + REPORT_BYTES - 1) /
			     REPORT_BYTES * REPORT_BYTES;
	nat->kept = min_u64(nat->kept, nat->read);
	__atomic_store_n(nat->consumed, nat->kept, __ATOMIC_SEQ_CST);
	/* Programs may have written over them before that. */
	if (count_from(nat, nat->kept) > NAT_RING_BYTES / 2)
		__atomic_store_n(nat->consumed, nat->read, __ATOMIC_RELEASE);
}

void nat_read(struct nat *nat)
{
	if (!nat->ring)
		return;
	__atomic_store_n(nat->consumed, nat->read, __ATOMIC_RELEASE);
	ring_buffer__consume(nat->ring);
	nat->read = *nat->consumed;
	spare_reports(nat);
}

void nat_keep(struct nat *nat)
{
	if (!nat->ring)
		return;
	nat->kept = min_u64(nat->flips[0], nat->read);
	spare_reports(nat);
}

struct nat_counters nat_count(const struct nat *nat)
{
	struct nat_counters sum = { 0 };

	for (uint32_t cpu = 0; nat->counters && cpu < nat->n_cpus; cpu++) {
		const struct nat_counters *counters = &nat->counters[cpu];

		sum.reported +=
			__atomic_load_n(&counters->reported, __ATOMIC_RELAXED);
		sum.lost += __atomic_load_n(&counters->lost, __ATOMIC_RELAXED);
	}
	return sum;
}

/* Before the first report there are no notes, and clearing them takes the caches of other memory. */
void nat_forget(struct nat *nat, uint32_t generation)
{
	const size_t size = generation_size(nat);
	const struct nat_counters counters = nat_count(nat);

	nat->flips[0] = nat->flips[1];
	if (nat->produced)
		nat->flips[1] = __atomic_load_n(nat->produced, __ATOMIC_ACQUIRE);
	if (nat->seen && (counters.reported || counters.lost))
		memset((char *)nat->seen + generation * size, 0, size);
}

/* ---- Connects ------------------------------------------------------------------------ */

static const struct log silent;

/* Visiting all sockets for longer than SHORT_NS is followed by a rest of REST times as long. */
enum { SHORT_NS = 10 * NSEC_PER_MSEC, REST = 9 };

static const struct attach_point common[] = {
	{ .program = "netobs_con_end", .kind = ATTACH_SECTION },
	{ .program = "netobs_con_rel", .kind = ATTACH_CGROUP },
	{ .program = "netobs_con_tcp", .kind = ATTACH_CGROUP },
	{ .program = "netobs_con_t4", .kind = ATTACH_CGROUP },
	{ .program = "netobs_con_t6", .kind = ATTACH_CGROUP },
};

/* Some kernels refuse iterators over maps. */
static const struct attach_point lists[] = {
	{ .program = "netobs_con_ls",
	  .kind = ATTACH_ITERATOR,
	  .map = "connect_sockets" },
	{ .program = "netobs_con_lsf", .kind = ATTACH_ITERATOR },
};

static const struct attach_point first[] = {
	{ .program = "netobs_con_4", .kind = ATTACH_CGROUP_FIRST },
	{ .program = "netobs_con_6", .kind = ATTACH_CGROUP_FIRST },
	{ .program = "netobs_con_s4", .kind = ATTACH_CGROUP_FIRST },
	{ .program = "netobs_con_s6", .kind = ATTACH_CGROUP_FIRST },
};

/* COMPAT(<6.17): links to control groups have no such flag. */
static const struct attach_point traced[] = {
	{ .program = "netobs_con_ft4", .kind = ATTACH_SECTION },
	{ .program = "netobs_con_ft6", .kind = ATTACH_SECTION },
	{ .program = "netobs_con_fu4", .kind = ATTACH_SECTION },
	{ .program = "netobs_con_fu6", .kind = ATTACH_SECTION },
	{ .program = "netobs_con_fs4", .kind = ATTACH_SECTION },
	{ .program = "netobs_con_fs6", .kind = ATTACH_SECTION },
	{ .program = "netobs_con_c4", .kind = ATTACH_CGROUP },
	{ .program = "netobs_con_c6", .kind = ATTACH_CGROUP },
};

static void add_points(struct connects *connects,
		       const struct attach_point *points, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct attach_point *point =
			&connects->points[connects->set.n_points++];

		*point = points[i];
		point->cgroup_fd = connects->cgroup_fd;
	}
}

static int open_connect_maps(struct connects *connects,
			     ring_buffer_sample_fn on_event, void *ctx)
{
	connects->counters = program_set_mmap(&connects->set, "connect_counters",
					      sizeof(*connects->counters));
	if (!connects->counters)
		return -errno;
	connects->ring_fd = program_set_map_fd(&connects->set, "connect_events");
	connects->ring = ring_buffer__new(connects->ring_fd, on_event, ctx, NULL);
	return connects->ring ? 0 : -errno;
}

static int load_connects(struct connects *connects, bool by_files, bool is_traced)
{
	connects->is_traced = is_traced;
	connects->by_files = by_files;
	connects->set.elf = is_traced ? connect_traced_bpf__elf_bytes :
					connect_bpf__elf_bytes;
	connects->set.n_points = 0;
	add_points(connects, common, ARRAY_SIZE(common));
	add_points(connects, &lists[by_files], 1);
	if (is_traced)
		add_points(connects, traced, ARRAY_SIZE(traced));
	else
		add_points(connects, first, ARRAY_SIZE(first));
	return program_set_ref(&connects->set);
}

static int open_programs(struct connects *connects,
			 ring_buffer_sample_fn on_event, void *ctx)
{
	int err;

	if (connects->cgroup_fd < 0)
		return connects->cgroup_fd;
	err = load_connects(connects, false, false);
	err = err ? load_connects(connects, false, true) : 0;
	err = err ? load_connects(connects, true, false) : 0;
	err = err ? load_connects(connects, true, true) : 0;
	log_borrow_libbpf(&silent);
	err = err ?: open_connect_maps(connects, on_event, ctx);
	log_return_libbpf();
	return err;
}

int connects_open(struct connects *connects, ring_buffer_sample_fn on_event,
		  void *ctx)
{
	int err;

	*connects = (struct connects){
		.set = { .name = "connect_bpf",
			 .doing = "load BPF programs for sockets that connect",
			 .log = &silent,
			 .points_only = true,
			 .points = connects->points },
		.cgroup_fd = cgroup_root_open(),
	};
	err = open_programs(connects, on_event, ctx);
	if (err)
		connects_close(connects);
	return err;
}

void connects_close(struct connects *connects)
{
	if (!connects->set.name)
		return;
	ring_buffer__free(connects->ring);
	if (connects->counters)
		map_munmap(connects->counters, sizeof(*connects->counters));
	program_set_unref(&connects->set);
	close_fd(&connects->cgroup_fd);
	*connects = (struct connects){ 0 };
}

int connects_fd(const struct connects *connects)
{
	return connects->ring ? connects->ring_fd : -1;
}

void connects_read(const struct connects *connects)
{
	if (connects->ring)
		ring_buffer__consume(connects->ring);
}

/* Run the iterator, whose program reports to the ring and writes no output. */
static void visit_sockets(const struct connects *connects)
{
	cleanup_fd int fd = program_set_open_iterator(
		&connects->set, lists[connects->by_files].program);
	char none[64];
	ssize_t n;

	if (fd < 0)
		return;
	do {
		n = read(fd, none, sizeof(none));
	} while (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)));
}

static void list_new(struct connects *connects)
{
	const uint64_t n =
		__atomic_load_n(&connects->counters->udp, __ATOMIC_RELAXED);
	const int64_t began_ns = clock_boot_ns();
	int64_t took_ns;

	if ((n == connects->n_listed && !connects->is_new) ||
	    began_ns < connects->rests_until_ns)
		return;
	visit_sockets(connects);
	took_ns = clock_boot_ns() - began_ns;
	if (took_ns > SHORT_NS)
		connects->rests_until_ns = began_ns + (1 + REST) * took_ns;
	connects->is_new = n != connects->n_listed;
	connects->n_listed = n;
}

void connects_list(struct connects *connects)
{
	if (!connects->ring)
		return;
	list_new(connects);
	connects_read(connects);
}

uint64_t connects_lost(const struct connects *connects)
{
	return connects->ring ? __atomic_load_n(&connects->counters->lost,
						__ATOMIC_RELAXED) :
				0;
}

uint64_t connects_missed(const struct connects *connects)
{
	return connects->ring ? __atomic_load_n(&connects->counters->missed,
						__ATOMIC_RELAXED) :
				0;
}

static uint64_t sum_skipped(const struct connects *connects,
			    const char *const names[], size_t n)
{
	uint64_t skipped = 0;

	for (size_t i = 0; connects->is_traced && i < n; i++)
		skipped += program_misses(bpf_object__find_program_by_name(
			connects->set.object, names[i]));
	return skipped;
}

uint64_t connects_skipped(const struct connects *connects)
{
	static const char *const names[] = { "netobs_con_ft4", "netobs_con_ft6" };

	return sum_skipped(connects, names, ARRAY_SIZE(names));
}

uint64_t connects_skipped_udp(const struct connects *connects)
{
	static const char *const names[] = { "netobs_con_fu4", "netobs_con_fu6",
					     "netobs_con_fs4", "netobs_con_fs6" };

	return sum_skipped(connects, names, ARRAY_SIZE(names));
}
