/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "store.h"

#include "memory_room.h"
#include "map.h"
#include "base/secret.h"
#include "base/util.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

enum {
	/* 5120 flows per CPU; 1.3 MiB, over both generations. */
	L1_BUCKETS_MAX = 5 * TUNING_BUCKETS_UNIT,
	L1_TOTAL_MAX = 64 << 20, /* bytes, over all CPUs and both generations */
	/*
	 * 1 MiB per CPU: 20 ms of 800,000 packets a second that miss L1. Programs use
	 * the shared table themselves after that.
	 */
	LOG_SLOTS_MAX = 16384,
	LOG_SLOTS_MIN = 1024,	  /* a page of 64 KiB */
	LOG_TOTAL_MAX = 32 << 20, /* bytes */
};

/* Fewer on machines with very many CPUs. */
static uint32_t choose_l1_buckets(uint32_t n_cpus)
{
	uint32_t buckets = L1_TOTAL_MAX / GENERATIONS / n_cpus /
			   sizeof(struct flow_bucket) / TUNING_BUCKETS_UNIT *
			   TUNING_BUCKETS_UNIT;

	return min_u64(max_u64(buckets, TUNING_BUCKETS_UNIT), L1_BUCKETS_MAX);
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

static size_t cpus_size(const struct store *store)
{
	return store->n_cpus * sizeof(struct cpu_state);
}

static size_t states_size(void)
{
	return GENERATIONS * sizeof(struct table_state);
}

static size_t l1_region_size(const struct store *store)
{
	return store->l1_buckets * sizeof(struct flow_bucket);
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
	return 0;
}

static struct flow_knobs knobs_of(const struct store *store)
{
	return (struct flow_knobs){
		.n_cpus = store->n_cpus,
		.l1_buckets = store->l1_buckets,
		.log_slots = store->log_slots,
		.lanes = store->lanes,
		.clock = store->options.clock,
		.secret = store->secret,
		.filter = store->options.filter,
		.sampling = store->options.sampling,
		.sampling_interval = store->options.sampling_interval,
	};
}

uint64_t store_bytes(const struct store *store)
{
	return program_set_bytes(&store->maps) + tables_bytes(&store->tables);
}

/* An explicit maximum, in bytes of tables. */
static int check_max_memory(const struct store *store, uint64_t *ret_max)
{
	uint64_t fixed = program_set_bytes(&store->maps),
		 max = store->options.max_memory;
	uint64_t least = fixed + GENERATIONS * TUNING_BUCKETS_MIN *
					 sizeof(struct flow_bucket);

	if (max && max < least) {
		log_error(store->log,
			  "max_memory: too little kernel memory for %u CPUs; the least is %llu MiB",
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

/* What control groups leave; the maps that are there have been charged. */
static int limit_to_groups(struct store *store, uint64_t *max)
{
	uint64_t room = memory_room("");
	struct memory_plan plan = memory_plan(room);

	if (room == UINT64_MAX)
		return 0;
	if (!plan.table_bytes) {
		log_error(store->log,
			  "the memory control group leaves %llu MiB: %llu MiB are the least",
			  in_mib(room), in_mib(memory_room_least()));
		return -ENOMEM;
	}
	if (*max > plan.table_bytes)
		log_warning(store->log,
			    "max_memory: the memory control group leaves less: %llu MiB for flow tables",
			    in_mib(plan.table_bytes));
	else
		log_info(store->log,
			 "the memory control group leaves %llu MiB, of which flow tables may take %llu MiB",
			 in_mib(room), in_mib(plan.table_bytes));
	*max = *max ? min_u64(*max, plan.table_bytes) : plan.table_bytes;
	store->process_bytes = plan.process_bytes;
	return 0;
}

static int open_tables(struct store *store)
{
	uint64_t max;
	int err = check_max_memory(store, &max);

	err = err ?: limit_to_groups(store, &max);
	return err   ?:
		       tables_init(&store->tables,
				   program_set_map_fd(&store->maps, "l2_tables"),
				   store->states, store->options.max_flows, max,
				   store->log);
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

int store_open(struct store *store, const struct store_options *options,
	       const struct log *log)
{
	struct flow_knobs knobs;
	int err;

	*store = (struct store){
		.log = log,
		.options = *options,
		.lanes = options->lanes ?: lanes_needed(),
	};
	secret_init(&store->secret);

	err = count_cpus(store);
	if (err)
		return err;
	knobs = knobs_of(store);
	err = flow_maps_load(&store->maps, &knobs, log);
	if (err)
		return err;
	store->cpus = map_mmap(program_set_map_fd(&store->maps, "cpu_states"),
			       0, cpus_size(store));
	store->states = map_mmap(program_set_map_fd(&store->maps, "table_states"),
				 0, states_size());
	if (!store->cpus || !store->states) {
		err = -errno;
		log_error(log, "cannot map BPF maps: %s", strerror(-err));
		return err;
	}
	err = origins_init(&store->origins,
			   program_set_map_fd(&store->maps, "origins"),
			   program_set_map_fd(&store->maps, "more_origins"));
	return err ?: open_tables(store);
}

void store_close(struct store *store)
{
	if (store->cpus)
		map_munmap(store->cpus, cpus_size(store));
	if (store->states)
		map_munmap(store->states, states_size());
	origins_done(&store->origins);
	tables_done(&store->tables);
	program_set_unref(&store->maps);
	*store = (struct store){ 0 };
}

int store_load_programs(struct store *store, uint16_t netns,
			enum link_kind link, struct programs *ret_programs)
{
	struct flow_knobs knobs = knobs_of(store);

	knobs.netns = netns;
	knobs.link = link;
	return flow_programs_load(&store->maps, &knobs, ret_programs);
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
	map_munmap((void *)slots, log_size(store));
}

uint64_t store_take_inserts(struct store *store, uint32_t generation)
{
	uint64_t sum = store->tables.inserts[generation];

	store->tables.inserts[generation] = 0;
	for (uint32_t cpu = 0; cpu < store->n_cpus; cpu++) {
		sum += store->cpus[cpu].inserts[generation];
		store->cpus[cpu].inserts[generation] = 0;
	}
	store->states[generation].inserts = 0;
	store->states[generation].announced = 0;
	return sum;
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

int store_events_fd(const struct store *store)
{
	return program_set_map_fd(&store->maps, "events");
}

/*
 * The ring buffer's pages are all present once they are mapped, twice its size:
 * it is mapped only while there is something in it, which is rare.
 */
int store_read_events(const struct store *store,
		      int (*on_event)(void *ctx, void *data, size_t size),
		      void *ctx)
{
	struct pollfd fd = { .fd = store_events_fd(store), .events = POLLIN };
	struct ring_buffer *ring;
	int ret;

	if (poll(&fd, 1, 0) <= 0)
		return 0;
	ring = ring_buffer__new(fd.fd, on_event, ctx, NULL);
	if (!ring)
		return -errno;
	ret = ring_buffer__consume(ring);
	ring_buffer__free(ring);
	return ret < 0 ? ret : 0;
}

struct count store_unclaimed(const struct store *store)
{
	const struct count *count = &store->states[0].unclaimed;

	return (struct count){
		__atomic_load_n(&count->packets, __ATOMIC_RELAXED),
		__atomic_load_n(&count->bytes, __ATOMIC_RELAXED),
	};
}

/* Counters are nothing but 64-bit sums. */
static void add_counters(struct counters *to, const struct counters *from)
{
	const __u64 *value = (const __u64 *)from;
	__u64 *sum = (__u64 *)to;

	for (size_t i = 0; i < sizeof(*to) / sizeof(*sum); i++)
		sum[i] += value[i];
}

void store_read_counters(const struct store *store, uint32_t generation,
			 struct counters *ret_counters)
{
	memset(ret_counters, 0, sizeof(*ret_counters));
	for (uint32_t cpu = 0; cpu < store->n_cpus; cpu++)
		add_counters(ret_counters,
			     &store->cpus[cpu].counters[generation]);
}
