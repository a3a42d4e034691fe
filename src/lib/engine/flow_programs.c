// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "flow_programs.h"

#include "base/util.h"
#include "bpf/apart.h"
#include "bpf/parse/tunnel.h" /* a knob of the skeleton */
#include "filter/filter.h"
#include "flows.skel.h"
#include "map.h"
#include "rates.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define RULE_COUNTS "rule_counts"

static int resize_map(const struct bpf_object *object, const char *name,
		      uint32_t entries)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, name);

	return map ? bpf_map__set_max_entries(map, entries) : -ENOENT;
}

/* What rules about connections need. */
static int size_alerts(const struct bpf_object *object,
		       const struct flow_knobs *knobs, uint32_t connections)
{
	const bool has = knobs->has_alerts;
	uint32_t counts = has ? knobs->n_cpus * ALERT_SLOTS : 1;
	uint32_t ring = has ? ALERT_RING_BYTES : sysconf(_SC_PAGESIZE);
	uint32_t prefixes = has ? knobs->n_cpus * 2 * ALERT_RULES_MAX : 1;
	int err = resize_map(object, "alert_counts", counts);

	err = err ?: resize_map(object, "alert_prefixes", prefixes);
	if (!err)
		err = resize_map(object, "alert_exhausted",
				 has ? knobs->n_cpus * 2 * ALERT_METRICS : 1);
	err = err ?: resize_map(object, "alert_events", ring);
	if (!err)
		err = resize_map(object, "alert_holds",
				 has ? ALERT_HOLD_BUCKETS : 1);
	return err ?: resize_map(object, "alert_states", has ? connections : 1);
}

static int prepare_maps(struct bpf_object *object, void *ctx)
{
	const struct flow_knobs *knobs = ctx;
	uint32_t l1_total = GENERATIONS * knobs->n_cpus * knobs->l1_buckets;
	bool has_rules = knobs->filter || knobs->may_filter;
	uint32_t rules_total = has_rules ? knobs->n_cpus * RULE_SLOTS : 1;
	uint32_t log_total = max_u64(knobs->n_cpus * knobs->log_slots, 1);
	uint32_t n_buckets = max_u64(knobs->conn_buckets, 1);
	struct bpf_program *program;
	int err;

	bpf_object__for_each_program(program, object)
		bpf_program__set_autoload(program, false);
	err = resize_map(object, "cpu_states", knobs->n_cpus);
	err = err ?: resize_map(object, "l1_buckets", l1_total);
	err = err ?: resize_map(object, RULE_COUNTS, rules_total);
	err = err ?: resize_map(object, "log_slots", log_total);
	if (!err)
		err = resize_map(object, "outcome_slots",
				 knobs->n_cpus * OUTCOME_SLOTS);
	err = err ?: resize_map(object, "conn_heads", n_buckets * CONN_WAYS);
	err = err ?: resize_map(object, "conn_rates", n_buckets * CONN_WAYS);
	err = err ?: resize_map(object, "conn_bodies", n_buckets * CONN_WAYS);
	if (!err)
		err = resize_map(object, "conn_expected",
				 knobs->rtt == RTT_LRU ? CONN_EXPECTED : 1);
	err = err ?: resize_map(object, "conn_buckets", n_buckets);
	err = err ?: resize_map(object, "conn_counters", knobs->n_cpus);
	err = err ?: resize_map(object, "notices", sysconf(_SC_PAGESIZE));
	err = err ?: size_alerts(object, knobs, n_buckets * CONN_WAYS);
	return err || !knobs->adopted ?
		       err :
		       pinned_reuse_maps(knobs->adopted, object);
}

static void set_rates(const struct flow_knobs *knobs,
		      struct flows_bpf__rodata *rodata)
{
	uint32_t number = rates_number(knobs->rates, &knobs->rate);
	struct rate used[FILTER_RULES_MAX + 1];

	assert(number < RATES);
	memcpy(rodata->config_rates, knobs->rates, sizeof(rodata->config_rates));
	rodata->config_judgement = number << JUDGED_RATE_SHIFT | JUDGED_ACCEPT;
	rodata->config_is_sampled =
		knobs->filter ? filter_rates(knobs->filter, used) > 0 :
				number > 0;
}

