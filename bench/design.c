/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The designs of designs.bpf.c are program run_NAME over map map_NAME, which has
 * as many entries as there are flows, all of them allocated beforehand.
 */
#include "design.h"

#include "engine.h"
#include "base/util.h"

#include "designs.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* sizeof() in designs.bpf.c, and what the kernel adds to a hash element. */
enum {
	KEY = 40,
	VALUE = 32,
	LOCKED = 40,
	TRANSLATED = 48,
	ELEMENT = 48,
	BUCKET = 16,
	POINTER = 8,
	FLOOR = 256,
	HASH_ENTRY = ELEMENT + BUCKET + KEY,
	NETOBS_FLOW = 512,
	RING_RECORD = 80,    /* with its header */
	PACKETS_OFFSET = 24, /* in struct metrics */
};

/* ---- Maps ------------------------------------------------------------------ */

/* Of all programs and maps only those of the design. Returns its program. */
static struct bpf_program *pick_parts(struct subject *subject)
{
	struct bpf_object *object = subject->skel->obj;
	struct bpf_program *program, *picked;
	struct bpf_map *map;
	char name[32];

	snprintf(name, sizeof(name), "run_%s", subject->design->name);
	picked = bpf_object__find_program_by_name(object, name);
	bpf_object__for_each_program(program, object)
		bpf_program__set_autoload(program, program == picked);
	snprintf(name, sizeof(name), "map_%s", subject->design->name);
	subject->map = bpf_object__find_map_by_name(object, name);
	bpf_object__for_each_map(map, object) {
		bpf_map__set_autocreate(map, map == subject->map);
		if (bpf_map__max_entries(map) == 1)
			bpf_map__set_max_entries(map,
						 subject->runner->spread->room);
	}
	return picked;
}

static int open_hash(struct subject *subject)
{
	struct bpf_program *program;
	int err;

	subject->skel = designs_bpf__open();
	if (!subject->skel)
		return -errno;
	program = pick_parts(subject);
	err = designs_bpf__load(subject->skel);
	subject->prog_fd = bpf_program__fd(program);
	return err;
}

static void close_hash(struct subject *subject)
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

static uint64_t count_in_hash(struct subject *subject)
{
	const struct bpf_map *map = subject->map;
	uint32_t n = bpf_map__type(map) == BPF_MAP_TYPE_PERCPU_HASH ?
			     subject->runner->spread->n_cpus :
			     1;
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

static const struct design_kind uncounted_kind = {
	.open = open_hash,
	.close = close_hash,
};

static const struct design_kind hash_kind = {
	.open = open_hash,
	.count = count_in_hash,
	.close = close_hash,
};

/* ---- empty, empty2: part of spread.bpf.c -------------------------------------------- */

static int open_empty(struct subject *subject)
{
	bool is_second = subject->design == &designs[DESIGN_EMPTY2];

	subject->prog_fd = spread_empty_fd(subject->runner->spread, is_second);
	return 0;
}

static const struct design_kind empty_kind = { .open = open_empty };

/* ---- ringbuf: the records are thrown away between runs ----------------------- */

struct ring {
	_Atomic unsigned long *consumer; /* a page of its own, mapped */
	_Atomic unsigned long *producer; /* a page, likewise */
	size_t page;
};

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
	int err = ring ? open_hash(subject) : -ENOMEM;

	if (err)
		return err;
	subject->load = (struct load){
		/* What all CPUs write meanwhile must fit, and does twice. */
		.burst = max_u64(bpf_map__max_entries(subject->map) / RING_RECORD /
					 2 / subject->runner->n_cpus,
				 1),
		.pause = discard_records,
		.user = ring,
	};
	return map_ring(ring, bpf_map__fd(subject->map));
}

static void close_ringbuf(struct subject *subject)
{
	struct ring *ring = subject->state;

	if (ring && ring->consumer)
		munmap((void *)ring->consumer, ring->page);
	if (ring && ring->producer)
		munmap((void *)ring->producer, ring->page);
	free(TAKE_PTR(subject->state));
	close_hash(subject);
}

static const struct design_kind ringbuf_kind = {
	.open = open_ringbuf,
	.close = close_ringbuf,
};

/* ---- netobs: the library's programs -------------------------------------------- */

