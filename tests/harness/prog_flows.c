// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "prog.h"

#include "base/util.h"
#include "bpf/store/log.h"
#include "bpf/store/tally.h"
#include "packet.h"
#include "prog_skeleton.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint32_t prog_flow_frame(uint32_t flow, uint8_t ret_frame[64])
{
	enum { SOURCE = 14 + 12 };
	static const struct layer layers[] = { ETH, IP4, UDP, DATA(10), {} };
	struct packet_bytes packet;

	packet_build(layers, &packet);
	assert(packet.len == 14 + PROG_FLOW_BYTES);
	for (int i = 0; i < 4; i++)
		packet.bytes[SOURCE + i] = (uint8_t)(flow >> (24 - 8 * i));
	memcpy(ret_frame, packet.bytes, packet.len);
	return (uint32_t)packet.len;
}

/* Returns 0, or -ENOSPC when there are more keys than a test should make. */
static int add_entry(struct prog_flows *flows, const struct flow_entry *entry)
{
	struct flow_key key = entry->key;
	size_t i = 0;

	if (key_rate(&key) != 0 && key_rate(&key) != PROG_RATE)
		return -EBADMSG;
	*(__u64 *)&key.vlan &= ~key_rate_bits(PROG_RATE);
	while (i < flows->n && memcmp(&flows->entries[i].key, &key, sizeof(key)))
		i++;
	if (i == PROG_FLOWS)
		return -ENOSPC;
	if (i == flows->n) {
		flows->entries[flows->n] = *entry;
		flows->entries[flows->n++].key = key;
		return 0;
	}
	tally_add(&flows->entries[i].tally, &entry->tally);
	return 0;
}

/* The @i-th entry of a generation's part of L1. */
static const struct flow_entry *l1_entry(const struct prog *prog,
					 __u32 generation, size_t i)
{
	const struct flow_bucket *bucket =
		&prog->l1[generation * prog_l1_buckets(prog) + i / BUCKET_SLOTS];

	return &bucket->entries[i % BUCKET_SLOTS];
}

static size_t l1_entries(const struct prog *prog)
{
	return prog_l1_buckets(prog) * BUCKET_SLOTS;
}

size_t prog_l1_used(const struct prog *prog, __u32 generation)
{
	size_t used = 0;

	for (size_t i = 0; i < l1_entries(prog); i++)
		used += l1_entry(prog, generation, i)->tally.packets != 0;
	return used;
}

/* Call @visit for each entry of an overflow table until it returns an error. */
static int for_each_overflow(const struct prog *prog, __u32 generation,
			     int (*visit)(void *ctx, const struct flow_entry *),
			     void *ctx)
{
	const struct overflow_key *before = NULL;
	int fd = prog->overflows[generation], err = 0;
	struct overflow_key key;

	while (!err && !bpf_map_get_next_key(fd, before, &key)) {
		struct overflow_page page;

		err = bpf_map_lookup_elem(fd, &key, &page);
		for (__u32 i = 0; !err && i < page.n; i++)
			err = visit(ctx, &page.entries[i]);
		before = &key;
	}
	return err;
}

static int visit_count(void *ctx, const struct flow_entry *entry)
{
	(void)entry;
	++*(size_t *)ctx;
	return 0;
}

size_t prog_overflow_used(const struct prog *prog, __u32 generation)
{
	size_t n = 0;

	for_each_overflow(prog, generation, visit_count, &n);
	return n;
}

static int visit_add(void *ctx, const struct flow_entry *entry)
{
	return add_entry(ctx, entry);
}

int prog_overflow_lookup(const struct prog *prog, __u32 generation,
			 const struct flow_key *key, struct flow_tally *ret_tally)
{
	struct prog_flows *flows = calloc(1, sizeof(*flows));
	const struct flow_entry *entry = NULL;

	if (flows && !for_each_overflow(prog, generation, visit_add, flows))
		entry = prog_find(flows, key);
	if (entry)
		*ret_tally = entry->tally;
	free(flows);
	return entry ? 0 : -ENOENT;
}

int prog_remove_overflow(struct prog *prog, __u32 generation)
{
	prog->lacks_table = true;
	return bpf_map_delete_elem(bpf_map__fd(prog->skel->maps.overflows),
				   &generation);
}

static int add_l1(const struct prog *prog, __u32 generation,
		  struct prog_flows *flows)
{
	int err = 0;

	for (size_t i = 0; i < l1_entries(prog) && !err; i++) {
		const struct flow_entry *entry = l1_entry(prog, generation, i);

		if (entry->tally.packets)
			err = add_entry(flows, entry);
	}
	return err;
}

/* The records of one CPU's log, which stay there. */
static int add_log(const struct prog *prog, __u32 generation, __u32 cpu,
		   struct prog_flows *flows)
{
	const struct log_slot *slots = prog->log + cpu * prog->options.log_slots;
	__u32 mask = prog->options.log_slots - 1;
	__u64 at = prog->cpus[cpu].log_tail;
	int err = 0;

	while (at < prog->cpus[cpu].log_head && !err) {
		const struct log_slot pair[] = { slots[at & mask],
						 slots[(at + 1) & mask] };
		struct flow_entry entry;

		at += log_read(pair, &entry);
		if (log_generation(pair) == generation)
			err = add_entry(flows, &entry);
	}
	return err;
}

static int add_logs(const struct prog *prog, __u32 generation,
		    struct prog_flows *flows)
{
	int err = 0;

	for (__u32 cpu = 0; cpu < prog->n_cpus && !err; cpu++)
		err = add_log(prog, generation, cpu, flows);
	return err;
}

int prog_flows(struct prog *prog, __u32 generation, struct prog_flows *ret_flows)
{
	int err = ring_buffer__consume(prog->ring);

	if (err < 0)
		return err;
	ret_flows->n = 0;
	err = add_l1(prog, generation, ret_flows);
	err = err ?: add_logs(prog, generation, ret_flows);
	return err ?: for_each_overflow(prog, generation, visit_add, ret_flows);
}

const struct flow_entry *prog_find(const struct prog_flows *flows,
				   const struct flow_key *key)
{
	for (size_t i = 0; i < flows->n; i++)
		if (!memcmp(&flows->entries[i].key, key, sizeof(*key)))
			return &flows->entries[i];
	return NULL;
}

static void add_count(struct count *to, const struct count *from)
{
	to->packets += from->packets;
	to->bytes += from->bytes;
}

struct counters prog_counters(const struct prog *prog, __u32 generation)
{
	struct counters sum = {};

	for (__u32 cpu = 0; cpu < prog->n_cpus; cpu++)
		counters_add(&sum, &prog->cpus[cpu].counters[generation],
			     sizeof(sum));
	return sum;
}

struct count prog_unaccounted(const struct counters *counters,
			      const struct prog_flows *flows)
{
	struct count sum = {};

	add_count(&sum, &counters->filtered);
	add_count(&sum, &counters->sampled_out);
	for (int i = 0; i < UNPARSED_MAX; i++)
		add_count(&sum, &counters->unparsed[i]);
	for (int i = 0; i < LOST_MAX; i++)
		add_count(&sum, &counters->lost[i]);
	for (size_t i = 0; i < flows->n; i++) {
		sum.packets += flows->entries[i].tally.packets;
		sum.bytes += flows->entries[i].tally.bytes;
	}
	return (struct count){ counters->seen.packets - sum.packets,
			       counters->seen.bytes - sum.bytes };
}