static int prepare_programs(struct bpf_object *object, void *ctx)
{
	struct flows_bpf__rodata *rodata =
		program_set_knobs(object, sizeof(*rodata));
	const struct flow_knobs *knobs = ctx;

	if (!rodata)
		return -ENOENT;
	rodata->config_netns = knobs->netns;
	rodata->config_link = knobs->link;
	rodata->config_clock = knobs->clock;
	rodata->config_is_filtered = !!knobs->filter;
	rodata->config_has_rules = knobs->filter && filter_is_list(knobs->filter);
	set_rates(knobs, rodata);
	rodata->config_cpus = knobs->n_cpus;
	rodata->config_lanes = knobs->lanes;
	rodata->config_l1_buckets = knobs->l1_buckets;
	rodata->config_log_slots = knobs->log_slots;
	rodata->config_overflow_part = knobs->overflow_part;
	rodata->config_rtt = knobs->conn_buckets ? knobs->rtt : RTT_OFF;
	rodata->config_conn_buckets = max_u64(knobs->conn_buckets, 1);
	rodata->config_conn_idle = knobs->conn_idle;
	rodata->config_alerts = knobs->conn_buckets && knobs->has_alerts;
	rodata->config_secret = knobs->secret;
	return 0;
}

int flow_maps_load(struct program_set *maps, const struct flow_knobs *knobs,
		   const struct log *log)
{
	int err;

	*maps = (struct program_set){
		.name = "flows_bpf",
		.elf = flows_bpf__elf_bytes,
		.doing = "make BPF maps",
		.log = log,
		.prepare = prepare_maps,
		.ctx = (void *)knobs,
	};
	err = program_set_ref(maps);
	maps->ctx = NULL; /* they are loaded once */
	return err;
}

/* As prepare_programs() sets the knobs. */
static uint32_t features_of(const struct flow_knobs *knobs)
{
	const bool has_rtt = knobs->conn_buckets && knobs->rtt != RTT_OFF;

	return 1U << APART_ALWAYS | (uint32_t)has_rtt << APART_RTT |
	       (uint32_t)(has_rtt && knobs->has_alerts) << APART_ALERTS;
}

int flow_programs_load(struct program_set *maps, const struct flow_knobs *knobs,
		       const struct log *log, struct programs *ret_programs)
{
	static const char *const names[] = { "netobs_ingress", "netobs_egress" };
	struct program_set set = {
		.name = "flows_bpf",
		.elf = flows_bpf__elf_bytes,
		.doing = "load BPF programs",
		.log = log,
		.base = maps,
		.prepare = prepare_programs,
		.ctx = (void *)knobs,
	};
	const struct filter_frames frames = {
		.link = knobs->link,
		.has_wire_len = knobs->clock == CLOCK_PACKET,
		.rates = knobs->rates,
		.features = features_of(knobs),
	};

	return programs_load(&set, names, knobs->filter, &frames, ret_programs);
}

int flow_rules_read(const struct program_set *maps, uint32_t n_cpus,
		    struct rule_count ret_totals[RULE_SLOTS])
{
	const size_t cpu_size = RULE_SLOTS * sizeof(struct rule_count);
	const size_t size = n_cpus * cpu_size;
	const struct rule_count *counts =
		program_set_mmap(maps, RULE_COUNTS, size);

	if (!counts)
		return -errno;
	memset(ret_totals, 0, cpu_size);
	for (uint32_t cpu = 0; cpu < n_cpus; cpu++)
		counters_add(ret_totals, &counts[cpu * RULE_SLOTS], cpu_size);
	map_munmap(counts, size);
	return 0;
}

void flow_rules_add(const struct program_set *maps, uint32_t judgement,
		    const struct count *count)
{
	int fd = program_set_map_fd(maps, RULE_COUNTS);
	uint32_t slot = judged_slot(judgement);
	struct rule_count sum;

	if (bpf_map_lookup_elem(fd, &slot, &sum))
		return;
	count_add(&sum.decided, count);
	bpf_map_update_elem(fd, &slot, &sum, BPF_ANY);
}

int programs_test_run(int program_fd, const struct test_packet *packet)
{
	struct __sk_buff skb = {
		.cb = { packet->ns, packet->ns >> 32, packet->wire_len },
	};
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = packet->bytes,
		    .data_size_in = packet->len, .ctx_in = &skb,
		    .ctx_size_in = sizeof(skb), .repeat = 1);

	return bpf_prog_test_run_opts(program_fd, &run);
}
