// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The program that sees packets leave queues of this host: src/bpf/leaving.bpf.c. */
#include "store.h"

#include "base/util.h"
#include "leaving.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <netobs/probe.h>
#include <string.h>

static const struct attach_point points[] = { { .program = "netobs_leave" } };

static int prepare_leaving(struct bpf_object *object, void *ctx)
{
	struct leaving_bpf__rodata *rodata =
		program_set_knobs(object, sizeof(*rodata));
	const struct store *store = ctx;

	if (!rodata)
		return -ENOENT;
	if (store) {
		rodata->config_part_bits = store->part_bits;
		rodata->config_leaving_buckets = store->leaving_buckets;
	}
	return 0;
}

static struct program_set leaving_set(const struct log *log)
{
	return (struct program_set){
		.name = "leaving_bpf",
		.elf = leaving_bpf__elf_bytes,
		.doing = "load the BPF program of queueing disciplines",
		.log = log,
		.points = points,
		.n_points = ARRAY_SIZE(points),
		.prepare = prepare_leaving,
	};
}

int store_try_leaving(const struct log *log)
{
	struct program_set set = leaving_set(log);
	int err = program_set_ref(&set);

	program_set_unref(&set);
	return err;
}

void store_open_leaving(struct store *store)
{
	static const struct log silent;
	const uint64_t disabled = store->options.opts->disable_features;
	int err = -ENOTSUP;

	if (!store->leaving_buckets)
		return;
	store->leaving = leaving_set(&silent);
	store->leaving.base = &store->maps;
	store->leaving.ctx = store;
	if (!(disabled >> NETOBS_FEATURE_QUEUES & 1))
		err = program_set_ref(&store->leaving);
	if (err)
		log_warning(store->log,
			    "rtt: cannot see when packets leave queues of this host: %s; path RTT and application latency are unknown where data goes out",
			    strerror(-err));
}

void store_follow_leaving(const struct store *store, uint32_t netns,
			  uint32_t former, uint32_t inode)
{
	int fd = program_set_map_fd(&store->maps, "leaving_netns");

	if (!store->leaving.refs)
		return;
	if (former)
		bpf_map_delete_elem(fd, &former);
	if (inode && bpf_map_update_elem(fd, &inode, &netns, BPF_ANY))
		log_warning(store->log,
			    "rtt: cannot see when packets leave queues of a network namespace: %s",
			    strerror(errno));
}
