// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "flow_programs.h"

#include "base/util.h"
#include "bpf/apart.h"
#include "bpf/parse/tunnel.h" /* a knob of the skeleton */
#include "filter/filter.h"
#include "flows.skel.h"
#include "flows_default.skel.h"
#include "flows_nat.skel.h"
#include "flows_rtt.skel.h"
#include "flows_rtt_nat.skel.h"
#include "map.h"
#include "rates.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define RULE_COUNTS "rule_counts"

/* Set the sizes of maps: one entry for features that are off. */
static int resize_maps(const struct bpf_object *object,
		       const struct flow_knobs *knobs)
{
	const uint32_t cpus = knobs->n_cpus, page = sysconf(_SC_PAGESIZE);
	const uint32_t buckets = max_u64(knobs->conn_buckets, 1);
	const uint32_t connections = buckets * CONN_WAYS;
	const uint32_t parts = connections >> knobs->part_bits;
	const bool has_rules = knobs->filter || knobs->may_filter;
	const bool has_alerts = knobs->has_alerts;
	const bool has_nat = knobs->nat;
	const struct {
		const char *map;
		uint32_t entries;
	} sizes[] = {
		{ "cpu_states", cpus },
		{ "l1_buckets", GENERATIONS * cpus * knobs->l1_buckets },
		{ RULE_COUNTS, has_rules ? cpus * RULE_SLOTS : 1 },
		{ "log_slots", max_u64(cpus * knobs->log_slots, 1) },
		{ "outcome_slots", cpus * OUTCOME_SLOTS },
		{ "conn_heads", connections },
		{ "conn_rates", connections },
		{ "conn_bodies", parts },
		{ "conn_free", connections },
		{ "conn_buckets", buckets },
		{ "conn_counters", cpus },
		{ "notices", page },
		{ "alert_counts", has_alerts ? cpus * ALERT_SLOTS : 1 },
		{ "alert_prefixes", has_alerts ? cpus * 2 * ALERT_RULES_MAX : 1 },
		{ "alert_exhausted", has_alerts ? cpus * 2 * ALERT_METRICS : 1 },
		{ "alert_events", has_alerts ? ALERT_RING_BYTES : page },
		{ "alert_holds", has_alerts ? ALERT_HOLD_BUCKETS : 1 },
		{ "alert_states", has_alerts ? parts : 1 },
		{ "nat_seen",
		  has_nat ? GENERATIONS * cpus * knobs->nat->seen_buckets : 1 },
		{ "nat_counters", has_nat ? cpus : 1 },
		{ "nat_events", has_nat ? NAT_RING_BYTES : page },
	};
	int err = 0;

	for (size_t i = 0; !err && i < ARRAY_SIZE(sizes); i++) {
		struct bpf_map *map =
			bpf_object__find_map_by_name(object, sizes[i].map);

		err = map ? bpf_map__set_max_entries(map, sizes[i].entries) :
			    -ENOENT;
	}
	return err;
}

static int set_part(const struct bpf_object *object, const char *name, int fd)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, name);

	return map ? bpf_map__set_inner_map_fd(map, fd) : -ENOENT;
}

/* Set the inner maps that the maps of maps are created for: maps put into them later must be alike. */
static int set_parts(const struct bpf_object *object, const struct conn_part *part)
{
	int err;

	if (!part || part->bodies < 0)
		return 0;
	err = set_part(object, "conn_bodies", part->bodies);
	return err || part->states < 0 ?
		       err :
		       set_part(object, "alert_states", part->states);
}

static int prepare_maps(struct bpf_object *object, void *ctx)
{
	const struct flow_knobs *knobs = ctx;
	struct bpf_program *program;
	int err;

	bpf_object__for_each_program(program, object)
		bpf_program__set_autoload(program, false);
	err = resize_maps(object, knobs);
	err = err ?: set_parts(object, knobs->part);
	return err || !knobs->adopted ?
		       err :
		       pinned_reuse_maps(knobs->adopted, object);
}

