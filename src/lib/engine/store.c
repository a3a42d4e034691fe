/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "store.h"

#include "memory_room.h"
#include "map.h"
#include "base/clock_ms.h"
#include "base/hash.h"
#include "base/privilege.h"
#include "base/util.h"
#include "filter/filter.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <netobs/probe.h>
#include <netobs/stats.h>
#include <stdio.h>
#include <string.h>

enum {
	/* A page of 4 KiB has no whole number of buckets; so many fill pages. */
	L1_BUCKETS_UNIT = 64,
	/* 5120 flows per CPU; 1.3 MiB, over both generations. */
	L1_BUCKETS_MAX = 5 * L1_BUCKETS_UNIT,
	L1_TOTAL_MAX = 64 << 20, /* bytes, over all CPUs and both generations */
	/*
	 * 1 MiB per CPU: 20 ms of 800,000 packets a second that miss L1. The overflow
	 * table takes those after that.
	 */
	LOG_SLOTS_MAX = 16384,
	LOG_SLOTS_MIN = 1024,	  /* a page of 64 KiB */
	LOG_TOTAL_MAX = 32 << 20, /* bytes */
	ENTRIES_MIN = 8 << 20,	  /* bytes: few, but both generations' */
	OVERFLOW_PART = 4,	  /* of limited memory: one in so many */
	CONNECTIONS_DEFAULT = 1 << 16,
	CONNECTIONS_MIN = 1 << 10,
	CONNECTIONS_PART = 8, /* of limited memory: one in so many */
};

/* Fewer on machines with very many CPUs. */
static uint32_t choose_l1_buckets(uint32_t n_cpus)
{
	uint32_t buckets = L1_TOTAL_MAX / GENERATIONS / n_cpus /
			   sizeof(struct flow_bucket) / L1_BUCKETS_UNIT *
			   L1_BUCKETS_UNIT;

	return min_u64(max_u64(buckets, L1_BUCKETS_UNIT), L1_BUCKETS_MAX);
}

/* A power of two. */
static uint32_t choose_log_slots(uint32_t n_cpus)
{
	uint32_t slots = LOG_SLOTS_MAX;

	while (slots > LOG_SLOTS_MIN &&
	       slots * n_cpus > LOG_TOTAL_MAX / sizeof(struct log_slot))
		slots /= 2;
	return slots;
}

/* A power of two; as many as asked for, else as memory allows. */
static uint32_t choose_conn_buckets(const struct store_options *options)
{
	const uint64_t room =
		min_u64(options->max_memory ?: UINT64_MAX, memory_room(""));
	const uint32_t max = options->connections;
	uint32_t n = CONNECTIONS_MIN;

	if (options->rtt == RTT_OFF)
		return 0;
	while (n < (max ?: CONNECTIONS_DEFAULT) &&
	       (max ||
		connections_bytes_most(2 * n / CONN_WAYS, options->has_alerts) <=
			room / CONNECTIONS_PART))
		n *= 2;
	return n / CONN_WAYS;
}

/* A replay has the packets of an hour in a second, so nothing is added to its table meanwhile. */
static uint32_t choose_part_bits(const struct store *store)
{
	return store->conn_buckets ?
		       conn_parts_bits(store->conn_buckets * CONN_WAYS,
				       store->options.clock == CLOCK_PACKET) :
		       0;
}

static size_t cpus_size(const struct store *store)
{
	return store->n_cpus * sizeof(struct cpu_state);
}

static size_t l1_region_size(const struct store *store)
{
	return store->l1_buckets * sizeof(struct flow_bucket);
}

/* A notice carries no data: its arrival says that the logs are to be read. */
static int ignore_notice(void *ctx, void *data, size_t size)
{
	(void)ctx;
	(void)data;
	(void)size;
	return 0;
}

/* From /sys, which a chroot may lack. */
static int count_cpus(struct store *store)
{
	int n;

	log_borrow_libbpf(store->log);
	n = libbpf_num_possible_cpus();
	log_return_libbpf();
	if (n < 0) {
		log_error(store->log, "cannot count CPUs: %s", strerror(-n));
		return n;
	}
	store->n_cpus = (uint32_t)n * store->lanes;
	store->l1_buckets = choose_l1_buckets(store->n_cpus);
	store->log_slots = store->options.log_slots ?:
				   choose_log_slots(store->n_cpus);
	if (store->log_slots == STORE_LOG_NONE)
		store->log_slots = 0;
	store->conn_buckets = choose_conn_buckets(&store->options);
	store->part_bits = choose_part_bits(store);
	return 0;
}

