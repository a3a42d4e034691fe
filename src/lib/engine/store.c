// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "store.h"

#include "base/hash.h"
#include "base/privilege.h"
#include "base/util.h"
#include "filter/filter.h"
#include "map.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <netobs/probe.h>
#include <string.h>

/* ---- Open and close --------------------------------------------------------------- */

static size_t cpus_size(const struct store *store)
{
	return store->n_cpus * sizeof(struct cpu_state);
}

/* A notice carries no data: its arrival says that the logs are to be read. */
static int ignore_notice(void *ctx, void *data, size_t size)
{
	(void)ctx;
	(void)data;
	(void)size;
	return 0;
}

static int open_overflow(struct store *store)
{
	int err = overflow_init(&store->overflow,
				program_set_map_fd(&store->maps, "overflows"),
				store->options.opts->max_flows,
				store->overflow_bytes);

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

/* A kernel with PREEMPT_RT reports it there. */
static uint32_t lanes_needed(void)
{
	cleanup_fd int fd = open("/sys/kernel/realtime", O_RDONLY | O_CLOEXEC);
	char is_realtime = '0';

	return fd >= 0 && read(fd, &is_realtime, 1) == 1 && is_realtime == '1' ?
		       LANES_MAX :
		       1;
}

static int find_nat(struct store *store)
{
	const struct netobs_opts *opts = store->options.opts;
	int err = 0;

	if (opts->flags & NETOBS_NAT)
		err = opts->disable_features >> NETOBS_FEATURE_NAT & 1 ?
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
	if (store->options.pinned && store_adopt(store, first))
		return 0;
	return flow_maps_load(store, first, NULL, store->log);
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
	err = err ?: store_choose_sizes(store);
	if (err)
		return err;
	store->nat.seen_buckets = nat_seen_buckets(store->n_cpus);
	err = make_first_part(store, &first);
	err = err ?: load_maps(store, &first);
	if (err)
		return err;
	err = open_store_maps(store, &first);
	err = err ?: store_take_rates(store, options->filter, &options->rate, NULL);
	err = err ?: store_limit_memory(store);
	if (!err)
		store_open_leaving(store);
	if (store->is_adopted)
		return err ?: (store_note_kept(store), 0);
	err = err ?: open_overflow(store);
	if (!err && options->pinned)
		store_publish(store);
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
	program_set_unref(&store->leaving);
	program_set_unref(&store->maps);
	*store = (struct store){ 0 };
}

/* ---- Use --------------------------------------------------------------------------- */

int store_load_programs(struct store *store, const struct filter *filter,
			const struct rate *rate, uint16_t netns,
			enum link_kind link, struct programs *ret_programs)
{
	return store_load_programs_logging(store, filter, rate, netns, link,
					   store->log, ret_programs);
}

static size_t l1_region_size(const struct store *store)
{
	return store->l1_buckets * sizeof(struct flow_bucket);
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

/* ---- Counters ------------------------------------------------------------------------ */

uint64_t store_bytes(const struct store *store)
{
	return program_set_bytes(&store->maps) +
	       overflow_bytes(&store->overflow) +
	       conn_parts_bytes(&store->connections.parts);
}

struct count store_unclaimed(const struct store *store)
{
	struct count count = { 0 };

	counters_add(&count, store->unclaimed, sizeof(count));
	counters_subtract(&count, &store->unclaimed_before, sizeof(count));
	return count;
}

/* ---- Sampling rates ----------------------------------------------------------------- */

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

/* Clear samplers of new numbers, which no program uses: they may be of a longer interval. */
static void reset_samplers(struct store *store, uint32_t numbers)
{
	for (uint32_t cpu = 0; store->cpus && cpu < store->n_cpus; cpu++)
		for (uint32_t i = 0; i < RATES; i++)
			if (numbers & 1U << i)
				store->cpus[cpu].samplers[i] =
					(struct sampler){ 0 };
}

int store_number_rates(const struct store *store, struct rates *rates,
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
