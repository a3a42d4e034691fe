// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "table_make.h"

#include "bpf/types.h"
#include "base/detached.h"
#include "base/util.h"

#include <bpf/bpf.h>
#include <errno.h>

enum {
	LARGE = 1024
}; /* buckets, 2 MiB: half a millisecond, 8 where pages are cold */

/* Shared with the thread; the later one of the two frees it. */
struct table_making {
	uint32_t n_buckets;
	int fd; /* or -errno */
	enum { MAKING, MADE, ABANDONED } state;
};

int table_make(uint32_t n_buckets)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts,
		    .map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP);

	return bpf_map_create(BPF_MAP_TYPE_ARRAY, "netobs_l2", sizeof(uint32_t),
			      sizeof(struct flow_bucket), n_buckets, &opts);
}

static void free_making(struct table_making *making)
{
	close_fd(&making->fd);
	free(making);
}

static void *run(void *arg)
{
	struct table_making *making = arg;

	making->fd = table_make(making->n_buckets);
	if (__atomic_exchange_n(&making->state, MADE, __ATOMIC_ACQ_REL) ==
	    ABANDONED)
		free_making(making);
	return NULL;
}

int table_make_begin(uint32_t n_buckets, struct table_making **ret_making)
{
	struct table_making *making = malloc(sizeof(*making));

	if (!making)
		return -ENOMEM;
	*making = (struct table_making){ .n_buckets = n_buckets, .fd = -1 };
	*ret_making = making;
	if (n_buckets >= LARGE && !detached_run(run, making, false))
		return 0;
	making->fd = table_make(n_buckets); /* the caller waits */
	making->state = MADE;
	return 0;
}

int table_make_result(struct table_making **making)
{
	int fd;

	if (__atomic_load_n(&(*making)->state, __ATOMIC_ACQUIRE) != MADE)
		return -EAGAIN;
	fd = TAKE_FD((*making)->fd);
	free_making(TAKE_PTR(*making));
	return fd;
}

void table_make_abandon(struct table_making *making)
{
	if (making && __atomic_exchange_n(&making->state, ABANDONED,
					  __ATOMIC_ACQ_REL) == MADE)
		free_making(making);
}
