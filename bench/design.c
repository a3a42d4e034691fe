/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The designs of designs.bpf.c are program run_NAME over map map_NAME, which has
 * as many entries as there are flows, all of them allocated beforehand.
 */
#include "design.h"

#include "engine.h"
#include "rules.h"
#include "base/util.h"

#include "designs.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* ---- Maps ------------------------------------------------------------------ */

/* sizeof() in designs.bpf.c, and what the kernel adds to a hash element. */
enum {
	KEY = 40,
	VALUE = 32,
	LOCKED = 40,
	ELEMENT = 48,
	BUCKET = 16,
	POINTER = 8,
	HASH_ENTRY = ELEMENT + BUCKET + KEY,
	NETOBS_FLOW = 512,
	PACKETS_OFFSET = 24, /* in struct metrics */
};

static void set_map_size(struct bpf_map *map, const struct runner *runner)
{
	if (!strcmp(bpf_map__name(map), "map_log"))
		bpf_map__set_max_entries(map, runner->spread->n_cpus);
	else if (bpf_map__type(map) != BPF_MAP_TYPE_RINGBUF)
		bpf_map__set_max_entries(map, runner->spread->room);
}

/* Of all maps and programs only those of the design. */
static void pick(struct designs_bpf *skel, const char *name,
		 const struct runner *runner)
{
	struct bpf_program *program;
	struct bpf_map *map;

	bpf_object__for_each_program(program, skel->obj) {
		const char *suffix = bpf_program__name(program) + strlen("run_");

		bpf_program__set_autoload(program, !strcmp(suffix, name));
	}
	bpf_object__for_each_map(map, skel->obj) {
		bool is_used = !strcmp(bpf_map__name(map) + strlen("map_"), name);

		bpf_map__set_autocreate(map, is_used);
		if (is_used)
			set_map_size(map, runner);
	}
}

static int loaded_program(const struct designs_bpf *skel)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, skel->obj) {
		if (bpf_program__fd(program) >= 0)
			return bpf_program__fd(program);
	}
	return -ENOENT;
}

static int open_design(struct subject *subject)
{
	const char *name = subject->design->name;
	struct designs_bpf *skel = subject->skel = designs_bpf__open();
	int err;

	if (!skel)
		return -errno;
	pick(skel, name, subject->runner);
	err = designs_bpf__load(skel);
	if (!err)
		subject->prog_fd = loaded_program(skel);
	return err;
}

static void close_design(struct subject *subject)
{
	designs_bpf__destroy(TAKE_PTR(subject->skel));
}

static uint64_t sum_packets(const uint8_t *values, uint32_t n, size_t size)
{
	uint64_t sum = 0;
	uint32_t packets;

	for (uint32_t i = 0; i < n; i++, values += size) {
		memcpy(&packets, values + PACKETS_OFFSET, sizeof(packets));
		sum += packets;
	}
	return sum;
}

static const struct bpf_map *created_map(const struct subject *subject)
{
	const struct bpf_map *map;

	bpf_object__for_each_map(map, subject->skel->obj) {
		if (bpf_map__autocreate(map))
			return map;
	}
	return NULL;
}

static uint64_t count_in_map(struct subject *subject)
{
	const struct bpf_map *map = created_map(subject);
	enum bpf_map_type type = bpf_map__type(map);
	bool is_percpu = type == BPF_MAP_TYPE_PERCPU_HASH ||
			 type == BPF_MAP_TYPE_PERCPU_ARRAY;
	uint32_t n = is_percpu ? subject->runner->spread->n_cpus : 1;
	uint32_t size = bpf_map__value_size(map); /* a multiple of 8 */
	cleanup_free uint8_t *values = malloc((size_t)n * size);
	uint8_t key[KEY];
	const void *last = NULL;
	uint64_t sum = 0;

	while (values && !bpf_map_get_next_key(bpf_map__fd(map), last, key)) {
		if (!bpf_map_lookup_elem(bpf_map__fd(map), key, values))
			sum += sum_packets(values, n, size);
		last = key;
	}
	return sum;
}

/* ---- empty, empty2: part of spread.bpf.c -------------------------------------------- */

static int open_empty(struct subject *subject)
{
	bool is_second = subject->design == &designs[DESIGN_EMPTY2];

	subject->prog_fd = spread_empty_fd(subject->runner->spread, is_second);
	return 0;
}

/* ---- ringbuf: the records are thrown away between runs ----------------------- */

struct ring {
	_Atomic unsigned long *consumer; /* a page of its own, mapped */
	_Atomic unsigned long *producer; /* a page, likewise */
	size_t page;
};

