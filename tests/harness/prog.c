// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "prog.h"

#include "base/util.h"
#include "bpf/store/conn_places.h"
#include "bpf/store/log.h"
#include "bpf/store/tally.h"
#include "bpf/nat.h" /* as the next one, of a knob of the skeleton */
#include "bpf/parse/tunnel.h"
#include "engine/map.h"
#include "host.h"

#include "flows.skel.h"
#include "flows_default.skel.h"
#include "flows_nat.skel.h"
#include "flows_rtt.skel.h"
#include "flows_rtt_nat.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The verifier log is for a developer who changes the programs. */
static int print_libbpf(enum libbpf_print_level level, const char *format,
			va_list args)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, args) : 0;
}

static size_t round_to_pages(size_t size)
{
	size_t page = sysconf(_SC_PAGESIZE);

	return (size + page - 1) / page * page;
}

/* Of all CPUs, in one generation. */
static size_t l1_buckets(const struct prog *prog)
{
	return (size_t)prog->n_cpus * prog->options.l1_buckets;
}

static void *map_array(const struct bpf_map *map)
{
	size_t size = round_to_pages((size_t)bpf_map__max_entries(map) *
				     bpf_map__value_size(map));
	void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
			   bpf_map__fd(map), 0);

	return pages == MAP_FAILED ? NULL : pages;
}

static void unmap_array(void *pages, const struct bpf_map *map)
{
	if (pages)
		munmap(pages, round_to_pages((size_t)bpf_map__max_entries(map) *
					     bpf_map__value_size(map)));
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

static int on_notice(void *ctx, void *data, size_t size)
{
	struct prog *prog = ctx;

	(void)data;
	prog->n_notices++;
	return size == sizeof(__u64) ? 0 : -EINVAL;
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

static int make_tables(struct prog *prog)
{
	for (int i = 0; i < GENERATIONS; i++) {
		prog->overflows[i] =
			map_make_overflow(prog->options.overflow_room);
		if (prog->overflows[i] < 0)
			return prog->overflows[i];
	}
	return 0;
}

static int put_tables(struct prog *prog)
{
	int fd = bpf_map__fd(prog->skel->maps.overflows), err = 0;

	for (__u32 i = 0; i < GENERATIONS && !err; i++)
		err = map_update(fd, i, prog->overflows[i]);
	return err;
}

/* Of all packets. */
static void set_rate(struct flows_bpf *skel, const struct prog_options *options)
{
	skel->rodata->config_is_sampled = true;
	skel->rodata->config_judgement |= PROG_RATE << JUDGED_RATE_SHIFT;
	skel->rodata->config_rates[PROG_RATE].interval =
		options->sampling_interval;
	skel->rodata->config_rates[PROG_RATE].mode = options->sampling;
}

static int size_alerts(struct flows_bpf *skel, const struct prog *prog)
{
	int err;

	if (!prog->options.has_alerts)
		return 0;
	skel->rodata->config_alerts = true;
	err = bpf_map__set_max_entries(skel->maps.alert_counts,
				       prog->n_cpus * ALERT_SLOTS);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.alert_prefixes,
					       prog->n_cpus * 2 * ALERT_RULES_MAX);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.alert_exhausted,
					       prog->n_cpus * 2 * ALERT_METRICS);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.alert_holds,
					       ALERT_HOLD_BUCKETS);
	return err;
}

static __u32 count_places(const struct prog *prog)
{
	return CONN_WAYS * prog->options.conn_buckets;
}

/* The bodies of connections, and what rules know about these. */
static int set_first_part(const struct flows_bpf *skel, struct prog *prog)
{
	int err = conn_part_make(prog->part_bits, prog->options.has_alerts,
				 &prog->parts[0]);

	if (!err)
		err = bpf_map__set_inner_map_fd(skel->maps.conn_bodies,
						prog->parts[0].bodies);
	if (!err && prog->options.has_alerts)
		err = bpf_map__set_inner_map_fd(skel->maps.alert_states,
						prog->parts[0].states);
	return err;
}

