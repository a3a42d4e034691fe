// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "map.h"

#include "bpf/types.h"
#include "base/worker.h"
#include "base/util.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>

/* Shared with the thread; whichever of the two is done last frees it. */
struct map_grace {
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

int map_update(int outer_fd, uint32_t index, int inner_fd)
{
	return bpf_map_update_elem(outer_fd, &index, &inner_fd, BPF_ANY);
}

/* Its descriptors are its own. */
struct update {
	int outer_fd;
	int inner_fd;
	uint32_t index;
};

static void free_update(struct update *update)
{
	close_fd(&update->outer_fd);
	close_fd(&update->inner_fd);
	free(update);
}

static void *run_update(void *arg)
{
	struct update *update = arg;

	map_update(update->outer_fd, update->index, update->inner_fd);
	free_update(update);
	return NULL;
}

int map_update_begin(int outer_fd, uint32_t index, int inner_fd)
{
	struct update *update = calloc(1, sizeof(*update));
	int err;

	if (!update)
		return -ENOMEM;
	*update = (struct update){
		.outer_fd = fcntl(outer_fd, F_DUPFD_CLOEXEC, 0),
		.inner_fd = fcntl(inner_fd, F_DUPFD_CLOEXEC, 0),
		.index = index,
	};
	err = update->outer_fd < 0 || update->inner_fd < 0 ?
		      -errno :
		      detached_run(run_update, update, true);
	if (err)
		free_update(update);
	return err;
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

static void *run_grace(void *arg)
{
	struct map_grace *grace = arg;

	grace->result = wait_for_grace();
	if (__atomic_exchange_n(&grace->state, GRACE_ENDED, __ATOMIC_ACQ_REL) ==
	    GRACE_ABANDONED)
		free(grace);
	return NULL;
}

int map_grace_begin(struct map_grace **ret_grace)
{
	struct map_grace *grace = calloc(1, sizeof(*grace));
	int err = grace ? detached_run(run_grace, grace, true) : -ENOMEM;

	if (err)
		free(grace);
	else
		*ret_grace = grace;
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