enum { RECORD = 80 /* with its header */ };

static void discard_records(void *user)
{
	struct ring *ring = user;

	atomic_store(ring->consumer, atomic_load(ring->producer));
}

static void *map_ring_page(const struct ring *ring, int fd, int prot, int n)
{
	void *page = mmap(NULL, ring->page, prot, MAP_SHARED, fd, n * ring->page);

	return page == MAP_FAILED ? NULL : page;
}

static int map_ring(struct ring *ring, int fd)
{
	ring->page = sysconf(_SC_PAGESIZE);
	ring->consumer = map_ring_page(ring, fd, PROT_READ | PROT_WRITE, 0);
	ring->producer = map_ring_page(ring, fd, PROT_READ, 1);
	return ring->consumer && ring->producer ? 0 : -errno;
}

static int open_ringbuf(struct subject *subject)
{
	struct ring *ring = subject->state = calloc(1, sizeof(*ring));
	const struct bpf_map *map;
	int err = ring ? open_design(subject) : -ENOMEM;

	if (err)
		return err;
	map = subject->skel->maps.map_ringbuf;
	subject->load = (struct load){
		/* What all CPUs write meanwhile must fit, and does twice. */
		.burst = max_u64(bpf_map__max_entries(map) / RECORD / 2 /
					 subject->runner->n_cpus,
				 1),
		.pause = discard_records,
		.user = ring,
	};
	return map_ring(ring, bpf_map__fd(map));
}

static void close_ringbuf(struct subject *subject)
{
	struct ring *ring = subject->state;

	if (ring && ring->consumer)
		munmap((void *)ring->consumer, ring->page);
	if (ring && ring->producer)
		munmap((void *)ring->producer, ring->page);
	free(TAKE_PTR(subject->state));
	close_design(subject);
}

/* ---- netobs: the library's programs -------------------------------------------- */

static bool has_rules(const struct design *design, enum rules_kind *ret_kind)
{
	if (design < &designs[DESIGN_ALERTS_NONE])
		return false;
	*ret_kind = (enum rules_kind)(design - &designs[DESIGN_ALERTS_NONE]);
	return true;
}

static int open_netobs(struct subject *subject)
{
	struct engine *engine = malloc(sizeof(*engine));
	struct store_options special = { .clock = subject->runner->clock };
	enum rules_kind rules = RULES_NONE;
	int err;

	if (!engine)
		return -ENOMEM;
	subject->state = engine;
	if (subject->design == &designs[DESIGN_OVERFLOW])
		special.log_slots = STORE_LOG_NONE;
	if (subject->design == &designs[DESIGN_FILTERED])
		special.filter = subject->runner->filter;
	if (subject->design == &designs[DESIGN_RTT])
		special.rtt = RTT_RING;
	if (subject->design == &designs[DESIGN_RTT_LRU])
		special.rtt = RTT_LRU;
	special.has_alerts = has_rules(subject->design, &rules);
	if (special.has_alerts)
		special.rtt = RTT_RING;
	err = engine_open(engine, subject->runner->spread->room, &special);
	if (!err)
		subject->prog_fd = engine->programs.fds[subject->direction];
	if (!err && special.has_alerts)
		err = rules_open(&engine->alerts, &engine->pipeline.store,
				 rules, &engine->log);
	subject->load = (struct load){ .burst = ENGINE_BURST,
				       .pause = engine_tend,
				       .attend = engine_attend,
				       .user = engine };
	return err;
}

static int adapt_netobs(struct subject *subject)
{
	struct engine *engine = subject->state;
	int err = engine_adapt(engine, subject->runner);

	engine->packets_before = engine_packets(engine);
	return err;
}

static int fill_netobs(struct subject *subject)
{
	return engine_fill(subject->state, subject->runner);
}

static uint64_t count_netobs(struct subject *subject)
{
	struct engine *engine = subject->state;

	engine_drain(engine);
	return engine_packets(engine) - engine->packets_before;
}

/* Packets without room cost something else than those that were counted. */
static int check_netobs(struct subject *subject)
{
	struct engine *engine = subject->state;
	struct engine_tally before = engine_tally(engine);

	engine_drain(engine);
	return engine_has_room(engine, &before) ? 0 : -ENOSPC;
}

static void close_netobs(struct subject *subject)
{
	if (subject->state)
		engine_close(subject->state);
	free(TAKE_PTR(subject->state));
}

/* ---- The table ------------------------------------------------------------- */