static int size_parts(struct flows_bpf *skel, struct prog *prog)
{
	const __u32 n = prog->options.conn_parts;
	int err;

	if (!count_places(prog))
		return 0;
	while (n << prog->part_bits < count_places(prog))
		prog->part_bits++;
	skel->rodata->config_part_bits = prog->part_bits;
	err = set_first_part(skel, prog);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.conn_bodies, n);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.alert_states, n);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.conn_free,
					       count_places(prog));
	return err;
}

static size_t part_size(const struct prog *prog)
{
	return sizeof(struct conn_body) << prog->part_bits;
}

static int offer_bodies(const struct prog *prog, __u32 part)
{
	const int fd = bpf_map__fd(prog->skel->maps.conn_free);
	__u32 body = part << prog->part_bits;
	int err = 0;

	for (__u32 i = 0; !err && i < 1U << prog->part_bits; i++) {
		body++;
		err = bpf_map_update_elem(fd, NULL, &body, BPF_ANY);
	}
	return err;
}

/* The next one, which was made. */
static int put_part(struct prog *prog)
{
	const struct flows_bpf *skel = prog->skel;
	const __u32 number = prog->n_parts;
	const struct conn_part *part = &prog->parts[number];
	int err = 0;

	if (part->states >= 0)
		err = map_update(bpf_map__fd(skel->maps.alert_states), number,
				 part->states);
	if (!err)
		err = map_update(bpf_map__fd(skel->maps.conn_bodies), number,
				 part->bodies);
	if (err)
		return err;
	prog->conn_bodies[number] = map_mmap(part->bodies, 0, part_size(prog));
	if (!prog->conn_bodies[number])
		return -errno;
	prog->n_parts++;
	return offer_bodies(prog, number);
}

int prog_grow(struct prog *prog)
{
	const __u32 number = prog->n_parts;
	int err;

	if (number == prog->options.conn_parts)
		return -ENOSPC;
	err = conn_part_make(prog->part_bits, prog->options.has_alerts,
			     &prog->parts[number]);
	return err ?: put_part(prog);
}

static void choose_elf(struct bpf_object_skeleton *skel,
		       const struct prog_options *options)
{
	static const void *(*const elves[2][2])(size_t *) = {
		{ flows_default_bpf__elf_bytes, flows_nat_bpf__elf_bytes },
		{ flows_rtt_bpf__elf_bytes, flows_rtt_nat_bpf__elf_bytes },
	};

	if (options->is_general || options->link != LINK_ETHERNET ||
	    options->clock != CLOCK_COARSE || options->sampling_interval ||
	    options->has_alerts || options->is_rtt_lru)
		return;
	skel->data = (void *)elves[!!options->conn_buckets][!!options->has_nat](
		&skel->data_sz);
}

/* As flows_bpf__open(), with the programs that the library would choose. */
static struct flows_bpf *open_programs(const struct prog_options *options)
{
	struct flows_bpf *skel = calloc(1, sizeof(*skel));
	int err;

	if (!skel)
		return NULL;
	err = flows_bpf__create_skeleton(skel);
	if (!err) {
		choose_elf(skel->skeleton, options);
		err = bpf_object__open_skeleton(skel->skeleton, NULL);
	}
	if (!err)
		return skel;
	flows_bpf__destroy(skel);
	errno = -err;
	return NULL;
}

