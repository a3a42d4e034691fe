/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * baseline empty|v0 INTERFACE: one of the programs of baseline.bpf.c on both directions,
 * where netobs would be. Says "ready" when it is attached; v0 says on SIGINT what it
 * counted, as JSON.
 */
#include <linux/types.h>

#include "baseline.h"
#include "attach/attach.h"
#include "base/slots.h"
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

static void on_baseline_signal(int number)
{
	(void)number;
	stopped = 1;
}

/* ---- v0: sums per tuple ------------------------------------------------------- */

struct flow_sum {
	struct packet_tuple tuple;
	uint64_t packets;
	uint64_t bytes;
	uint64_t first_ns;
	uint64_t last_ns;
};

struct flow_sums {
	struct slots flows; /* struct flow_sum */
	uint64_t packets;
	uint64_t bytes;
};

static int add_sample(struct flow_sums *sums, const struct packet_sample *sample)
{
	const uint32_t index = slots_get(&sums->flows, &sample->tuple,
					 sizeof(sample->tuple),
					 sizeof(struct flow_sum));
	struct flow_sum *sum;

	if (index == SLOT_NONE)
		return -ENOMEM;
	sum = slots_at(&sums->flows, index);
	if (!sum->packets)
		sum->first_ns = sample->time_ns;
	sum->packets += sample->packets;
	sum->bytes += sample->bytes;
	sum->last_ns = sample->time_ns;
	sums->packets += sample->packets;
	sums->bytes += sample->bytes;
	return 0;
}

static int on_sample(void *user, void *data, size_t size)
{
	(void)size;
	return add_sample(user, data);
}

/* ---- On the interface --------------------------------------------------------- */

static void print_baseline_log(int level, const char *message, void *user)
{
	(void)user;
	if (level <= NETOBS_LOG_WARNING)
		fprintf(stderr, "%s\n", message);
}

static const struct log log_stderr = { .write = print_baseline_log };

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
	for (int d = INGRESS; d <= EGRESS; d++)
		programs.fds[d] = bpf_program__fd(program);
	return attach(&options, ifindex, interface, &programs, attachment);
}

/* Until a signal comes; @ring is NULL when the program sends nothing. */
static int read_samples(struct ring_buffer *ring)
{
	int ret = 0;

	printf("ready\n");
	fflush(stdout);
	/* To be stopped and continued interrupts a wait as well. */
	while (!stopped && (ret >= 0 || ret == -EINTR)) {
		ret = ring ? ring_buffer__poll(ring, POLL_MS) : 0;
		if (!ring)
			poll(NULL, 0, POLL_MS);
	}
	return stopped || ret >= 0 ? 0 : ret;
}

static int observe_interface(const char *interface,
			     const struct bpf_program *program,
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

static int run_v0(const char *interface, const struct baseline_bpf *skel)
{
	struct ring_buffer *ring;
	struct flow_sums sums = { .packets = 0 };
	int err;

	ring = ring_buffer__new(bpf_map__fd(skel->maps.samples), on_sample,
				&sums, NULL);
	err = ring ? observe_interface(interface, skel->progs.baseline_v0, ring) :
		     -errno;
	if (!err)
		printf("{\"packets\": %ju, \"bytes\": %ju, \"flows\": %ju, \"lost\": %ju}\n",
		       (uintmax_t)sums.packets, (uintmax_t)sums.bytes,
		       (uintmax_t)sums.flows.n, (uintmax_t)skel->bss->overflows);
	ring_buffer__free(ring);
	slots_free(&sums.flows);
	return err;
}

static int run_baseline(const char *interface, bool is_v0,
			struct baseline_bpf *skel)
{
	int err;

	bpf_program__set_autoload(skel->progs.baseline_v0, is_v0);
	bpf_program__set_autoload(skel->progs.baseline_empty, !is_v0);
	bpf_map__set_autocreate(skel->maps.samples, is_v0);
	err = baseline_bpf__load(skel);
	if (err)
		return err;
	return is_v0 ? run_v0(interface, skel) :
		       observe_interface(interface, skel->progs.baseline_empty,
					 NULL);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_baseline_signal };
	const bool is_v0 = argc == 3 && !strcmp(argv[1], "v0");
	struct baseline_bpf *skel;
	int err;

	if (argc != 3 || (!is_v0 && strcmp(argv[1], "empty"))) {
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
	err = run_baseline(argv[2], is_v0, skel);
	baseline_bpf__destroy(skel);
	if (err)
		fprintf(stderr, "baseline: %s\n", strerror(-err));
	return err ? 1 : 0;
}
