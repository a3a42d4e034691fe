// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "map.h"

#include "bpf/types.h"
#include "base/worker.h"
#include "base/util.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Shared with the thread; whichever of the two is done last frees it. */
struct map_grace {
	int outer_fd; /* descriptors of the thread; -1: it makes maps itself */
	int inner_fd;
	uint32_t index;
	int result;
	enum { GRACE_RUNNING, GRACE_ENDED, GRACE_ABANDONED } state;
};

int map_make_array(const char *name, uint32_t value_size, uint32_t n,
		   uint32_t flags)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = flags);

	return bpf_map_create(BPF_MAP_TYPE_ARRAY, name, sizeof(uint32_t),
			      value_size, n, &opts);
}

int map_make_outer(int inner_fd, uint32_t n)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .inner_map_fd = inner_fd);

	return bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, NULL,
			      sizeof(uint32_t), sizeof(uint32_t), n, &opts);
}

void *map_mmap(int fd, uint64_t offset, size_t size)
{
	struct map_span span = map_span(offset, size, sysconf(_SC_PAGESIZE));
	char *pages = mmap(NULL, span.size, PROT_READ | PROT_WRITE, MAP_SHARED,
			   fd, (off_t)span.offset);

	return pages == MAP_FAILED ? NULL : pages + span.inner;
}

void map_munmap(const void *bytes, size_t size)
{
	struct map_span span =
		map_span((uintptr_t)bytes, size, sysconf(_SC_PAGESIZE));

	if (bytes)
		munmap((char *)bytes - span.inner, span.size);
}

void map_sum_cpus(int fd, void *ret_sums, size_t size)
{
	const int n_cpus = libbpf_num_possible_cpus();
	cleanup_free char *counters = n_cpus < 0 ? NULL :
						   calloc((size_t)n_cpus, size);

	memset(ret_sums, 0, size);
	if (!counters || bpf_map_lookup_elem(fd, &(uint32_t){ 0 }, counters))
		return;
	for (int cpu = 0; cpu < n_cpus; cpu++)
		counters_add(ret_sums, counters + (size_t)cpu * size, size);
}

int map_update(int outer_fd, uint32_t index, int inner_fd)
{
	return bpf_map_update_elem(outer_fd, &index, &inner_fd, BPF_ANY);
}

bool map_has(int outer_fd, uint32_t index)
{
	uint32_t id;

	return !bpf_map_lookup_elem(outer_fd, &index, &id);
}

/* The kernel waits for a grace period when a map of maps changes. */
static int wait_for_grace(void)
{
	cleanup_fd int inner = map_make_array(NULL, sizeof(uint32_t), 1, 0);
	cleanup_fd int outer = -1;

	if (inner < 0)
		return inner;
	outer = map_make_outer(inner, 1);
	return outer < 0 ? outer : map_update(outer, 0, inner);
}

static void close_maps(struct map_grace *grace)
{
	close_fd(&grace->outer_fd);
	close_fd(&grace->inner_fd);
}

static void *run_grace(void *arg)
{
	struct map_grace *grace = arg;

	grace->result = grace->outer_fd < 0 ?
				wait_for_grace() :
				map_update(grace->outer_fd, grace->index,
					   grace->inner_fd);
	close_maps(grace);
	if (__atomic_exchange_n(&grace->state, GRACE_ENDED, __ATOMIC_ACQ_REL) ==
	    GRACE_ABANDONED)
		free(grace);
	return NULL;
}

/* @init is copied. */
static int begin_grace(const struct map_grace *init, struct map_grace **ret_grace)
{
	struct map_grace *grace = malloc(sizeof(*grace));
	int err;

	if (!grace)
		return -ENOMEM;
	*grace = *init;
	err = detached_run(run_grace, grace, true);
	if (err)
		free(grace);
	else
		*ret_grace = grace;
	return err;
}

int map_grace_begin(struct map_grace **ret_grace)
{
	const struct map_grace grace = { .outer_fd = -1, .inner_fd = -1 };

	return begin_grace(&grace, ret_grace);
}

int map_update_begin(int outer_fd, uint32_t index, int inner_fd,
		     struct map_grace **ret_grace)
{
	struct map_grace grace = {
		.outer_fd = fcntl(outer_fd, F_DUPFD_CLOEXEC, 0),
		.inner_fd = fcntl(inner_fd, F_DUPFD_CLOEXEC, 0),
		.index = index,
	};
	int err = grace.outer_fd < 0 || grace.inner_fd < 0 ?
			  -errno :
			  begin_grace(&grace, ret_grace);

	if (err)
		close_maps(&grace);
	return err;
}

int map_grace_result(struct map_grace **grace)
{
	int result;

	if (__atomic_load_n(&(*grace)->state, __ATOMIC_ACQUIRE) != GRACE_ENDED)
		return -EAGAIN;
	result = (*grace)->result;
	free(TAKE_PTR(*grace));
	return result;
}

void map_grace_abandon(struct map_grace *grace)
{
	if (grace && __atomic_exchange_n(&grace->state, GRACE_ABANDONED,
					 __ATOMIC_ACQ_REL) == GRACE_ENDED)
		free(grace);
}

int map_make_overflow(uint32_t n)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_NO_PREALLOC);

	return bpf_map_create(BPF_MAP_TYPE_HASH, "netobs_overflow",
			      sizeof(struct overflow_key),
			      sizeof(struct overflow_page), n, &opts);
}