static int load(struct prog *prog)
{
	struct flows_bpf *skel = prog->skel = open_programs(&prog->options);
	int err;

	if (!skel)
		return -errno;
	skel->rodata->config_link = prog->options.link;
	skel->rodata->config_overflow_part =
		prog->options.overflow_room / prog->n_cpus / OVERFLOW_PARTS ?: 1;
	skel->rodata->config_clock = prog->options.clock;
	if (prog->options.sampling_interval)
		set_rate(skel, &prog->options);
	skel->rodata->config_netns = prog->options.netns;
	skel->rodata->config_cpus = prog->n_cpus;
	skel->rodata->config_l1_buckets = prog->options.l1_buckets;
	skel->rodata->config_secret = host_secret;
	bpf_program__set_autoload(skel->progs.netobs_egress,
				  prog->options.has_egress);
	if (prog->options.conn_buckets)
		skel->rodata->config_rtt = prog->options.is_rtt_lru ? RTT_LRU :
								      RTT_RING;
	skel->rodata->config_conn_buckets = prog->options.conn_buckets ?: 1;
	err = bpf_map__set_max_entries(skel->maps.conn_buckets,
				       prog->options.conn_buckets ?: 1);
	if (!err)
		err = bpf_map__set_max_entries(
			skel->maps.conn_heads,
			CONN_WAYS * (prog->options.conn_buckets ?: 1));
	if (!err && prog->options.is_rtt_lru)
		err = bpf_map__set_max_entries(skel->maps.conn_expected,
					       CONN_EXPECTED);
	if (!err)
		err = bpf_map__set_max_entries(
			skel->maps.conn_rates,
			CONN_WAYS * (prog->options.conn_buckets ?: 1));
	err = err ?: size_parts(skel, prog);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.conn_counters,
					       prog->n_cpus);
	err = err ?: bpf_map__set_max_entries(skel->maps.cpu_states, prog->n_cpus);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.l1_buckets,
					       GENERATIONS * l1_buckets(prog));
	skel->rodata->config_log_slots = prog->options.log_slots;
	if (!err)
		err = bpf_map__set_max_entries(
			skel->maps.log_slots,
			prog->n_cpus * prog->options.log_slots ?: 1);
	err = err ?: size_alerts(skel, prog);
	return err ?: flows_bpf__load(skel);
}

static int map_all(struct prog *prog)
{
	prog->cpus = map_array(prog->skel->maps.cpu_states);
	prog->l1 = map_array(prog->skel->maps.l1_buckets);
	prog->log = map_array(prog->skel->maps.log_slots);
	prog->conn_heads = map_array(prog->skel->maps.conn_heads);
	prog->conn_rates = map_array(prog->skel->maps.conn_rates);
	prog->conn_buckets = map_array(prog->skel->maps.conn_buckets);
	prog->ring = ring_buffer__new(bpf_map__fd(prog->skel->maps.notices),
				      on_notice, prog, NULL);
	prog->alert_tables = map_array(prog->skel->maps.alert_tables);
	prog->alert_ring =
		ring_buffer__new(bpf_map__fd(prog->skel->maps.alert_events),
				 take_alert, prog, NULL);
	return prog->cpus && prog->l1 && prog->log && prog->conn_heads &&
			       prog->conn_rates && prog->conn_buckets &&
			       prog->alert_tables && prog->alert_ring &&
			       prog->ring ?
		       0 :
		       -ENOMEM;
}

int prog_open(struct prog *prog, const struct prog_options *options)
{
	int err;

	*prog = (struct prog){
		.options = *options,
		.n_cpus = libbpf_num_possible_cpus(),
		.overflows = { -1, -1 },
	};
	for (__u32 i = 0; i < PROG_PARTS_MAX; i++)
		prog->parts[i] = (struct conn_part){ -1, -1 };
	prog->options.conn_parts = options->conn_parts ?: 1;
	prog->options.l1_buckets = options->l1_buckets ?: 1;
	prog->options.overflow_room = options->overflow_room ?: PROG_FLOWS;

	libbpf_set_print(print_libbpf);
	err = load(prog);
	err = err ?: map_all(prog);
	if (!err && prog->options.conn_buckets)
		err = put_part(prog);
	err = err ?: make_tables(prog);
	err = err ?: put_tables(prog);
	if (err) {
		fprintf(stderr, "BPF programs (root is needed): %s\n",
			strerror(-err));
		prog_close(prog);
	}
	return err;
}

