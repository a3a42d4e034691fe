// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "translations.h"

#include "base/util.h"
#include "bpf/types.h"
#include "engine/map.h"
#include "engine/program_set.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	KEPT_BYTES = NAT_RING_BYTES / 8
}; /* programs wake us at twice as many */

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

static bool are_few(const struct nat *nat)
{
	return __atomic_load_n(nat->produced, __ATOMIC_SEQ_CST) - nat->kept <=
	       KEPT_BYTES;
}

/* Keep the kernel from overwriting the reports from @kept on, unless they are too many. */
static void spare_reports(const struct nat *nat)
{
	if (are_few(nat))
		__atomic_store_n(nat->consumed, nat->kept, __ATOMIC_SEQ_CST);
	/* Programs may have written over them before that. */
	if (!are_few(nat))
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
