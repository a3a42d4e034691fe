// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Records of packets as the kernel's log has them, of flows in random order, folded into
 * entries: first flows that are new, as in the first records of an interval, then flows
 * that are known.
 */
#include "config.h"

#include "bench.h"
#include "report.h"
#include "sequence.h"
#include "base/hash.h"
#include "base/util.h"
#include "bpf/store/log.h"
#include "flows/fold.h"

#include <errno.h>
#include <string.h>

enum {
	LOG_SLOTS = 65536,
	/* A round folds this many records of flows that are known. */
	RECORDS_PER_ROUND = 1 << 20,
	SEED = 1,
};

/* Nanoseconds of CPU time per record, medians of the rounds. */
struct fold_result {
	uint32_t flows;
	double new_ns;
	double known_ns, known_min_ns, known_max_ns;
	uint64_t bytes;
};

static const struct report_field fold_fields[] = {
	REPORT_FIELD(fold_result, "flows", REPORT_U32, flows),
	REPORT_FIELD(fold_result, "new_ns_per_record", REPORT_NS, new_ns),
	REPORT_FIELD(fold_result, "known_ns_per_record", REPORT_NS, known_ns),
	REPORT_FIELD(fold_result, "known_ns_min", REPORT_NS, known_min_ns),
	REPORT_FIELD(fold_result, "known_ns_max", REPORT_NS, known_max_ns),
	REPORT_FIELD(fold_result, "bytes", REPORT_U64, bytes),
	{ 0 }
};

struct bench {
	struct hash_secret secret;
	struct fold fold;
	uint32_t *order; /* of flows: each once, by chance */
	uint32_t flows;
	uint32_t generation;
	struct log_slot slots[LOG_SLOTS];
};

static void write_slot(const struct bench *bench, uint32_t flow,
		       struct log_slot *slot)
{
	const struct packet pkt = {
		.key = { .src.words = { [2] = 0xffff0000, [3] = flow },
			 .dst.words = { [2] = 0xffff0000, [3] = 1 },
			 .ifindex = 2,
			 .dst_port = 443,
			 .proto = 17 },
		.attrs = { .ttl_min = 64, .ttl_max = 64, .has_mac = true },
	};
	const struct wire_size size = { .packets = 1, .bytes = 64, .l2_bytes = 78 };
	const struct log_macs macs = { 2, 2 };

	log_write_packet(slot, &pkt, &size, &macs,
			 hash_key(&pkt.key, &bench->secret), 1, LOG_HAS_MAC);
	slot->key_rest |= bench->generation ? LOG_GENERATION : 0;
}

/* Fold @n records, of flows from @at in the order on; their CPU time goes to *@sum. */
static int fold_records(struct bench *bench, uint32_t at, uint32_t n,
			int64_t *sum_ns)
{
	while (n) {
		uint32_t part = min_u64(n, LOG_SLOTS);
		int64_t start_ns;

		for (uint32_t i = 0; i < part; i++)
			write_slot(bench, bench->order[(at + i) % bench->flows],
				   &bench->slots[i]);
		start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		if (fold_add(&bench->fold, bench->slots, part) < part)
			return -ENOMEM;
		*sum_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
		at += part;
		n -= part;
	}
	return stop_requested() ? -EINTR : 0;
}

/* An interval: all flows are new, then known. */
static int measure_fold_round(struct bench *bench, double *new_ns,
			      double *known_ns)
{
	int64_t new_sum = 0, known_sum = 0;
	int err = fold_records(bench, 0, bench->flows, &new_sum);

	err = err ?: fold_records(bench, 0, RECORDS_PER_ROUND, &known_sum);
	*new_ns = (double)new_sum / bench->flows;
	*known_ns = (double)known_sum / RECORDS_PER_ROUND;
	return err;
}

static int measure_fold_rounds(struct bench *bench, uint32_t rounds,
			       struct fold_result *result)
{
	cleanup_free double *fresh = calloc(rounds, sizeof(*fresh));
	cleanup_free double *known = calloc(rounds, sizeof(*known));
	struct summary sum;
	double warm;
	int err = fresh && known ? measure_fold_round(bench, &warm, &warm) :
				   -ENOMEM;

	for (uint32_t i = 0; i < rounds && !err; i++) {
		fold_reset(&bench->fold, bench->generation);
		bench->generation ^= 1;
		err = measure_fold_round(bench, &fresh[i], &known[i]);
	}
	if (err)
		return err;
	sum = summarize(known, rounds);
	*result = (struct fold_result){
		.flows = bench->flows,
		.new_ns = summarize(fresh, rounds).median,
		.known_ns = sum.median,
		.known_min_ns = sum.min,
		.known_max_ns = sum.max,
		.bytes = fold_bytes(&bench->fold),
	};
	return 0;
}

static int measure_flows(const struct config *config, uint32_t flows,
			 struct fold_result *result)
{
	struct bench *bench = calloc(1, sizeof(*bench));
	int err = -ENOMEM;

	if (!bench)
		return err;
	bench->flows = flows;
	bench->order = calloc(flows, sizeof(*bench->order));
	secret_fill(&bench->secret, sizeof(bench->secret));
	fold_init(&bench->fold, &bench->secret, UINT32_MAX, 0);
	if (bench->order) {
		sequence_permute(bench->order, flows, SEED);
		err = measure_fold_rounds(bench, config->rounds, result);
	}
	fold_done(&bench->fold);
	free(bench->order);
	free(bench);
	return err;
}

static void print_fold_table(const struct report *report)
{
	const struct fold_result *results = report->rows;

	printf("ns of CPU per record to fold a log into flows, medians of %u rounds\n",
	       report->rounds);
	report_print_machine();
	printf("\n%9s %9s %9s %9s %9s\n", "flows", "new", "known", "min", "MiB");
	for (uint32_t i = 0; i < report->n; i++)
		printf("%9u %9.0f %9.0f %9.0f %9.1f\n", results[i].flows,
		       results[i].new_ns, results[i].known_ns,
		       results[i].known_min_ns, results[i].bytes / 1048576.0);
}

int fold_run(const struct config *config)
{
	uint32_t n = config->n_flow_counts;
	cleanup_free struct fold_result *results = calloc(n, sizeof(*results));
	const struct report report = {
		.rounds = config->rounds,
		.fields = fold_fields,
		.rows = results,
		.row_size = sizeof(*results),
		.n = n,
		.print_table = print_fold_table,
	};
	int err = results ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < n && !err; i++)
		err = measure_flows(config, config->flow_counts[i], &results[i]);
	if (err == -ENOMEM)
		fprintf(stderr, "netobsctl bench: %s\n", strerror(-err));
	return err ?: report_print(&report, config->output == OUTPUT_JSON);
}
