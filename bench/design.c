/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The designs of designs.bpf.c are the programs run_NAME. The map of one has as many entries as
 * there are flows, all of them allocated beforehand.
 */
#include "design.h"

#include "base/util.h"

#include "designs.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* sizeof() in designs.bpf.c, and what the kernel adds to a hash element. */
enum {
	KEY = 40,
	VALUE = 32,
	ELEMENT = 48 + 16 + 8, /* with its bucket and pointer */
	NETOBS_FLOW = 512,
	PACKETS_OFFSET = 24, /* in struct metrics */
};

const char *const design_names[] = {
	[DESIGN_EMPTY] = "empty",
	[DESIGN_EMPTY2] = "empty2",
	[DESIGN_PERCPU_HASH] = "percpu_hash",
	[DESIGN_NETOBS] = "netobs",
	[DESIGN_NAT] = "nat",
	[DESIGNS] = NULL,
};

uint64_t design_memory(int design, uint32_t flows)
{
	if (design < DESIGN_PERCPU_HASH)
		return 0;
	if (design >= DESIGN_NETOBS)
		return (uint64_t)flows * NETOBS_FLOW;
	return (uint64_t)flows *
	       (ELEMENT + KEY + (uint64_t)libbpf_num_possible_cpus() * VALUE);
}

/* ---- Designs of designs.bpf.c ------------------------------------------------ */

static int open_program(struct subject *subject, int design, uint32_t flows)
{
	struct bpf_program *program, *own;
	char name[32];
	int err;

	subject->skel = designs_bpf__open();
	if (!subject->skel)
		return -errno;
	snprintf(name, sizeof(name), "run_%s", design_names[design]);
	own = bpf_object__find_program_by_name(subject->skel->obj, name);
	bpf_object__for_each_program(program, subject->skel->obj)
		bpf_program__set_autoload(program, program == own);
	if (design == DESIGN_PERCPU_HASH)
		subject->map = subject->skel->maps.map_percpu_hash;
	bpf_map__set_autocreate(subject->skel->maps.map_percpu_hash,
				subject->map);
	bpf_map__set_max_entries(subject->skel->maps.map_percpu_hash, flows);
	err = designs_bpf__load(subject->skel);
	subject->target.prog_fd = bpf_program__fd(own);
	return err;
}

static uint64_t count_in_hash(const struct bpf_map *map)
{
	const uint32_t n = libbpf_num_possible_cpus();
	const int fd = bpf_map__fd(map);
	cleanup_free uint8_t *values = malloc((size_t)n * VALUE);
	uint8_t key[KEY];
	const void *last = NULL;
	uint64_t sum = 0;

	while (values && !bpf_map_get_next_key(fd, last, key)) {
		last = key;
		if (bpf_map_lookup_elem(fd, key, values))
			continue;
		for (uint32_t i = 0; i < n; i++) {
			uint32_t packets;

			memcpy(&packets, values + i * VALUE + PACKETS_OFFSET,
			       sizeof(packets));
			sum += packets;
		}
	}
	return sum;
}

/* ---- netobs: the library's programs -------------------------------------------- */

static int open_netobs(struct subject *subject, int design, uint32_t flows)
{
	int err;

	subject->engine = malloc(sizeof(*subject->engine));
	if (!subject->engine)
		return -ENOMEM;
	err = engine_open(subject->engine, flows,
			  design == DESIGN_NAT ? NETOBS_NAT : 0);
	subject->target = engine_target(subject->engine);
	return err;
}

/* ---- Subjects -------------------------------------------------------------- */

int subject_open(struct subject *subject, int design, uint32_t flows)
{
	int err;

	*subject = (struct subject){ .target.prog_fd = -1 };
	err = design < DESIGN_NETOBS ? open_program(subject, design, flows) :
				       open_netobs(subject, design, flows);
	if (err)
		subject_close(subject);
	return err;
}

int subject_fill(struct subject *subject, struct runner *runner)
{
	int err = subject->engine ? engine_adapt(subject->engine, runner,
						 &subject->target) :
				    0;

	return err ?: runner_fill(runner, &subject->target);
}

double subject_count(struct subject *subject)
{
	if (subject->engine) {
		engine_drain(subject->engine);
		return subject->engine->packets;
	}
	return subject->map ? count_in_hash(subject->map) : NAN;
}

void subject_close(struct subject *subject)
{
	if (subject->engine)
		engine_close(subject->engine);
	free(TAKE_PTR(subject->engine));
	designs_bpf__destroy(TAKE_PTR(subject->skel));
}