static int open_netobs(struct subject *subject)
{
	const struct design *design = subject->design;
	const struct runner *runner = subject->runner;
	const struct store_options special = {
		.clock = runner->clock,
		.direction = direction_of_index(subject->direction),
		.log_slots = design->has_no_logs ? STORE_LOG_NONE : 0,
		.filter = design->is_filtered ? runner->filter : NULL,
		.rtt = design->rtt,
		.has_alerts = design->has_alerts,
		.has_nat = design->has_nat,
	};
	struct engine *engine = subject->state = malloc(sizeof(*engine));
	int err;

	if (!engine)
		return -ENOMEM;
	err = engine_open(engine, runner->spread->room, &special);
	if (!err)
		subject->prog_fd = engine->programs.fds[subject->direction];
	if (!err && design->has_alerts)
		err = rules_open(&engine->alerts, &engine->pipeline.store,
				 design->rules, &engine->log);
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

static const struct design_kind netobs_kind = {
	.open = open_netobs,
	.adapt = adapt_netobs,
	.fill = fill_netobs,
	.count = count_netobs,
	.check = check_netobs,
	.close = close_netobs,
};

/* ---- The table ------------------------------------------------------------- */

#define HASH(design, flow, cpu)                                         \
	{                                                               \
		.name = design, .kind = &hash_kind, .flow_bytes = flow, \
		.flow_bytes_per_cpu = cpu,                              \
	}

#define NETOBS(design, ...)                             \
	{                                               \
		.name = design, .kind = &netobs_kind,   \
		.flow_bytes = NETOBS_FLOW, __VA_ARGS__, \
	}

#define ALERTS(design, kind) \
	NETOBS(design, .rtt = RTT_TIMERS, .has_alerts = true, .rules = kind)

const struct design designs[DESIGNS] = {
	[DESIGN_EMPTY] = { .name = "empty", .kind = &empty_kind },
	[DESIGN_EMPTY2] = { .name = "empty2", .kind = &empty_kind },
	[DESIGN_FLOOR] = { .name = "floor",
			   .kind = &uncounted_kind,
			   .flow_bytes = FLOOR },
	[DESIGN_RINGBUF] = { .name = "ringbuf", .kind = &ringbuf_kind },
	[DESIGN_HASH] = HASH("hash", HASH_ENTRY + LOCKED, 0),
	[DESIGN_HASH_SPINLOCK] = HASH("hash_spinlock", HASH_ENTRY + LOCKED, 0),
	[DESIGN_PERCPU_HASH] = HASH("percpu_hash", HASH_ENTRY + POINTER, VALUE),
	[DESIGN_OVERFLOW] = NETOBS("overflow", .has_no_logs = true),
	[DESIGN_NETOBS] = NETOBS("netobs", .rtt = RTT_OFF),
	[DESIGN_FILTERED] = NETOBS("filtered", .is_filtered = true),
	[DESIGN_RTT] = NETOBS("rtt", .rtt = RTT_TIMERS),
	[DESIGN_RTT_LRU] = NETOBS("rtt_lru", .rtt = RTT_LRU),
	[DESIGN_NAT] = NETOBS("nat", .has_nat = true),
	[DESIGN_NAT_HASH] = { .name = "nat_hash",
			      .kind = &uncounted_kind,
			      .flow_bytes = HASH_ENTRY + TRANSLATED },
	[DESIGN_ALERTS_NONE] = ALERTS("alerts_none", RULES_NONE),
	[DESIGN_ALERTS] = ALERTS("alerts", RULES_KEPT),
	[DESIGN_ALERTS_HELD] = ALERTS("alerts_held", RULES_HELD),
	[DESIGN_ALERTS_STORM] = ALERTS("alerts_storm", RULES_STORM),
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
	return subject->kind->fill ?
		       subject->kind->fill(subject) :
		       runner_fill(subject->runner, &subject->load);
}

int subject_open(struct subject *subject, const struct design *design,
		 const struct runner *runner, enum direction direction)
{
	int err;

	*subject = (struct subject){
		.design = design,
		.kind = design->kind,
		.runner = runner,
		.direction = direction,
		.prog_fd = -1,
	};
	err = subject->kind->open(subject);
	err = err ?: spread_aim(runner->spread, subject->prog_fd);
	if (!err && subject->kind->adapt)
		err = subject->kind->adapt(subject);
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
	return subject->kind->check ? subject->kind->check(subject) : 0;
}

void subject_close(struct subject *subject)
{
	if (subject->kind->close)
		subject->kind->close(subject);
	subject->prog_fd = -1;
}