/*
 * Connections take turns if more are open than there is room for, and each is measured for as
 * long as this. As long as those that have ended are shown.
 */
enum { CONN_IDLE_SECONDS = 10 };

static struct flow_knobs knobs_of(const struct store *store)
{
	return (struct flow_knobs){
		.n_cpus = store->n_cpus,
		.l1_buckets = store->l1_buckets,
		.log_slots = store->log_slots,
		.overflow_part = store->overflow.part,
		.lanes = store->lanes,
		.clock = store->options.clock,
		.secret = store->secret,
		.filter = store->options.filter,
		.may_filter = store->options.pinned,
		.rates = store->rates.numbers,
		.rate = store->options.rate,
		.rtt = store->options.rtt,
		.conn_buckets = store->conn_buckets,
		.has_alerts = store->options.has_alerts,
		.nat = store->options.has_nat ? &store->nat : NULL,
		.part_bits = store->part_bits,
		.conn_idle = CONN_IDLE_SECONDS,
	};
}

uint64_t store_bytes(const struct store *store)
{
	return program_set_bytes(&store->maps) +
	       overflow_bytes(&store->overflow) +
	       conn_parts_bytes(&store->connections.parts);
}

/* What connections may still take. */
static uint64_t coming_bytes(const struct store *store)
{
	const struct conn_parts *parts = &store->connections.parts;

	return conn_parts_bytes_most(parts) - conn_parts_bytes(parts);
}

void store_grow(struct store *store)
{
	const int err = connections_grow(&store->connections);

	store->is_growing = err == -EAGAIN;
	if (store->is_growing)
		return;
	if (err && !store->cannot_grow)
		log_warning(store->log,
			    "cannot make BPF maps for more connections: %s; those beyond %llu are not measured",
			    strerror(-err),
			    (unsigned long long)store->connections.parts.n
				    << store->part_bits);
	store->cannot_grow = err;
}

/* An explicit maximum, in bytes of entries. */
static int check_max_memory(const struct store *store, uint64_t *ret_max)
{
	uint64_t fixed = store_bytes(store) + coming_bytes(store);
	uint64_t max = store->options.max_memory;
	uint64_t least = fixed + ENTRIES_MIN;

	if (max && max < least) {
		log_error(store->log,
			  "max_memory: too little memory for %u CPUs; the least is %llu MiB",
			  store->n_cpus, (unsigned long long)(least >> 20) + 1);
		return -EINVAL;
	}
	*ret_max = max ? max - fixed : 0;
	return 0;
}

static unsigned long long in_mib(uint64_t bytes)
{
	return bytes >> 20;
}

/* Limit @max to what the memory control groups leave; existing maps are charged already. */
static int limit_to_groups(struct store *store, uint64_t *max)
{
	uint64_t room = memory_room(""), coming = coming_bytes(store);
	struct memory_plan plan;

	if (room == UINT64_MAX)
		return 0;
	plan = memory_plan(room - min_u64(room, coming));
	if (!plan.entry_bytes) {
		log_error(store->log,
			  "the memory control group leaves %llu MiB: %llu MiB are the least",
			  in_mib(room), in_mib(memory_room_least()));
		return -ENOMEM;
	}
	if (*max > plan.entry_bytes)
		log_warning(store->log,
			    "max_memory: the memory control group leaves less: %llu MiB for flows",
			    in_mib(plan.entry_bytes));
	else
		log_info(store->log,
			 "the memory control group leaves %llu MiB, of which new flows may take %llu MiB",
			 in_mib(room), in_mib(plan.entry_bytes));
	*max = *max ? min_u64(*max, plan.entry_bytes) : plan.entry_bytes;
	store->process_bytes = plan.process_bytes;
	return 0;
}

static int limit_memory(struct store *store)
{
	int err = check_max_memory(store, &store->entry_bytes);

	err = err ?: limit_to_groups(store, &store->entry_bytes);
	store->overflow_bytes = store->entry_bytes / OVERFLOW_PART;
	store->entry_bytes -= store->overflow_bytes;
	return err;
}

