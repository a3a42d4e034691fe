/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "edges.h"

#include <string.h>

#include "base/util.h"

enum { FIRST_CAPACITY = 256 };

/* ---- Sums ------------------------------------------------------------------------------ */

uint64_t edge_bytes(const struct edge_sum *sum)
{
	return sum->counts.bytes[TO_SERVICE] + sum->counts.bytes[TO_CLIENT];
}

uint64_t edge_packets(const struct edge_sum *sum)
{
	return sum->counts.packets[TO_SERVICE] + sum->counts.packets[TO_CLIENT];
}

uint64_t edge_errors(const struct edge_counts *counts)
{
	return counts->refused + counts->resets + counts->timeouts +
	       counts->failed;
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

static void add_processes(struct edge_sum *sum, const struct edge_sum *more)
{
	for (int end = 0; end < 2; end++) {
		sum->is_process_mixed[end] |= more->is_process_mixed[end];
		if (!more->has_process[end])
			continue;
		if (!sum->has_process[end])
			memcpy(sum->processes[end], more->processes[end],
			       EDGE_NAME_MAX);
		else if (strcmp(sum->processes[end], more->processes[end]))
			sum->is_process_mixed[end] = true;
		sum->has_process[end] = true;
	}
}

static void add_workloads(struct edge_sum *sum, const struct edge_sum *more)
{
	for (int end = 0; end < EDGE_ENDS; end++) {
		sum->is_workload_mixed[end] |=
			more->is_workload_mixed[end] ||
			(sum->workloads[end] && more->workloads[end] &&
			 sum->workloads[end] != more->workloads[end]);
		sum->workloads[end] = sum->workloads[end] ?: more->workloads[end];
	}
}

void edge_sum_add(struct edge_sum *sum, const struct edge_sum *more)
{
	counters_add(&sum->counts, &more->counts, sizeof(sum->counts));
	add_span(sum, more);
	add_reporters(sum, more);
	add_processes(sum, more);
	add_workloads(sum, more);
	if (more->evidence > sum->evidence)
		sum->evidence = more->evidence;
}

/* ---- Edges ----------------------------------------------------------------------------- */

static bool has_key(const void *array, uint32_t index, const void *key)
{
	const struct edge *list = array;

	return !memcmp(&list[index].key, key, sizeof(list[index].key));
}

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

/* Elements have other places now; there is room for all, as before. */
static void find_places(struct edges *edges)
{
	slots_clear(&edges->slots);
	for (uint32_t i = 0; i < edges->n; i++)
		slots_add(&edges->slots,
			  slots_hash(&edges->slots, &edges->list[i].key,
				     sizeof(edges->list[i].key)),
			  i);
}

static void drop_smaller_half(struct edges *edges)
{
	const uint32_t left = edges->n / 2;

	qsort(edges->list, edges->n, sizeof(*edges->list), by_bytes);
	for (uint32_t i = left; i < edges->n; i++)
		add_to_others(edges, &edges->list[i].sum);
	edges->n = left;
	find_places(edges);
}

void edges_add(struct edges *edges, const struct edge_key *key,
	       const struct edge_sum *sum)
{
	const uint64_t hash = slots_hash(&edges->slots, key, sizeof(*key));
	const uint32_t index =
		slots_find(&edges->slots, hash, has_key, edges->list, key);

	if (index != SLOT_NONE) {
		edge_sum_add(&edges->list[index].sum, sum);
		return;
	}
	if (edges->n >= edges->max)
		drop_smaller_half(edges);
	if (!array_reserve(&edges->list, edges->n, &edges->capacity,
			   sizeof(*edges->list), FIRST_CAPACITY) ||
	    !slots_add(&edges->slots, hash, edges->n)) {
		add_to_others(edges, sum);
		return;
	}
	edges->list[edges->n++] = (struct edge){ .key = *key, .sum = *sum };
}

void edges_sort(struct edges *edges)
{
	if (!edges->n)
		return;
	qsort(edges->list, edges->n, sizeof(*edges->list), by_bytes);
	find_places(edges);
}

void edges_clear(struct edges *edges)
{
	slots_clear(&edges->slots);
	edges->n = 0;
	edges->others = (struct edge_sum){ 0 };
	edges->n_others = 0;
}

void edges_free(struct edges *edges)
{
	free(edges->list);
	slots_free(&edges->slots);
	*edges = (struct edges){ .max = edges->max };
}