void prog_close(struct prog *prog)
{
	ring_buffer__free(prog->ring);
	ring_buffer__free(prog->alert_ring);
	if (prog->skel) {
		unmap_array(prog->alert_tables, prog->skel->maps.alert_tables);
		unmap_array(prog->cpus, prog->skel->maps.cpu_states);
		unmap_array(prog->l1, prog->skel->maps.l1_buckets);
		unmap_array(prog->log, prog->skel->maps.log_slots);
		unmap_array(prog->conn_heads, prog->skel->maps.conn_heads);
		unmap_array(prog->conn_rates, prog->skel->maps.conn_rates);
		unmap_array(prog->conn_buckets, prog->skel->maps.conn_buckets);
	}
	for (__u32 i = 0; i < prog->options.conn_parts; i++) {
		map_munmap(prog->conn_bodies[i], part_size(prog));
		conn_part_close(&prog->parts[i]);
	}
	for (int i = 0; i < GENERATIONS; i++)
		close_fd(&prog->overflows[i]);
	flows_bpf__destroy(prog->skel);
	*prog = (struct prog){ .overflows = { -1, -1 } };
}

struct connection prog_connection_at(const struct prog *prog, __u32 place)
{
	const __u32 number = prog->conn_rates[place].body - 1;
	const __u32 part = number >> prog->part_bits;

	if (part >= prog->n_parts)
		return (struct connection){ NULL, NULL, NULL };
	return (struct connection){
		.head = &prog->conn_heads[place],
		.rates = &prog->conn_rates[place],
		.body = &prog->conn_bodies[part][number - (part << prog->part_bits)],
	};
}

struct connection prog_connection(const struct prog *prog,
				  const struct flow_key *key)
{
	int dir = connection_dir(key);
	struct conn_key wanted = conn_key_of(key, dir);

	for (__u32 i = 0; i < count_places(prog); i++) {
		const struct connection conn = prog_connection_at(prog, i);

		if (conn.body && conn.head->version &&
		    is_connection(conn.body, &wanted))
			return conn;
	}
	return (struct connection){ NULL, NULL, NULL };
}

struct conn_counters prog_conn_counters(const struct prog *prog)
{
	struct conn_counters sum = { 0 }, one;
	__u64 *to = (__u64 *)&sum, *from = (__u64 *)&one;

	for (__u32 cpu = 0; cpu < prog->n_cpus; cpu++) {
		if (bpf_map_lookup_elem(bpf_map__fd(prog->skel->maps.conn_counters),
					&cpu, &one))
			return (struct conn_counters){ 0 };
		for (size_t i = 0; i < sizeof(one) / sizeof(*from); i++)
			to[i] += from[i];
	}
	return sum;
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
	int err = zero_array(prog->skel->maps.alert_counts);