static int open_overflow(struct store *store)
{
	int err = overflow_init(&store->overflow,
				program_set_map_fd(&store->maps, "overflows"),
				store->options.max_flows, store->overflow_bytes);

	if (err)
		log_error(store->log, "cannot make overflow tables: %s",
			  strerror(-err));
	return err;
}

static int open_notices(struct store *store)
{
	log_borrow_libbpf(store->log);
	store->notices = ring_buffer__new(store_notices_fd(store),
					  ignore_notice, NULL, NULL);
	log_return_libbpf();
	return store->notices ? 0 : -errno;
}

static int open_store_maps(struct store *store, struct conn_part *first)
{
	const struct program_set *maps = &store->maps;
	int err;

	store->cpus = program_set_mmap(maps, "cpu_states", cpus_size(store));
	store->unclaimed =
		program_set_mmap(maps, "unclaimed", sizeof(*store->unclaimed));
	err = !store->cpus || !store->unclaimed ? -errno : open_notices(store);
	if (!err && store->conn_buckets)
		err = connections_open(&store->connections, maps,
				       store->conn_buckets, store->n_cpus,
				       &store->secret, first, store->part_bits);
	if (!err)
		err = origins_init(&store->origins,
				   program_set_map_fd(maps, "origins"),
				   program_set_map_fd(maps, "more_origins"));
	if (err)
		log_error(store->log, "cannot make BPF maps: %s", strerror(-err));
	return err;
}

/* PREEMPT_RT says so of itself. */
static uint32_t lanes_needed(void)
{
	cleanup_fd int fd = open("/sys/kernel/realtime", O_RDONLY | O_CLOEXEC);
	char is_realtime = '0';

	return fd >= 0 && read(fd, &is_realtime, 1) == 1 && is_realtime == '1' ?
		       LANES_MAX :
		       1;
}

/* ---- Rates ------------------------------------------------------------------------ */

/* @return how many there are */
static uint32_t rates_of(const struct filter *filter, const struct rate *rate,
			 struct rate ret_rates[FILTER_RULES_MAX + 1])
{
	if (filter)
		return filter_rates(filter, ret_rates);
	ret_rates[0] = *rate;
	return rate->interval != 0;
}

static void note_rates(const struct store *store)
{
	const struct pinned *pinned = store->options.pinned;

	if (pinned && pinned->state)
		memcpy(pinned->state->rates, store->rates.numbers,
		       sizeof(pinned->state->rates));
}

/* No program uses a number that is new, nor its samplers, which may be of a longer interval. */
static void reset_samplers(struct store *store, uint32_t numbers)
{
	for (uint32_t cpu = 0; store->cpus && cpu < store->n_cpus; cpu++)
		for (uint32_t i = 0; i < RATES; i++)
			if (numbers & 1U << i)
				store->cpus[cpu].samplers[i] =
					(struct sampler){ 0 };
}

/* Number the rates that the options name. */
static int take_rates(struct rates *rates, const struct store *store,
		      uint32_t *ret_new)
{
	struct rate list[FILTER_RULES_MAX + 1];
	uint32_t n = rates_of(store->options.filter, &store->options.rate, list);

	return rates_take(rates, list, n, NULL, ret_new);
}

int store_take_rates(struct store *store, const struct filter *filter,
		     const struct rate *rate, const uint32_t n_flows[RATE_IDS])
{
	struct rate list[FILTER_RULES_MAX + 1];
	uint32_t new, n = rates_of(filter, rate, list);
	int err = rates_take(&store->rates, list, n, n_flows, &new);

	if (err)
		return err;
	reset_samplers(store, new);
	note_rates(store);
	return 0;
}

void store_keep_rates(struct store *store, const struct filter *filter,
		      const struct rate *rate)
{
	struct rate list[FILTER_RULES_MAX + 1];

	rates_keep(&store->rates, list, rates_of(filter, rate, list));
	note_rates(store);
}

/* ---- Maps that outlive the process ------------------------------------------------ */

