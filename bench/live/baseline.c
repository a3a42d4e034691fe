/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * baseline empty|v0 INTERFACE: one of the programs of baseline.bpf.c on both
 * directions, where netobs would be. Says "ready" when it is attached; v0 says on
 * SIGINT what it counted, as JSON.
 */
#include "attach/attach.h"
#include "flow_sums.h"
#include "base/util.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "baseline.skel.h"

enum { POLL_MS = 100 };

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	(void)number;
	stopped = 1;
}

static int on_sample(void *user, void *data, size_t size)
{
	(void)size;
	return flow_sums_add(user, data);
}

static void print_log(int level, const char *message, void *user)
{
	(void)user;
	if (level <= NETOBS_LOG_WARNING)
		fprintf(stderr, "%s\n", message);
}

static const struct log log_stderr = { .write = print_log };

static int attach_both(const char *interface, uint32_t ifindex,
		       const struct bpf_program *program,
		       struct attachment *attachment)
{
	struct attach_options options = {
		.log = &log_stderr,
		.use_tcx = true,
		.use_clsact = true,
		.directions = { true, true },
	};
	struct programs programs;

	if (!ifindex)
		return -ENODEV;
	for (int d = NETOBS_INGRESS; d <= NETOBS_EGRESS; d++)
		programs.fds[d] = bpf_program__fd(program);
	return attach(&options, ifindex, interface, &programs, attachment);
}

/* Until a signal comes; @ring is NULL when the program sends nothing. */
static int read_samples(struct ring_buffer *ring)
{
	int ret = 0;

	printf("ready\n");
	fflush(stdout);
	while (!stopped && ret >= 0) {
		ret = ring ? ring_buffer__poll(ring, POLL_MS) :
			     poll(NULL, 0, POLL_MS);
		if (stopped)
			return 0;
	}
	return ret < 0 ? ret : 0;
}

static int observe(const char *interface, const struct bpf_program *program,
		   struct ring_buffer *ring)
{
	struct attachment attachment = ATTACHMENT_NONE;
	uint32_t ifindex = if_nametoindex(interface);
	int err;

	err = attach_both(interface, ifindex, program, &attachment);
	if (err)
		return err;
	err = read_samples(ring);
	detach(&log_stderr, &attachment, ifindex);
	if (!err && ring)
		err = ring_buffer__consume(ring);
	return err < 0 ? err : 0;
}

static int run_empty(const char *interface, struct baseline_bpf *skel)
{
	int err;

	bpf_map__set_autocreate(skel->maps.samples, false);
	bpf_program__set_autoload(skel->progs.baseline_v0, false);
	err = baseline_bpf__load(skel);
	if (err)
		return err;
	return observe(interface, skel->progs.baseline_empty, NULL);
}

static int run_v0(const char *interface, struct baseline_bpf *skel)
{
	struct ring_buffer *ring;
	struct flow_sums sums;
	int err;

	err = baseline_bpf__load(skel);
	if (err)
		return err;
	err = flow_sums_init(&sums);
	if (err)
		return err;
	ring = ring_buffer__new(bpf_map__fd(skel->maps.samples), on_sample,
				&sums, NULL);
	err = ring ? observe(interface, skel->progs.baseline_v0, ring) : -errno;
	if (!err)
		printf("{\"packets\": %ju, \"bytes\": %ju, \"flows\": %ju, "
		       "\"lost\": %ju}\n",
		       (uintmax_t)sums.packets, (uintmax_t)sums.bytes,
		       (uintmax_t)sums.n_flows, (uintmax_t)skel->bss->overflows);
	ring_buffer__free(ring);
	flow_sums_free(&sums);
	return err;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct baseline_bpf *skel;
	int err;

	if (argc != 3 || (strcmp(argv[1], "empty") && strcmp(argv[1], "v0"))) {
		fprintf(stderr, "Usage: baseline empty|v0 INTERFACE\n");
		return 2;
	}
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	skel = baseline_bpf__open();
	if (!skel) {
		fprintf(stderr, "baseline: %s\n", strerror(errno));
		return 1;
	}
	err = strcmp(argv[1], "v0") ? run_empty(argv[2], skel) :
				      run_v0(argv[2], skel);
	baseline_bpf__destroy(skel);
	if (err)
		fprintf(stderr, "baseline: %s\n", strerror(-err));
	return err ? 1 : 0;
}
