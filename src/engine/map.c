// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "map.h"

#include "bpf/types.h"
#include "base/detached.h"
#include "base/util.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>

enum {
	/* Buckets, 2 MiB: half a millisecond to make, 8 where pages are cold. */
	LARGE_TABLE = 1024
};

/* Shared with the thread; whichever of the two is done last frees it. */
struct map_call {
	int (*run)(const struct map_call *call);
	bool returns_fd;
	uint32_t n_buckets;
	int outer_fd; /* these two are copies; or -1 */
	int inner_fd;
	uint32_t index;
	int result;
	enum { CALL_RUNNING, CALL_RETURNED, CALL_ABANDONED } state;
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

void map_munmap(void *bytes, size_t size)
{
	struct map_span span =
		map_span((uintptr_t)bytes, size, sysconf(_SC_PAGESIZE));

	munmap((char *)bytes - span.inner, span.size);
}

static void call_free(struct map_call *call)
{
	if (call->returns_fd)
		close_fd(&call->result);
	close_fd(&call->outer_fd);
	close_fd(&call->inner_fd);
	free(call);
}

static void *call_run(void *arg)
{
	struct map_call *call = arg;

	call->result = call->run(call);
	if (__atomic_exchange_n(&call->state, CALL_RETURNED, __ATOMIC_ACQ_REL) ==
	    CALL_ABANDONED)
		call_free(call);
	return NULL;
}

static struct map_call *call_new(int (*run)(const struct map_call *call))
{
	struct map_call *call = malloc(sizeof(*call));

	if (call)
		*call = (struct map_call){
			.run = run,
			.outer_fd = -1,
			.inner_fd = -1,
			.result = -1,
		};
	return call;
}

int map_call_result(struct map_call **call)
{
	int result;

	if (__atomic_load_n(&(*call)->state, __ATOMIC_ACQUIRE) != CALL_RETURNED)
		return -EAGAIN;
	result = TAKE_FD((*call)->result);
	call_free(TAKE_PTR(*call));
	return result;
}

void map_call_abandon(struct map_call *call)
{
	if (call && __atomic_exchange_n(&call->state, CALL_ABANDONED,
					__ATOMIC_ACQ_REL) == CALL_RETURNED)
		call_free(call);
}

int map_make_table(uint32_t n_buckets)
{
	return map_make_array("netobs_l2", sizeof(struct flow_bucket),
			      n_buckets, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
}

static int run_make_table(const struct map_call *call)
{
	return map_make_table(call->n_buckets);
}

int map_make_table_async(uint32_t n_buckets, struct map_call **ret_call)
{
	struct map_call *call = call_new(run_make_table);

	if (!call)
		return -ENOMEM;
	call->n_buckets = n_buckets;
	call->returns_fd = true;
	if (n_buckets < LARGE_TABLE || detached_run(call_run, call, false))
		call_run(call); /* the caller waits */
	*ret_call = call;
	return 0;
}

int map_update(int outer_fd, uint32_t index, int inner_fd)
{
	if (inner_fd < 0)
		return bpf_map_delete_elem(outer_fd, &index);
	return bpf_map_update_elem(outer_fd, &index, &inner_fd, BPF_ANY);
}

static int run_update(const struct map_call *call)
{
	return map_update(call->outer_fd, call->index, call->inner_fd);
}

static struct map_call *new_update(int outer_fd, uint32_t index, int inner_fd)
{
	struct map_call *call = call_new(run_update);

	if (!call)
		return NULL;
	call->index = index;
	call->outer_fd = fcntl(outer_fd, F_DUPFD_CLOEXEC, 0);
	if (inner_fd >= 0)
		call->inner_fd = fcntl(inner_fd, F_DUPFD_CLOEXEC, 0);
	if (call->outer_fd >= 0 && (inner_fd < 0 || call->inner_fd >= 0))
		return call;
	call_free(call);
	return NULL;
}

int map_update_async(int outer_fd, uint32_t index, int inner_fd)
{
	struct map_call *call = new_update(outer_fd, index, inner_fd);

	/*
	 * Urgent: when all CPUs are flooded a thread of the usual kind would have to
	 * wait for its turn, and the flows for their room.
	 */
	if (call && !detached_run(call_run, call, true)) {
		map_call_abandon(call);
		return 0;
	}
	if (call)
		call_free(call);
	return map_update(outer_fd, index, inner_fd); /* the caller waits */
}

/* The kernel waits for a grace period when a map of maps changes. */
static int run_grace(const struct map_call *call)
{
	cleanup_fd int inner = map_make_array(NULL, sizeof(uint32_t), 1, 0);
	cleanup_fd int outer = -1;

	(void)call;
	if (inner < 0)
		return inner;
	outer = map_make_outer(inner, 1);
	return outer < 0 ? outer : map_update(outer, 0, inner);
}

int map_grace_async(struct map_call **ret_call)
{
	struct map_call *call = call_new(run_grace);
	int err = call ? detached_run(call_run, call, true) : -ENOMEM;

	if (err)
		free(call);
	else
		*ret_call = call;
	return err;
}