static int load_adopted(struct store *store, const struct conn_part *first,
			const struct pinned_state *state)
{
	static const struct log silent;
	struct flow_knobs knobs;
	struct rates rates; /* to try it: samplers cannot be reset yet */
	uint32_t new;
	int err;

	store->l1_buckets = state->l1_buckets;
	store->log_slots = state->log_slots;
	store->secret = state->secret;
	rates_adopt(&store->rates, state->rates);
	rates = store->rates;
	err = take_rates(&rates, store, &new);
	err = err ?: overflow_adopt(&store->overflow, store->options.pinned);
	if (err)
		return err;
	knobs = knobs_of(store);
	knobs.part = first;
	knobs.adopted = store->options.pinned;
	err = flow_maps_load(&store->maps, &knobs, &silent);
	store->maps.log = store->log;
	return err;
}

static void apply_commit(struct pinned_state *state)
{
	const struct pinned_commit *commit = &state->next;

	state->drained[commit->generation] = commit->drained;
	state->seen_drained = commit->seen_drained;
	state->unclaimed = commit->unclaimed;
	state->unreported = commit->unreported;
}

static void begin_after(struct store *store, struct pinned_state *state)
{
	if (state->settled != state->commits &&
	    state->next.generation < GENERATIONS)
		apply_commit(state);
	memcpy(store->counted_before, state->drained, sizeof(state->drained));
	store->unclaimed_before = state->unclaimed;
	store->is_adopted = true;
	state->owner = getpid();
}

/* Options that do not change what was made with others. */
static void note_kept(struct store *store)
{
	const struct store_options *options = &store->options;
	const struct pinned_state *state = options->pinned->state;
	const bool is_sized = overflow_choose_room(options->max_flows,
						   store->overflow_bytes) ==
			      state->overflow_room;
	const struct {
		uint32_t bit;
		const char *name;
		bool is_kept;
	} all[] = {
		{ NETOBS_KEPT_MAX_FLOWS, "max_flows",
		  !is_sized && options->max_flows != state->max_flows },
		{ NETOBS_KEPT_MAX_MEMORY, "max_memory",
		  !is_sized && options->max_memory != state->max_memory },
		{ NETOBS_KEPT_ATTACH, "attach",
		  options->attach_kinds != state->attach_kinds },
		{ NETOBS_KEPT_ATTACH_ORDER, "attach_order",
		  options->attach_order != state->attach_order },
	};
	char names[64] = "";
	size_t len = 0;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (!all[i].is_kept)
			continue;
		store->kept |= all[i].bit;
		len += snprintf(names + len, sizeof(names) - len, "%s%s",
				len ? ", " : "", all[i].name);
	}
	if (store->kept)
		log_warning(store->log,
			    "persist: %s: tables and links of before stay as they are until 'netobsctl detach'",
			    names);
}

/* On failure, the contents of the maps are unknown, and the maps are discarded. */
static bool adopt_maps(struct store *store, const struct conn_part *first)
{
	struct pinned *pinned = store->options.pinned;
	struct store fresh = *store;
	int err = -ESTALE;

	if (!pinned->state && !pinned->had_links) {
		pinned_discard(pinned); /* what a killed 'netobsctl detach' left */
		return false;
	}
	if (pinned_is_readable(pinned) && pinned->state->n_cpus == store->n_cpus &&
	    pinned->state->lanes == store->lanes)
		err = load_adopted(store, first, pinned->state);
	if (!err) {
		begin_after(store, pinned->state);
		return true;
	}
	log_warning(store->log,
		    "persist: %s: the tables cannot be read (%s); packets in them are lost",
		    pinned->path,
		    !pinned->state		? "they are incomplete" :
		    !pinned_is_readable(pinned) ? "they are another version's" :
						  strerror(-err));
	overflow_done(&store->overflow);
	*store = fresh;
	pinned_discard(pinned);
	return false;
}

/* If pinning fails, the context goes on without it. */
static void publish_store(struct store *store)
{
	const uint64_t first = clock_ns(CLOCK_REALTIME);
	struct pinned_state state = {
		.commits = first,
		.settled = first,
		.n_cpus = store->n_cpus,
		.lanes = store->lanes,
		.l1_buckets = store->l1_buckets,
		.log_slots = store->log_slots,
		.overflow_room = store->overflow.room,
		.overflow_part = store->overflow.part,
		.max_flows = store->options.max_flows,
		.max_memory = store->options.max_memory,
		.attach_order = store->options.attach_order,
		.attach_kinds = store->options.attach_kinds,
		.has_rules = true,
		.secret = store->secret,
	};
	int err = pinned_put_maps(store->options.pinned, store->maps.object);

	memcpy(state.rates, store->rates.numbers, sizeof(state.rates));
	err = err ?: overflow_pin(&store->overflow, store->options.pinned);
	err = err ?: pinned_publish(store->options.pinned, &state);
	if (!err)
		return;
	log_warning(store->log,
		    "persist: cannot pin maps: %s; packets that pass between two runs will not be counted",
		    strerror(-err));
	pinned_remove(store->options.pinned);
	store->options.pinned = NULL;
}