static bool is_sampled(const struct flow_knobs *knobs)
{
	struct rate used[FILTER_RULES_MAX + 1];

	return knobs->filter ? filter_rates(knobs->filter, used) > 0 :
			       rates_number(knobs->rates, &knobs->rate) > 0;
}

static bool has_rules(const struct flow_knobs *knobs)
{
	return knobs->filter && filter_is_list(knobs->filter);
}

static bool has_rtt(const struct flow_knobs *knobs)
{
	return knobs->conn_buckets && knobs->rtt;
}

static bool has_alerts(const struct flow_knobs *knobs)
{
	return knobs->conn_buckets && knobs->has_alerts;
}

static void set_rates(const struct flow_knobs *knobs,
		      struct flows_bpf__rodata *rodata)
{
	uint32_t number = rates_number(knobs->rates, &knobs->rate);

	assert(number < RATES);
	memcpy(rodata->config_rates, knobs->rates, sizeof(rodata->config_rates));
	rodata->config_judgement = number << JUDGED_RATE_SHIFT | JUDGED_ACCEPT;
	rodata->config_is_sampled = is_sampled(knobs);
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
	rodata->config_has_rules = has_rules(knobs);
	set_rates(knobs, rodata);
	rodata->config_cpus = knobs->n_cpus;
	rodata->config_lanes = knobs->lanes;
	rodata->config_l1_buckets = knobs->l1_buckets;
	rodata->config_log_slots = knobs->log_slots;
	rodata->config_overflow_part = knobs->overflow_part;
	rodata->config_rtt = has_rtt(knobs);
	rodata->config_conn_buckets = max_u64(knobs->conn_buckets, 1);
	rodata->config_part_bits = knobs->part_bits;
	rodata->config_conn_idle = knobs->conn_idle;
	rodata->config_alerts = has_alerts(knobs);
	rodata->config_secret = knobs->secret;
	rodata->config_has_nat = !!knobs->nat;
	if (knobs->nat)
		rodata->config_nat = *knobs->nat;
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
	maps->ctx = NULL; /* prepare_maps() ran, and does not run again */
	return err;
}

/* @return the features that prepare_programs() enables by the knobs */
static uint32_t features_of(const struct flow_knobs *knobs)
{
	return 1U << APART_ALWAYS | (uint32_t)has_rtt(knobs) << APART_RTT |
	       (uint32_t)has_alerts(knobs) << APART_ALERTS;
}

#define HAS_THE_KNOBS(programs)                           \
	_Static_assert(                                   \
		sizeof(struct programs##__rodata) ==      \
			sizeof(struct flows_bpf__rodata), \
		"programs for one configuration have the same knobs and maps")

HAS_THE_KNOBS(flows_default_bpf);
HAS_THE_KNOBS(flows_nat_bpf);
HAS_THE_KNOBS(flows_rtt_bpf);
HAS_THE_KNOBS(flows_rtt_nat_bpf);

static bool is_general(const struct flow_knobs *knobs)
{
	return knobs->link != LINK_ETHERNET || knobs->clock != CLOCK_HOST ||
	       knobs->lanes != 1 || has_rules(knobs) || is_sampled(knobs) ||
	       has_alerts(knobs) || (knobs->nat && !knobs->nat->has_cast);
}

static void choose_elf(struct program_set *set, const struct flow_knobs *knobs)
{
	static const void *(*const elves[2][2])(size_t *) = {
		{ flows_default_bpf__elf_bytes, flows_nat_bpf__elf_bytes },
		{ flows_rtt_bpf__elf_bytes, flows_rtt_nat_bpf__elf_bytes },
	};

	set->elf = is_general(knobs) ? flows_bpf__elf_bytes :
				       elves[has_rtt(knobs)][!!knobs->nat];
}

int flow_programs_load(struct program_set *maps, const struct flow_knobs *knobs,
		       const struct log *log, struct programs *ret_programs)
{
	static const char *const names[] = { "netobs_ingress", "netobs_egress" };
	struct program_set set = {
		.name = "flows_bpf",
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

	choose_elf(&set, knobs);
	return programs_load(&set, names, knobs->direction, knobs->filter,
			     &frames, ret_programs);
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