#define MAP_DESIGN(design, flow, cpu)                                          \
	{                                                                      \
		.name = design, .flow_bytes = flow, .flow_bytes_per_cpu = cpu, \
		.open = open_design, .close = close_design,                    \
	}

#define COUNTING_DESIGN(design, flow, cpu)                                     \
	{                                                                      \
		.name = design, .flow_bytes = flow, .flow_bytes_per_cpu = cpu, \
		.open = open_design, .count = count_in_map,                    \
		.close = close_design,                                         \
	}

#define NETOBS_DESIGN(design)                                 \
	{                                                     \
		.name = design, .flow_bytes = NETOBS_FLOW,    \
		.open = open_netobs, .adapt = adapt_netobs,   \
		.fill = fill_netobs, .count = count_netobs,   \
		.check = check_netobs, .close = close_netobs, \
	}

const struct design designs[DESIGNS] = {
	[DESIGN_EMPTY] = { .name = "empty", .open = open_empty },
	[DESIGN_EMPTY2] = { .name = "empty2", .open = open_empty },
	[DESIGN_PARSE] = MAP_DESIGN("parse", 0, 0),
	[DESIGN_RINGBUF] = { .name = "ringbuf",
			     .open = open_ringbuf,
			     .close = close_ringbuf },
	[DESIGN_HASH] = COUNTING_DESIGN("hash", HASH_ENTRY + LOCKED, 0),
	[DESIGN_HASH_SPINLOCK] =
		COUNTING_DESIGN("hash_spinlock", HASH_ENTRY + LOCKED, 0),
	[DESIGN_PERCPU_HASH] =
		COUNTING_DESIGN("percpu_hash", HASH_ENTRY + POINTER, VALUE),
	[DESIGN_ARRAY] = COUNTING_DESIGN("array", VALUE, 0),
	[DESIGN_PERCPU_ARRAY] = COUNTING_DESIGN("percpu_array", POINTER, VALUE),
	[DESIGN_LOG] = COUNTING_DESIGN("log", 0, 0),
	[DESIGN_OVERFLOW] = NETOBS_DESIGN("overflow"),
	[DESIGN_NETOBS] = NETOBS_DESIGN("netobs"),
	[DESIGN_FILTERED] = NETOBS_DESIGN("filtered"),
	[DESIGN_RTT] = NETOBS_DESIGN("rtt"),
	[DESIGN_RTT_LRU] = NETOBS_DESIGN("rtt_lru"),
	[DESIGN_ALERTS_NONE + RULES_NONE] = NETOBS_DESIGN("alerts_none"),
	[DESIGN_ALERTS_NONE + RULES_KEPT] = NETOBS_DESIGN("alerts"),
	[DESIGN_ALERTS_NONE + RULES_HELD] = NETOBS_DESIGN("alerts_held"),
	[DESIGN_ALERTS_NONE + RULES_STORM] = NETOBS_DESIGN("alerts_storm"),
};

uint64_t design_memory(const struct design *design, uint32_t flows,
		       uint32_t n_cpus)
{
	return flows * (design->flow_bytes +
			(uint64_t)n_cpus * design->flow_bytes_per_cpu);
}

/* ---- Subjects -------------------------------------------------------------- */

int subject_fill(struct subject *subject)
{
	return subject->design->fill ?
		       subject->design->fill(subject) :
		       runner_fill(subject->runner, &subject->load);
}

int subject_open(struct subject *subject, const struct design *design,
		 const struct runner *runner, enum direction direction)
{
	int err;

	*subject = (struct subject){
		.design = design,
		.runner = runner,
		.direction = direction,
		.prog_fd = -1,
	};
	err = design->open(subject);
	err = err ?: spread_aim(runner->spread, subject->prog_fd);
	if (!err && design->adapt)
		err = design->adapt(subject);
	if (err)
		subject_close(subject);
	return err;
}

int subject_measure(struct subject *subject, const struct load *load,
		    double *ret_ns)
{
	struct load whole = *load;

	whole.burst = subject->load.burst ?: load->burst;
	/* BPF_PROG_TEST_RUN is too fast for a reader beside it. */
	if (subject->runner->wire && subject->load.attend)
		whole.attend = subject->load.attend;
	else
		whole.pause = subject->load.pause;
	whole.user = subject->load.user;
	return runner_measure(subject->runner, &whole, ret_ns);
}

int subject_check(struct subject *subject)
{
	return subject->design->check ? subject->design->check(subject) : 0;
}

void subject_close(struct subject *subject)
{
	if (subject->design->close)
		subject->design->close(subject);
	subject->prog_fd = -1;
}
