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

/* Shared with the thread; whichever of the two is done last frees it. */
struct map_call {
	int (*run)(const struct map_call *call);
	bool returns_fd;
	int outer_fd; /* a copy; or -1 */
	uint32_t index;
	uint32_t room;
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

int map_update(int outer_fd, uint32_t index, int inner_fd)
{
	return bpf_map_update_elem(outer_fd, &index, &inner_fd, BPF_ANY);
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

int map_make_overflow(uint32_t room)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_NO_PREALLOC);

	return bpf_map_create(BPF_MAP_TYPE_HASH, "netobs_overflow",
			      sizeof(struct overflow_key),
			      sizeof(struct overflow_value), room, &opts);
}

static int run_replace(const struct map_call *call)
{
	cleanup_fd int fd = map_make_overflow(call->room);
	int err = fd < 0 ? fd : map_update(call->outer_fd, call->index, fd);

	return err ?: TAKE_FD(fd);
}

int map_replace_overflow_async(int outer_fd, uint32_t index, uint32_t room,
			       struct map_call **ret_call)
{
	struct map_call *call = call_new(run_replace);
	int err;

	if (!call)
		return -ENOMEM;
	call->returns_fd = true;
	call->index = index;
	call->room = room;
	call->outer_fd = fcntl(outer_fd, F_DUPFD_CLOEXEC, 0);
	err = call->outer_fd < 0 ? -errno : detached_run(call_run, call, false);
	if (err)
		call_free(call);
	else
		*ret_call = call;
	return err;
}