static struct pinned_state *find_pinned_state(const struct store *store)
{
	return store->options.pinned ? store->options.pinned->state : NULL;
}

static void fill_commit(const struct store *store, uint32_t generation,
			const struct counters *counted,
			struct pinned_commit *commit)
{
	const struct pinned_state *state = find_pinned_state(store);
	struct counters drained = *counted;
	struct count seen, unclaimed = store_unclaimed(store);

	counters_add(&drained, &store->counted_before[generation],
		     sizeof(drained));
	seen = drained.seen;
	count_add(&seen, &state->drained[!generation].seen);
	count_add(&unclaimed, &store->unclaimed_before);
	*commit = (struct pinned_commit){
		.generation = generation,
		.drained = drained,
		.seen_drained = seen,
		.unclaimed = unclaimed,
	};
}

void store_commit(const struct store *store, uint32_t generation,
		  const struct counters *counted,
		  const struct count *unreported, bool is_complete)
{
	struct pinned_state *state = find_pinned_state(store);
	struct pinned_commit commit;

	fill_commit(store, generation, counted, &commit);
	commit.unreported = *unreported;
	commit.is_complete = is_complete;
	state->next = commit;
	__atomic_store_n(&state->commits, state->commits + 1, __ATOMIC_SEQ_CST);
	apply_commit(state);
}

void store_settle(const struct store *store)
{
	struct pinned_state *state = find_pinned_state(store);

	__atomic_store_n(&state->settled, state->commits, __ATOMIC_SEQ_CST);
}

/*
 * It takes effect by the store of @settled, and has no number: spools would look for the marks of
 * one that they know nothing of.
 */
void store_note_drained(const struct store *store, uint32_t generation,
			const struct counters *counted)
{
	struct pinned_state *state = find_pinned_state(store);
	struct pinned_commit commit;

	if (!state)
		return;
	fill_commit(store, generation, counted, &commit);
	commit.unreported = state->unreported;
	state->next = commit;
	__atomic_store_n(&state->settled, state->commits - 1, __ATOMIC_SEQ_CST);
	apply_commit(state);
	store_settle(store);
}

/* ---- Open and close --------------------------------------------------------------- */

static int find_nat(struct store *store)
{
	const uint64_t disabled = store->options.disabled_features;
	int err = 0;

	if (store->options.has_nat)
		err = disabled >> NETOBS_FEATURE_NAT & 1 ?
			      -ENOTSUP :
			      nat_find_layout(&store->nat, store->log);
	if (err)
		log_error(store->log,
			  "nat: the kernel has no conntrack, or no type information (BTF) of it; if it is a module, load nf_conntrack: %s",
			  strerror(-err));
	return err ? -ENOTSUP : 0;
}

static int load_maps(struct store *store, const struct conn_part *first)
{
	struct flow_knobs knobs;

	if (store->options.pinned && adopt_maps(store, first))
		return 0;
	knobs = knobs_of(store);
	knobs.part = first;
	return flow_maps_load(&store->maps, &knobs, store->log);
}

static int make_first_part(const struct store *store, struct conn_part *part)
{
	int err;

	if (!store->conn_buckets)
		return 0;
	err = conn_part_make(store->part_bits, store->options.has_alerts, part);
	if (err)
		log_error(store->log, "cannot make BPF maps: %s%s",
			  strerror(-err),
			  privilege_hint(err, PRIVILEGE_PROGRAMS).text);
	return err;
}

