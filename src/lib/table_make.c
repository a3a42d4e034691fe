// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "table_make.h"

#include "bpf/types.h"
#include "detached.h"
#include "util.h"

#include <bpf/bpf.h>
#include <poll.h>
#include <sys/eventfd.h>

enum {
	LARGE = 4096, /* buckets, 8.5 MiB: 2 ms, and far more where pages are cold */
	WAIT_MS = 1,
};

struct making {
	uint32_t n_buckets;
	int fd;
	int done_fd;
};

static int make(uint32_t n_buckets)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts,
		    .map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP);

	return bpf_map_create(BPF_MAP_TYPE_ARRAY, "netobs_l2", sizeof(uint32_t),
			      sizeof(struct flow_bucket), n_buckets, &opts);
}

static void *run(void *arg)
{
	struct making *making = arg;

	making->fd = make(making->n_buckets);
	eventfd_write(making->done_fd, 1);
	return NULL;
}

static void wait_for(const struct making *making, void (*meanwhile)(void *ctx),
		     void *ctx)
{
	struct pollfd fd = { .fd = making->done_fd, .events = POLLIN };

	while (poll(&fd, 1, WAIT_MS) <= 0)
		meanwhile(ctx);
}

int table_make(uint32_t n_buckets, void (*meanwhile)(void *ctx), void *ctx)
{
	cleanup_fd int done_fd = -1;
	struct making making = { .n_buckets = n_buckets, .fd = -1 };

	if (!meanwhile || n_buckets < LARGE)
		return make(n_buckets);
	done_fd = eventfd(0, EFD_CLOEXEC);
	making.done_fd = done_fd;
	if (done_fd < 0 || detached_run(run, &making, false))
		return make(n_buckets); /* the caller waits */
	wait_for(&making, meanwhile, ctx);
	return making.fd;
}
