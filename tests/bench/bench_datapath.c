/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What a packet costs, by number of flows: the flow programs against an empty
 * program and against a per-CPU hash with a clock reading, all in this run.
 *
 * Times are the least of many rounds, in which the three take turns. The cost
 * of picking a flow and of the jump is in all of them.
 */
#include "bpf/parse/tunnel.h"
#include "store.h"

#include "spread.skel.h"

#include <bpf/bpf.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 12, RUNS = 200000, MAX_FLOWS = 1 << 21 };

enum variant { NOTHING, PERCPU_HASH, NETOBS, VARIANTS };

static void print_log(int level, const char *message, void *user)
{
	(void)level;
	(void)user;
	fprintf(stderr, "%s\n", message);
}

static uint32_t run(int fd, uint32_t repeat)
{
	uint8_t frame[128] = {
		[12] = 0x08, [14] = 0x45, [17] = 114, [22] = 64, [23] = 17,
		[30] = 198,  [31] = 18,	  [35] = 7,   [37] = 9,	 [39] = 94
	};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame,
		    .data_size_in = sizeof(frame), .repeat = repeat);

	return bpf_prog_test_run_opts(fd, &opts) ? UINT_MAX : opts.duration;
}

/* The measured program's fds, by variant; -1 when it cannot be loaded. */
static int measure(uint32_t flows, const int netobs_fd, double ret_ns[VARIANTS])
{
	struct spread_bpf *skel = spread_bpf__open();
	int fds[VARIANTS], spread_fd, jump_fd;
	uint32_t slot = 0;

	if (!skel)
		return -1;
	skel->rodata->config_flows = flows;
	if (spread_bpf__load(skel)) {
		spread_bpf__destroy(skel);
		return -1;
	}
	fds[NOTHING] = bpf_program__fd(skel->progs.nothing);
	fds[PERCPU_HASH] = bpf_program__fd(skel->progs.percpu_hash);
	fds[NETOBS] = netobs_fd;
	spread_fd = bpf_program__fd(skel->progs.spread);
	jump_fd = bpf_map__fd(skel->maps.measured);

	for (int v = 0; v < VARIANTS; v++) {
		ret_ns[v] = UINT_MAX;
		bpf_map_update_elem(jump_fd, &slot, &fds[v], BPF_ANY);
		run(spread_fd, flows * 4 + RUNS); /* all flows are there */
	}
	for (int i = 0; i < ROUNDS; i++) {
		for (int v = 0; v < VARIANTS; v++) {
			uint32_t ns;

			bpf_map_update_elem(jump_fd, &slot, &fds[v], BPF_ANY);
			ns = run(spread_fd, RUNS);
			if (ns < ret_ns[v])
				ret_ns[v] = ns;
		}
	}
	spread_bpf__destroy(skel);
	return 0;
}

static int bench(uint32_t flows, const struct log *log, double *ret_ratio)
{
	const struct store_options options = { .max_flows = MAX_FLOWS,
					       .clock = CLOCK_COARSE };
	struct programs programs = { { -1, -1 } };
	double ns[VARIANTS];
	struct store store;
	int err = store_open(&store, &options, log);

	err = err ?: store_load_programs(&store, 0, LINK_ETHERNET, &programs);
	err = err ?: measure(flows, programs.fds[NETOBS_INGRESS], ns);
	programs_close(&programs);
	store_close(&store);
	if (err)
		return err;
	*ret_ratio = (ns[NETOBS] - ns[NOTHING]) / (ns[PERCPU_HASH] - ns[NOTHING]);
	printf("%9u %9.0f %14.0f %9.0f %11.2f\n", flows, ns[NOTHING],
	       ns[PERCPU_HASH] - ns[NOTHING], ns[NETOBS] - ns[NOTHING],
	       *ret_ratio);
	return 0;
}

int main(void)
{
	static const uint32_t flows[] = { 1, 64, 1024, 16384, 131072, 1000000 };
	const struct log log = { print_log, NULL };
	double first = 0, ratio;

	printf("ns per packet; the last three columns without what an empty program costs\n");
	printf("%9s %9s %14s %9s %11s\n", "flows", "empty", "per-CPU hash",
	       "netobs", "ratio");
	for (size_t i = 0; i < sizeof(flows) / sizeof(flows[0]); i++) {
		if (bench(flows[i], &log, &ratio))
			return 1;
		if (!i)
			first = ratio;
	}
	/* The promise is about a repeated flow. */
	if (first >= 0.5) {
		fprintf(stderr,
			"one flow costs %.2f of what a per-CPU hash does, not less than half\n",
			first);
		return 1;
	}
	return 0;
}
