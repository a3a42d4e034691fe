// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "prog.h"

#include "base/util.h"
#include "prog_skeleton.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

int prog_size_alerts(struct prog *prog)
{
	const struct flows_bpf *skel = prog->skel;
	const struct prog_size sizes[] = {
		{ skel->maps.alert_counts, prog->n_cpus * ALERT_SLOTS },
		{ skel->maps.alert_prefixes, prog->n_cpus * 2 * ALERT_RULES_MAX },
		{ skel->maps.alert_exhausted, prog->n_cpus * 2 * ALERT_METRICS },
		{ skel->maps.alert_holds, ALERT_HOLD_BUCKETS },
	};

	if (!prog->options.has_alerts)
		return 0;
	skel->rodata->config_alerts = true;
	return prog_set_sizes(sizes, ARRAY_SIZE(sizes));
}

static int take_alert(void *ctx, void *data, size_t size)
{
	struct prog *prog = ctx;

	if (size < sizeof(struct alert_event))
		return -EINVAL;
	if (prog->on_alert)
		prog->on_alert(prog->on_alert_ctx, data);
	return 0;
}

int prog_open_alerts(struct prog *prog)
{
	const struct flows_bpf *skel = prog->skel;

	prog->alert_tables = prog_map_array(skel->maps.alert_tables);
	prog->alert_ring = ring_buffer__new(bpf_map__fd(skel->maps.alert_events),
					    take_alert, prog, NULL);
	return prog->alert_tables && prog->alert_ring ? 0 : -ENOMEM;
}

void prog_close_alerts(struct prog *prog)
{
	ring_buffer__free(prog->alert_ring);
	if (prog->skel)
		prog_unmap_array(prog->alert_tables,
				 prog->skel->maps.alert_tables);
}

static const char zeroes[sizeof(struct alert_state) * 4];

/* All of an array's values. */
static int zero_array(const struct bpf_map *map)
{
	if (bpf_map__value_size(map) > sizeof(zeroes))
		return -EINVAL;
	for (__u32 i = 0; i < bpf_map__max_entries(map); i++)
		if (bpf_map_update_elem(bpf_map__fd(map), &i, zeroes, BPF_ANY))
			return -errno;
	return 0;
}

static int zero_states(const struct prog *prog)
{
	for (__u32 part = 0; part < prog->n_parts; part++)
		for (__u32 i = 0; i < 1U << prog->part_bits; i++)
			if (bpf_map_update_elem(prog->parts[part].states, &i,
						zeroes, BPF_ANY))
				return -errno;
	return 0;
}

int prog_reset_alerts(struct prog *prog)
{
	const struct bpf_map *const arrays[] = {
		prog->skel->maps.alert_counts, prog->skel->maps.alert_prefixes,
		prog->skel->maps.alert_exhausted, prog->skel->maps.alert_limits,
		prog->skel->maps.alert_holds
	};
	int err = 0;

	prog->on_alert = NULL;
	prog_read_alerts(prog);
	memset(prog->alert_tables, 0, sizeof(*prog->alert_tables));
	for (size_t i = 0; i < ARRAY_SIZE(arrays) && !err; i++)
		err = zero_array(arrays[i]);
	return err ?: zero_states(prog);
}

void prog_read_alerts(struct prog *prog)
{
	ring_buffer__consume(prog->alert_ring);
}

/* Samples that broke this rule and others behind it of its kind. */
static void add_prefixes(const struct prog *prog, __u32 number,
			 struct alert_count *sum)
{
	const struct alert_table *table = &prog->alert_tables->tables[0];
	struct alert_prefix one;
	__u32 end = 0;

	for (__u32 kind = 0; end <= number; kind++)
		end = table->first[kind + 1];
	for (; number < end; number++) {
		for (__u32 cpu = 0; cpu < prog->n_cpus; cpu++) {
			__u32 index = cpu * 2 * ALERT_RULES_MAX + number;

			if (bpf_map_lookup_elem(
				    bpf_map__fd(prog->skel->maps.alert_prefixes),
				    &index, &one))
				return;
			sum->broken += one.broken;
			sum->held += one.held;
			sum->limited += one.limited;
		}
	}
}

struct alert_count prog_alert_count(const struct prog *prog, __u32 slot)
{
	struct alert_count sum = { 0 }, one;

	for (__u32 cpu = 0; cpu < prog->n_cpus; cpu++) {
		__u32 index = cpu * ALERT_SLOTS + slot;

		if (bpf_map_lookup_elem(bpf_map__fd(prog->skel->maps.alert_counts),
					&index, &one))
			break;
		sum.broken += one.broken;
		sum.fired += one.fired;
		sum.held += one.held;
		sum.limited += one.limited;
		sum.lost += one.lost;
	}
	for (__u32 i = 0; i < prog->alert_tables->tables[0].n; i++)
		if (prog->alert_tables->tables[0].rules[i].slot == slot)
			add_prefixes(prog, i, &sum);
	return sum;
}
