// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "translations.h"

#include "base/util.h"
#include "bpf/types.h"
#include "engine/map.h"
#include "engine/program_set.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

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
	return nat->ring ? 0 : -errno;
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
	return 0;
}

void nat_close(struct nat *nat)
{
	if (nat->seen)
		map_munmap(nat->seen, seen_size(nat));
	if (nat->counters)
		map_munmap(nat->counters, counters_size(nat));
	ring_buffer__free(nat->ring);
	*nat = (struct nat){ 0 };
}

int nat_fd(const struct nat *nat)
{
	return nat->ring ? nat->ring_fd : -1;
}

void nat_read(const struct nat *nat)
{
	if (nat->ring)
		ring_buffer__consume(nat->ring);
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
void nat_forget(const struct nat *nat, uint32_t generation)
{
	const size_t size = generation_size(nat);
	const struct nat_counters counters = nat_count(nat);

	if (nat->seen && (counters.reported || counters.lost))
		memset((char *)nat->seen + generation * size, 0, size);
}
