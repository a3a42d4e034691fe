// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "drop_feed.h"

#include "base/util.h"
#include "drops.skel.h"
#include "engine/map.h"
#include "engine/store.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

static const struct log silent;

/* Programs by the number of arguments of the tracepoint, the most first; see drops.bpf.c. */
static const struct variant {
	const char *programs[2];
	bool has_reasons;
} variants[] = {
	{ { "netobs_drop_sk", "netobs_drop_sk2" }, true },
	{ { "netobs_drop_why", "netobs_drop_why2" }, true },
	{ { "netobs_drop_at", "netobs_drop_at2" }, false },
};

static int prepare_drops(struct bpf_object *object, void *ctx)
{
	struct drops_bpf__rodata *rodata =
		program_set_knobs(object, sizeof(*rodata));
	const struct drop_programs *programs = ctx;

	if (!rodata)
		return -ENOENT;
	rodata->config_has_reason = programs->has_reasons;
	rodata->config_has_nat = programs->has_nat;
	memcpy((void *)&rodata->config_nat, &programs->nat,
	       sizeof(programs->nat));
	return 0;
}

static int try_variant(struct drop_programs *programs,
		       const struct variant *variant, const struct log *log)
{
	*programs = (struct drop_programs){
		.nat = programs->nat,
		.has_nat = programs->has_nat,
		.set = { .name = "drops_bpf",
			 .elf = drops_bpf__elf_bytes,
			 .doing = "load BPF programs for dropped packets",
			 .log = log,
			 .points_only = true,
			 .points = programs->points,
			 .n_points = ARRAY_SIZE(programs->points),
			 .prepare = prepare_drops,
			 .ctx = programs },
		.points = { { .program = variant->programs[0] },
			    { .program = variant->programs[1] } },
		.has_reasons = variant->has_reasons,
	};
	return program_set_ref(&programs->set);
}

static bool is_refusal(int err)
{
	return err == -EACCES || err == -EINVAL;
}

/* COMPAT(<6.11), COMPAT(<5.17): the verifier refuses programs that use arguments the tracepoint lacks. */
static int load_variant(struct drop_programs *programs, bool no_reasons,
			const struct log *log)
{
	const size_t last = ARRAY_SIZE(variants) - 1;
	size_t i = no_reasons ? last : 0;
	int err;

	for (; i < last; i++) {
		err = try_variant(programs, &variants[i], &silent);
		if (!err)
			return 0;
		if (!is_refusal(err))
			break; /* load the same variant again, to log the error */
	}
	return try_variant(programs, &variants[i], log);
}

int drop_programs_open(struct drop_programs *programs, bool no_reasons,
		       const struct log *log)
{
	int err;

	programs->has_nat = !nat_find_layout(&programs->nat, &silent);
	err = load_variant(programs, no_reasons, log ?: &silent);
	if (err) {
		*programs = (struct drop_programs){ 0 };
		return err;
	}
	programs->set.log = &silent; /* the caller's may end before the programs */
	programs->state = program_set_mmap(&programs->set, "drop_state",
					   sizeof(*programs->state));
	programs->drops_fd = program_set_map_fd(&programs->set, "drops");
	programs->rest_fd = program_set_map_fd(&programs->set, "drops_rest");
	programs->functions_fd =
		program_set_map_fd(&programs->set, "drop_functions");
	if (programs->state)
		return 0;
	err = -errno;
	drop_programs_close(programs);
	return err;
}

void drop_programs_detach(struct drop_programs *programs)
{
	for (size_t i = 0; i < ARRAY_SIZE(programs->points); i++)
		program_set_detach(&programs->set, programs->points[i].program);
}

void drop_programs_close(struct drop_programs *programs)
{
	if (programs->state)
		map_munmap(programs->state, sizeof(*programs->state));
	program_set_unref(&programs->set);
	*programs = (struct drop_programs){ 0 };
}

/* COMPAT(<6.1): there a program of a tracepoint is not refused, and it counts what it misses. */
uint64_t drop_programs_missed(const struct drop_programs *programs)
{
	const struct bpf_program *first;
	uint64_t nested, missed, skipped;

	if (!programs->set.object)
		return 0;
	first = bpf_object__find_program_by_name(programs->set.object,
						 programs->points[0].program);
	skipped = first ? program_misses(first) : 0;
	nested = __atomic_load_n(&programs->state->nested, __ATOMIC_RELAXED);
	missed = __atomic_load_n(&programs->state->missed, __ATOMIC_RELAXED);
	return missed + (skipped > nested ? skipped - nested : 0);
}
