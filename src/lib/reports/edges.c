/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "edges.h"

#include <string.h>

#include "base/util.h"

/* ---- Sums ------------------------------------------------------------------------------ */

uint64_t edge_bytes(const struct edge_sum *sum)
{
	return sum->counts.bytes[TO_SERVICE] + sum->counts.bytes[TO_CLIENT];
}

uint64_t edge_packets(const struct edge_sum *sum)
{
	return sum->counts.packets[TO_SERVICE] + sum->counts.packets[TO_CLIENT];
}

static uint64_t mean(uint64_t sum, uint64_t n)
{
	return n ? sum / n : 0;
}

/* The sum of the times to both ends, from where both ways are seen. */
uint64_t edge_rtt_ns(const struct edge_counts *counts)
{
	return mean(counts->rtt_sum_ns[TO_SERVICE],
		    counts->rtt_samples[TO_SERVICE]) +
	       mean(counts->rtt_sum_ns[TO_CLIENT],
		    counts->rtt_samples[TO_CLIENT]);
}

uint64_t edge_response_ns(const struct edge_counts *counts)
{
	return mean(counts->response_sum_ns, counts->responses);
}

static void add_span(struct edge_sum *sum, const struct edge_sum *more)
{
	if (!more->end_ms)
		return;
	if (!sum->end_ms || more->start_ms < sum->start_ms)
		sum->start_ms = more->start_ms;
	sum->end_ms = max_i64(sum->end_ms, more->end_ms);
}

/* Of two reporters, name the one with more packets. */
static void add_reporters(struct edge_sum *sum, const struct edge_sum *more)
{
	for (int way = 0; way < EDGE_WAYS; way++) {
		if (sum->counted_by[way] == more->counted_by[way]) {
			sum->counted_packets[way] += more->counted_packets[way];
		} else if (more->counted_packets[way] >
			   sum->counted_packets[way]) {
			sum->counted_by[way] = more->counted_by[way];
			sum->counted_packets[way] = more->counted_packets[way];
		}
	}
	if (more->hosts > sum->hosts)
		sum->hosts = more->hosts;
}

void names_join(struct end_names *names, const struct end_names *more)
{
	for (int kind = 0; kind < NAME_KINDS; kind++) {
		uint32_t *number = &names->numbers[kind];

		names->is_mixed[kind] |= more->is_mixed[kind] ||
					 (*number && more->numbers[kind] &&
					  *number != more->numbers[kind]);
		*number = *number ?: more->numbers[kind];
	}
}

void edge_sum_add(struct edge_sum *sum, const struct edge_sum *more)
{
	counters_add(&sum->counts, &more->counts, sizeof(sum->counts));
	add_span(sum, more);
	add_reporters(sum, more);
	for (int end = 0; end < EDGE_ENDS; end++)
		names_join(&sum->names[end], &more->names[end]);
	if (more->evidence > sum->evidence)
		sum->evidence = more->evidence;
}

/* ---- Edges ----------------------------------------------------------------------------- */

static int by_bytes(const void *a, const void *b)
{
	const struct edge *one = a, *other = b;
	const uint64_t bytes = edge_bytes(&one->sum),
		       others = edge_bytes(&other->sum);

	if (bytes != others)
		return bytes < others ? 1 : -1;
	return memcmp(&one->key, &other->key, sizeof(one->key));
}

static void add_to_others(struct edges *edges, const struct edge_sum *sum)
{
	edge_sum_add(&edges->others, sum);
	edges->n_others++;
}

void edges_add(struct edges *edges, const struct edge_key *key,
	       const struct edge_sum *sum)
{
	uint32_t index = slots_find(&edges->all, key);

	if (index != SLOT_NONE) {
		edge_sum_add(&edge_at(edges, index)->sum, sum);
		return;
	}
	index = slots_get(&edges->all, key, sizeof(*key), sizeof(struct edge));
	if (index == SLOT_NONE) {
		edges->evicted_bytes += edge_bytes(sum);
		edges->is_fresh = false;
		add_to_others(edges, sum);
		return;
	}
	edge_at(edges, index)->sum = *sum;
	edge_at(edges, index)->missing_bytes =
		edges->is_fresh ? 0 : edges->evicted_bytes;
}

void edges_trim(struct edges *edges)
{
	if (edges->all.n <= edges->max)
		return;
	edges_sort(edges);
	edges->evicted_bytes += edge_bytes(&edge_at(edges, edges->max)->sum);
	for (uint32_t i = edges->max; i < edges->all.n; i++)
		add_to_others(edges, &edge_at(edges, i)->sum);
	edges->all.n = edges->max;
	slots_rehash(&edges->all);
}

void edges_sort(struct edges *edges)
{
	if (!edges->all.n)
		return;
	qsort(edges->all.items, edges->all.n, sizeof(struct edge), by_bytes);
	slots_rehash(&edges->all);
}

void edges_clear(struct edges *edges)
{
	slots_clear(&edges->all);
	edges->others = (struct edge_sum){ 0 };
	edges->n_others = edges->evicted_bytes = 0;
}

void edges_free(struct edges *edges)
{
	slots_free(&edges->all);
	*edges = (struct edges){ .max = edges->max };
}
