// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * The flow programs: a set of maps for a context, and programs that share them for
 * each kind of interfaces in each namespace.
 *
 * They are compiled for all options, as knobs, and for default options with and without round-trip
 * times and translations, as constants: the verifier removes code that knobs turn off, but not what
 * the compiler did for it. Of the latter, those with translations read the conntrack entry as a
 * member of struct sk_buff, which takes Linux 6.2; a call of the kernel instead takes 65 ns for each
 * outgoing packet that L1 does not have. bpf.configurations compares what they count.
 */
#include "store.h"

#include "leaving.skel.h"
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

#include <assert.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <netobs/probe.h>

#define RULE_COUNTS "rule_counts"

/*
 * If more connections are open than the table has slots, they take turns: each is measured for so
 * long. Ended connections are shown for as long.
 */
enum { CONN_IDLE_SECONDS = 10 };

enum { LEAVING_NETNS_MAX = 4096 };

/* ---- Maps --------------------------------------------------------------------------- */

static bool has_nat(const struct store *store)
{
	return store->options.opts->flags & NETOBS_NAT;
}

/* Set the sizes of maps: one entry for features that are off. */
static int resize_maps(const struct bpf_object *object, const struct store *store)
{
	const uint32_t cpus = store->n_cpus, page = sysconf(_SC_PAGESIZE);
	const uint32_t buckets = max_u64(store->conn_buckets, 1);
	const uint32_t connections = buckets * CONN_WAYS;
	const uint32_t parts = connections >> store->part_bits;
	/* Programs with and without a filter share maps that are pinned. */
	const bool has_rules = store->options.filter || store->options.pinned;
	const bool has_alerts = store->options.has_alerts;
	const struct {
		const char *map;
		uint32_t entries;
	} sizes[] = {
		{ "cpu_states", cpus },
		{ "l1_buckets", GENERATIONS * cpus * store->l1_buckets },
		{ RULE_COUNTS, has_rules ? cpus * RULE_SLOTS : 1 },
		{ "log_slots", max_u64(cpus * store->log_slots, 1) },
		{ "outcome_slots", cpus * OUTCOME_SLOTS },
		{ "conn_heads", connections },
		{ "conn_rates", connections },
		{ "conn_bodies", parts },
		{ "conn_free", connections },
		{ "conn_buckets", buckets },
		{ "conn_counters", cpus },
		{ "leavings", max_u64(store->leaving_buckets, 1) },
		{ "leaving_netns",
		  store->leaving_buckets ? LEAVING_NETNS_MAX : 1 },
		{ "notices", page },
		{ "alert_counts", has_alerts ? cpus * ALERT_SLOTS : 1 },
		{ "alert_prefixes", has_alerts ? cpus * 2 * ALERT_RULES_MAX : 1 },
		{ "alert_exhausted", has_alerts ? cpus * 2 * ALERT_METRICS : 1 },
		{ "alert_events", has_alerts ? ALERT_RING_BYTES : page },
		{ "alert_holds", has_alerts ? ALERT_HOLD_BUCKETS : 1 },
		{ "alert_states", has_alerts ? parts : 1 },
		{ "nat_seen",
		  has_nat(store) ? GENERATIONS * cpus * store->nat.seen_buckets :
				   1 },
		{ "nat_counters", has_nat(store) ? cpus : 1 },
		{ "nat_events", has_nat(store) ? NAT_RING_BYTES : page },
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

	if (part->bodies < 0)
		return 0;
	err = set_part(object, "conn_bodies", part->bodies);
	return err || part->states < 0 ?
		       err :
		       set_part(object, "alert_states", part->states);
}

struct maps_load {
	const struct store *store;
	const struct conn_part *part;
	const struct pinned *adopted; /* use the maps of this set; NULL: make new ones */
};

static int prepare_maps(struct bpf_object *object, void *ctx)
{
	const struct maps_load *load = ctx;
	struct bpf_program *program;
	int err;

	bpf_object__for_each_program(program, object)
		bpf_program__set_autoload(program, false);
	err = resize_maps(object, load->store);
	err = err ?: set_parts(object, load->part);
	return err || !load->adopted ? err :
				       pinned_reuse_maps(load->adopted, object);
}

int flow_maps_load(struct store *store, const struct conn_part *part,
		   const struct pinned *adopted, const struct log *log)
{
	struct maps_load load = { store, part, adopted };
	int err;

	store->maps = (struct program_set){
		.name = "flows_bpf",
		.elf = flows_bpf__elf_bytes,
		.doing = "make BPF maps",
		.log = log,
		.prepare = prepare_maps,
		.ctx = &load,
	};
	err = program_set_ref(&store->maps);
	store->maps.ctx = NULL; /* prepare_maps() ran, and does not run again */
	return err;
}

/* ---- Programs ----------------------------------------------------------------------- */

struct programs_load {
	const struct store *store;
	const struct filter *filter;
	const struct rate *rate;
	uint16_t netns;
	enum link_kind link;
};

static bool is_sampled(const struct programs_load *load)
{
	struct rate used[FILTER_RULES_MAX + 1];

	return load->filter ?
		       filter_rates(load->filter, used) > 0 :
		       rates_number(load->store->rates.numbers, load->rate) > 0;
}

static bool has_rules(const struct programs_load *load)
{
	return load->filter && filter_is_list(load->filter);
}

static bool has_rtt(const struct store *store)
{
	return store->conn_buckets && store->options.opts->rtt;
}

static bool has_alerts(const struct store *store)
{
	return store->conn_buckets && store->options.has_alerts;
}

static void set_rates(const struct programs_load *load,
		      struct flows_bpf__rodata *rodata)
{
	const struct rate *numbers = load->store->rates.numbers;
	uint32_t number = rates_number(numbers, load->rate);

	assert(number < RATES);
	memcpy(rodata->config_rates, numbers, sizeof(rodata->config_rates));
	rodata->config_judgement = number << JUDGED_RATE_SHIFT | JUDGED_ACCEPT;
	rodata->config_is_sampled = is_sampled(load);
}

static int prepare_programs(struct bpf_object *object, void *ctx)
{
	struct flows_bpf__rodata *rodata =
		program_set_knobs(object, sizeof(*rodata));
	const struct programs_load *load = ctx;
	const struct store *store = load->store;

	if (!rodata)
		return -ENOENT;
	rodata->config_netns = load->netns;
	rodata->config_link = load->link;
	rodata->config_clock = store->options.clock;
	rodata->config_is_filtered = !!load->filter;
	rodata->config_has_rules = has_rules(load);
	set_rates(load, rodata);
	rodata->config_cpus = store->n_cpus;
	rodata->config_lanes = store->lanes;
	rodata->config_l1_buckets = store->l1_buckets;
	rodata->config_log_slots = store->log_slots;
	rodata->config_overflow_part = store->overflow.part;
	rodata->config_rtt = has_rtt(store);
	rodata->config_has_queues = store->leaving.refs > 0;
	rodata->config_leaving_buckets = max_u64(store->leaving_buckets, 1);
	rodata->config_conn_buckets = max_u64(store->conn_buckets, 1);
	rodata->config_part_bits = store->part_bits;
	rodata->config_conn_idle = CONN_IDLE_SECONDS;
	rodata->config_alerts = has_alerts(store);
	rodata->config_secret = store->secret;
	rodata->config_has_nat = has_nat(store);
	if (has_nat(store))
		rodata->config_nat = store->nat;
	return 0;
}

/* @return the features that prepare_programs() enables by the knobs */
static uint32_t features_of(const struct store *store)
{
	return 1U << APART_ALWAYS | (uint32_t)has_rtt(store) << APART_RTT |
	       (uint32_t)has_alerts(store) << APART_ALERTS;
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

static bool is_general(const struct programs_load *load)
{
	const struct store *store = load->store;

	return load->link != LINK_ETHERNET ||
	       store->options.clock != CLOCK_HOST || store->lanes != 1 ||
	       has_rules(load) || is_sampled(load) || has_alerts(store) ||
	       (has_nat(store) && !store->nat.has_cast);
}

static void choose_elf(struct program_set *set, const struct programs_load *load)
{
	static const void *(*const elves[2][2])(size_t *) = {
		{ flows_default_bpf__elf_bytes, flows_nat_bpf__elf_bytes },
		{ flows_rtt_bpf__elf_bytes, flows_rtt_nat_bpf__elf_bytes },
	};
	const struct store *store = load->store;

	set->elf = is_general(load) ? flows_bpf__elf_bytes :
				      elves[has_rtt(store)][has_nat(store)];
}

int store_load_programs_logging(struct store *store, const struct filter *filter,
				const struct rate *rate, uint16_t netns,
				enum link_kind link, const struct log *log,
				struct programs *ret_programs)
{
	static const char *const names[] = { "netobs_ingress", "netobs_egress" };
	struct programs_load load = { store, filter, rate, netns, link };
	const struct pinned *pinned = store->options.pinned;
	struct program_set set = {
		.name = "flows_bpf",
		.doing = "load BPF programs",
		.log = log,
		.base = &store->maps,
		.prepare = prepare_programs,
		.ctx = &load,
	};
	const struct filter_frames frames = {
		.link = link,
		.has_wire_len = store->options.clock == CLOCK_PACKET,
		.rates = store->rates.numbers,
		.features = features_of(store),
	};

	/* Nothing is written on a thread: there, the namespace has programs already. */
	if (pinned && pinned->state && pinned->state->n_netns <= netns)
		pinned->state->n_netns = netns + 1U;
	choose_elf(&set, &load);
	return programs_load(&set, names, store->options.opts->direction,
			     filter, &frames, ret_programs);
}

/* ---- Use ---------------------------------------------------------------------------- */

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

/* ---- Queueing disciplines ------------------------------------------------------------ */

/* The program that sees packets leave queues of this host: src/bpf/leaving.bpf.c. */

static const struct attach_point points[] = { { .program = "netobs_leave" } };

static int prepare_leaving(struct bpf_object *object, void *ctx)
{
	struct leaving_bpf__rodata *rodata =
		program_set_knobs(object, sizeof(*rodata));
	const struct store *store = ctx;

	if (!rodata)
		return -ENOENT;
	if (store) {
		rodata->config_part_bits = store->part_bits;
		rodata->config_leaving_buckets = store->leaving_buckets;
	}
	return 0;
}

static struct program_set leaving_set(const struct log *log)
{
	return (struct program_set){
		.name = "leaving_bpf",
		.elf = leaving_bpf__elf_bytes,
		.doing = "load the BPF program of queueing disciplines",
		.log = log,
		.points = points,
		.n_points = ARRAY_SIZE(points),
		.prepare = prepare_leaving,
	};
}

int store_try_leaving(const struct log *log)
{
	struct program_set set = leaving_set(log);
	int err = program_set_ref(&set);

	program_set_unref(&set);
	return err;
}

void store_open_leaving(struct store *store)
{
	static const struct log silent;
	const uint64_t disabled = store->options.opts->disable_features;
	int err = -ENOTSUP;

	if (!store->leaving_buckets)
		return;
	store->leaving = leaving_set(&silent);
	store->leaving.base = &store->maps;
	store->leaving.ctx = store;
	if (!(disabled >> NETOBS_FEATURE_QUEUES & 1))
		err = program_set_ref(&store->leaving);
	if (err)
		log_warning(store->log,
			    "rtt: cannot see when packets leave queues of this host: %s; path RTT and application latency are unknown where data goes out",
			    strerror(-err));
}

void store_follow_leaving(const struct store *store, uint32_t netns,
			  uint32_t former, uint32_t inode)
{
	int fd = program_set_map_fd(&store->maps, "leaving_netns");

	if (!store->leaving.refs)
		return;
	if (former)
		bpf_map_delete_elem(fd, &former);
	if (inode && bpf_map_update_elem(fd, &inode, &netns, BPF_ANY))
		log_warning(store->log,
			    "rtt: cannot see when packets leave queues of a network namespace: %s",
			    strerror(errno));
}