	err = err ?: zero_array(prog->skel->maps.alert_prefixes);
	err = err ?: zero_array(prog->skel->maps.alert_exhausted);
	prog->on_alert = NULL;
	prog_read_alerts(prog);
	memset(prog->alert_tables, 0, sizeof(*prog->alert_tables));
	err = err ?: zero_array(prog->skel->maps.alert_limits);
	err = err ?: zero_array(prog->skel->maps.alert_holds);
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

static int empty_hash(int fd, void *key)
{
	int err = 0;

	while (!err && !bpf_map_get_next_key(fd, NULL, key))
		err = bpf_map_delete_elem(fd, key);
	return err;
}

/* No place has one. */
static int reset_bodies(struct prog *prog)
{
	const int fd = bpf_map__fd(prog->skel->maps.conn_free);
	__u32 body;
	int err = 0;

	while (!bpf_map_lookup_and_delete_elem(fd, NULL, &body))
		;
	for (__u32 i = 0; !err && i < prog->n_parts; i++) {
		memset(prog->conn_bodies[i], 0, part_size(prog));
		err = offer_bodies(prog, i);
	}
	return err;
}

int prog_reset(struct prog *prog)
{
	struct fragment_key fragment;
	struct overflow_key overflow;

	ring_buffer__consume(prog->ring);
	memset(prog->l1, 0, GENERATIONS * l1_buckets(prog) * sizeof(*prog->l1));
	for (__u32 cpu = 0; cpu < prog->n_cpus; cpu++)
		memset(&prog->cpus[cpu], 0, sizeof(prog->cpus[cpu]));
	for (__u32 cpu = 0; cpu < prog->n_cpus; cpu++) {
		const struct conn_counters none = { 0 };

		if (bpf_map_update_elem(bpf_map__fd(prog->skel->maps.conn_counters),
					&cpu, &none, BPF_ANY))
			return -EIO;
	}
	for (__u32 i = 0; i < prog->options.conn_buckets; i++)
		memset(&prog->conn_buckets[i], 0, sizeof(prog->conn_buckets[i]));
	for (__u32 i = 0; i < prog->options.conn_buckets * CONN_WAYS; i++) {
		memset(&prog->conn_heads[i], 0, sizeof(prog->conn_heads[i]));
		memset(&prog->conn_rates[i], 0, sizeof(prog->conn_rates[i]));
	}
	if (reset_bodies(prog))
		return -EIO;
	for (int i = 0; i < GENERATIONS; i++)
		if (empty_hash(prog->overflows[i], &overflow))
			return -EIO;
	prog->n_notices = 0;
	if (prog->lacks_table && put_tables(prog)) /* which waits for the kernel */
		return -EIO;
	prog->lacks_table = false;
	return empty_hash(bpf_map__fd(prog->skel->maps.fragments), &fragment);
}

int prog_pin(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

int prog_run(struct prog *prog, const struct prog_packet *packet,
	     __u32 *ret_verdict)
{
	const struct bpf_program *program =
		packet->egress ? prog->skel->progs.netobs_egress :
				 prog->skel->progs.netobs_ingress;
	struct __sk_buff ctx = {
		.gso_segs = packet->gso_segs,
		.gso_size = packet->gso_size,
		.cb = { packet->time_ns & UINT32_MAX, packet->time_ns >> 32,
			packet->wire_len ?: packet->len },
	};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet->bytes,
		    .data_size_in = packet->len, .ctx_in = &ctx,
		    .ctx_size_in = sizeof(ctx), .repeat = packet->repeat);
	int err = bpf_prog_test_run_opts(bpf_program__fd(program), &opts);

	prog->took_ns = opts.duration;
	if (!err && ret_verdict)
		*ret_verdict = opts.retval;
	return err;
}

void prog_set_generation(struct prog *prog, __u32 generation)
{
	for (__u32 cpu = 0; cpu < prog->n_cpus; cpu++)
		__atomic_store_n(&prog->cpus[cpu].generation, generation,
				 __ATOMIC_SEQ_CST);
}

/* The @i-th entry of a generation's part of L1. */
static const struct flow_entry *l1_entry(const struct prog *prog,
					 __u32 generation, size_t i)
{
	const struct flow_bucket *bucket =
		&prog->l1[generation * l1_buckets(prog) + i / BUCKET_SLOTS];

	return &bucket->entries[i % BUCKET_SLOTS];
}

static size_t l1_entries(const struct prog *prog)
{
	return l1_buckets(prog) * BUCKET_SLOTS;
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

	for (__u32 cpu = 0; cpu < prog->n_cpus; cpu++) {
		const struct counters *one =
			&prog->cpus[cpu].counters[generation];

		add_count(&sum.seen, &one->seen);
		add_count(&sum.filtered, &one->filtered);
		add_count(&sum.sampled_out, &one->sampled_out);
		for (int i = 0; i < UNPARSED_MAX; i++)
			add_count(&sum.unparsed[i], &one->unparsed[i]);
		for (int i = 0; i < LOST_MAX; i++)
			add_count(&sum.lost[i], &one->lost[i]);
		add_count(&sum.spilled, &one->spilled);
	}
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
