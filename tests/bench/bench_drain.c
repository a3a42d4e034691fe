/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What a drain costs per flow: half a million flows from the kernel's table to
 * records, and to JSON, against deleting as many entries with batch calls.
 * CPU times of this process, the least of several rounds, in which the three
 * take turns. The kernel frees a replaced table beside it.
 */
#include "bpf/parse/headers.h"
#include "pipeline.h"
#include "util.h"
#include "watch.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { FLOWS = 500000, BATCH = 2048, ROUNDS = 4 };

enum variant { DELETING, RECORDS, JSON, VARIANTS };

static void print_log(int level, const char *message, void *user)
{
	(void)user;
	if (level <= NETOBS_LOG_WARNING)
		fprintf(stderr, "%s\n", message);
}

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

struct sink {
	uint64_t flows;
	bool is_json;
};

static void on_flow(const struct netobs_flow *flow, void *user)
{
	char text[NETOBS_FLOW_JSON_MAX];
	struct sink *sink = user;

	sink->flows++;
	if (sink->is_json)
		netobs_flow_json(flow, text, sizeof(text));
}

static struct flow_key key_of(uint32_t i)
{
	return (struct flow_key){
		.src = { .words = { 0, 0, bpf_htonl(0xffff), i } },
		.dst = { .words = { 0, 0, bpf_htonl(0xffff), ~i } },
		.src_port = i,
		.dst_port = 443,
		.ifindex = 2,
		.proto = IP_PROTO_TCP,
	};
}

static int fill(int map_fd)
{
	static struct flow_key keys[BATCH];
	static struct flow_tally tallies[BATCH];

	for (uint32_t done = 0; done < FLOWS;) {
		uint32_t n = min_u64(BATCH, FLOWS - done);
		int err;

		for (uint32_t i = 0; i < n; i++) {
			keys[i] = key_of(done + i);
			tallies[i] = (struct flow_tally){
				.packets = 1,
				.bytes = 100,
				.first_ns = 1,
				.last_ns = 1,
			};
		}
		err = bpf_map_update_batch(map_fd, keys, tallies, &n, NULL);
		if (err)
			return err;
		done += n;
	}
	return 0;
}

static void delete_all(int map_fd)
{
	static struct flow_key keys[BATCH];
	static struct flow_tally tallies[BATCH];
	uint32_t position, n;
	void *in = NULL;
	int err;

	do {
		n = BATCH;
		err = bpf_map_lookup_and_delete_batch(map_fd, in, &position,
						      keys, tallies, &n, NULL);
		in = &position;
	} while (!err);
}

/* As if the programs had put the flows there. */
static void pretend_seen(struct pipeline *pipeline)
{
	uint32_t generation = pipeline->generation.current;
	struct counters *counters = pipeline->store.cpus[0].counters;

	pipeline->store.tables[generation].inserts = FLOWS;
	counters[generation].seen.packets += FLOWS;
	counters[generation].seen.bytes += 100ULL * FLOWS;
}

static double measure(struct pipeline *pipeline, enum variant variant)
{
	int map_fd = pipeline->store.l2_fds[pipeline->generation.current];
	double start;

	if (fill(map_fd))
		return -1;
	start = now_ns();
	if (variant == DELETING) {
		delete_all(map_fd);
		return now_ns() - start;
	}
	pretend_seen(pipeline);
	pipeline_begin(pipeline, MERGE_INTERVAL, clock_boot_ns());
	pipeline_finish(pipeline);
	return now_ns() - start;
}

int main(void)
{
	const struct log log = { print_log, NULL };
	struct sink sink = { 0 };
	const struct pipeline_options options = {
		.store = { .max_flows = 1 << 20, .clock = CLOCK_COARSE },
		.merge = { .interval_ns = 5 * NSEC_PER_SEC,
			   .idle_timeout_ns = 15 * NSEC_PER_SEC,
			   .max_flows = 1 << 20,
			   .on_flow = on_flow,
			   .user = &sink },
	};
	struct watch watch = { .log = &log };
	struct pipeline pipeline;
	double least[VARIANTS] = { 0 };

	if (pipeline_init(&pipeline, &options, &watch, &log))
		return 1;
	for (int i = 0; i < ROUNDS; i++) {
		for (int v = 0; v < VARIANTS; v++) {
			double ns;

			sink = (struct sink){ .is_json = v == JSON };
			ns = measure(&pipeline, v);
			if (ns < 0 || (v != DELETING && sink.flows != FLOWS)) {
				fprintf(stderr, "%llu of %d flows\n",
					(unsigned long long)sink.flows, FLOWS);
				return 1;
			}
			if (!least[v] || ns < least[v])
				least[v] = ns;
		}
	}
	pipeline_done(&pipeline);
	printf("CPU ns per flow, and against deleting by batch\n");
	printf("%-10s %6.0f\n", "deleting", least[DELETING] / FLOWS);
	printf("%-10s %6.0f %6.2f\n", "records", least[RECORDS] / FLOWS,
	       least[RECORDS] / least[DELETING]);
	printf("%-10s %6.0f %6.2f\n", "JSON", least[JSON] / FLOWS,
	       least[JSON] / least[DELETING]);
	return least[RECORDS] < 2 * least[DELETING] ? 0 : 1;
}