int store_open(struct store *store, const struct store_options *options,
	       const struct log *log)
{
	__attribute__((cleanup(conn_part_close))) struct conn_part first =
		CONN_PART_NONE;
	int err;

	*store = (struct store){
		.log = log,
		.options = *options,
		.lanes = options->lanes ?: lanes_needed(),
	};
	secret_fill(&store->secret, sizeof(store->secret));

	err = find_nat(store);
	err = err ?: count_cpus(store);
	if (err)
		return err;
	store->nat.seen_buckets = nat_seen_buckets(store->n_cpus);
	err = make_first_part(store, &first);
	err = err ?: load_maps(store, &first);
	if (err)
		return err;
	err = open_store_maps(store, &first);
	err = err ?: store_take_rates(store, options->filter, &options->rate, NULL);
	err = err ?: limit_memory(store);
	if (store->is_adopted)
		return err ?: (note_kept(store), 0);
	err = err ?: open_overflow(store);
	if (!err && options->pinned)
		publish_store(store);
	return err;
}

void store_close(struct store *store)
{
	map_munmap(store->cpus, cpus_size(store));
	map_munmap(store->unclaimed, sizeof(*store->unclaimed));
	connections_close(&store->connections);
	ring_buffer__free(store->notices);
	origins_done(&store->origins);
	overflow_done(&store->overflow);
	program_set_unref(&store->maps);
	*store = (struct store){ 0 };
}

int store_load_programs_logging(struct store *store, const struct filter *filter,
				const struct rate *rate, uint16_t netns,
				enum link_kind link, const struct log *log,
				struct programs *ret_programs)
{
	const struct pinned *pinned = store->options.pinned;
	struct flow_knobs knobs = knobs_of(store);

	/* Nothing is written on a thread: there, the namespace has programs already. */
	if (pinned && pinned->state && pinned->state->n_netns <= netns)
		pinned->state->n_netns = netns + 1U;
	knobs.filter = filter;
	knobs.rate = *rate;
	knobs.netns = netns;
	knobs.link = link;
	return flow_programs_load(&store->maps, &knobs, log, ret_programs);
}

int store_load_programs(struct store *store, const struct filter *filter,
			const struct rate *rate, uint16_t netns,
			enum link_kind link, struct programs *ret_programs)
{
	return store_load_programs_logging(store, filter, rate, netns, link,
					   store->log, ret_programs);
}

struct flow_bucket *store_map_l1(const struct store *store, uint32_t generation,
				 uint32_t cpu)
{
	size_t size = l1_region_size(store);
	uint64_t region = generation * store->n_cpus + cpu;

	return map_mmap(program_set_map_fd(&store->maps, "l1_buckets"),
			region * size, size);
}

void store_unmap_l1(const struct store *store, struct flow_bucket *buckets)
{
	map_munmap(buckets, l1_region_size(store));
}

static size_t log_size(const struct store *store)
{
	return store->log_slots * sizeof(struct log_slot);
}

const struct log_slot *store_map_log(const struct store *store, uint32_t cpu)
{
	return map_mmap(program_set_map_fd(&store->maps, "log_slots"),
			(uint64_t)cpu * log_size(store), log_size(store));
}

void store_unmap_log(const struct store *store, const struct log_slot *slots)
{
	map_munmap(slots, log_size(store));
}

void store_pause(struct store *store, bool pause)
{
	for (uint32_t cpu = 0; cpu < store->n_cpus; cpu++)
		__atomic_store_n(&store->cpus[cpu].is_paused, pause,
				 __ATOMIC_SEQ_CST);
}

int store_tunnel_addrs_fd(const struct store *store)
{
	return program_set_map_fd(&store->maps, "tunnel_addrs");
}

int store_notices_fd(const struct store *store)
{
	return program_set_map_fd(&store->maps, "notices");
}

void store_clear_notices(const struct store *store)
{
	ring_buffer__consume(store->notices);
}

struct count store_unclaimed(const struct store *store)
{
	struct count count = { 0 };

	counters_add(&count, store->unclaimed, sizeof(count));
	counters_subtract(&count, &store->unclaimed_before, sizeof(count));
	return count;
}

void store_read_counters(const struct store *store, uint32_t generation,
			 struct counters *ret_counters)
{
	memset(ret_counters, 0, sizeof(*ret_counters));
	for (uint32_t cpu = 0; cpu < store->n_cpus; cpu++)
		counters_add(ret_counters, &store->cpus[cpu].counters[generation],
			     sizeof(*ret_counters));
	counters_subtract(ret_counters, &store->counted_before[generation],
			  sizeof(*ret_counters));
}
