/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The designs of designs.bpf.c: program run_NAME over map map_NAME, which has
 * as many entries as there are flows, all of them allocated beforehand.
 */
#include "design_kinds.h"

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
	ELEMENT = 48,
	BUCKET = 16,
	POINTER = 8
};

static void set_map_size(struct bpf_map *map, uint32_t flows)
{
	if (bpf_map__type(map) != BPF_MAP_TYPE_RINGBUF)
		bpf_map__set_max_entries(map, flows);
}

/* Of all maps and programs only those of the design. */
static void pick(struct designs_bpf *skel, const char *name, uint32_t flows)
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
			set_map_size(map, flows);
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
	pick(skel, name, subject->runner->spread->room);
	err = designs_bpf__load(skel);
	if (!err)
		subject->prog_fd = loaded_program(skel);
	return err;
}

static void close_design(struct subject *subject)
{
	designs_bpf__destroy(TAKE_PTR(subject->skel));
}

static uint64_t no_memory(uint32_t flows, uint32_t n_cpus)
{
	(void)flows;
	(void)n_cpus;
	return 0;
}

static uint64_t hash_memory(uint32_t flows, uint32_t n_cpus)
{
	(void)n_cpus;
	return (uint64_t)flows * (ELEMENT + BUCKET + KEY + LOCKED);
}

static uint64_t percpu_hash_memory(uint32_t flows, uint32_t n_cpus)
{
	return flows *
	       (ELEMENT + BUCKET + KEY + POINTER + (uint64_t)n_cpus * VALUE);
}

static uint64_t array_memory(uint32_t flows, uint32_t n_cpus)
{
	(void)n_cpus;
	return (uint64_t)flows * VALUE;
}

static uint64_t percpu_array_memory(uint32_t flows, uint32_t n_cpus)
{
	return flows * (POINTER + (uint64_t)n_cpus * VALUE);
}

/* ---- empty: part of spread.bpf.c -------------------------------------------- */

static int open_empty(struct subject *subject)
{
	subject->prog_fd = spread_empty_fd(subject->runner->spread);
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

/* ------------------------------------------------------------------------------ */

const struct design design_empty = {
	.name = "empty",
	.memory = no_memory,
	.open = open_empty,
};

const struct design design_parse = {
	.name = "parse",
	.memory = no_memory,
	.open = open_design,
	.close = close_design,
};

const struct design design_ringbuf = {
	.name = "ringbuf",
	.memory = no_memory,
	.open = open_ringbuf,
	.close = close_ringbuf,
};

const struct design design_hash = {
	.name = "hash",
	.memory = hash_memory,
	.open = open_design,
	.close = close_design,
};

const struct design design_hash_spinlock = {
	.name = "hash_spinlock",
	.memory = hash_memory,
	.open = open_design,
	.close = close_design,
};

const struct design design_percpu_hash = {
	.name = "percpu_hash",
	.memory = percpu_hash_memory,
	.open = open_design,
	.close = close_design,
};

const struct design design_array = {
	.name = "array",
	.memory = array_memory,
	.open = open_design,
	.close = close_design,
};

const struct design design_percpu_array = {
	.name = "percpu_array",
	.memory = percpu_array_memory,
	.open = open_design,
	.close = close_design,
};
