// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * What became of packets at interfaces, in slots that are given up while programs still count in
 * them: in random orders of what programs and user space do. NETOBS_TEST_SEED repeats a run.
 */
#include "lib_seed.h"
#include "lib_test.h"

#include "engine/map.h"
#include "engine/store.h"

enum {
	ROUNDS = 50,
	STEPS = 2000,
	ORIGINS = 12, /* more than there are places for them */
	NETNS = 7,
	NOWHERE = ORIGINS, /* packets of interfaces without a slot */
	SLOTS_BYTES = OUTCOME_SLOTS * sizeof(struct outcome_slot),
};

static const struct netobs_opts few_flows = { .max_flows = 1000 };
static const struct store_options small = { .opts = &few_flows };

/* A program: it finds a slot, and counts in that some time later. */
struct program {
	bool is_running;
	uint32_t generation, origin; /* or NOWHERE */
	struct outcome_slot *slot;
};

struct model {
	struct store store;
	struct outcome_slot *slots; /* of the first CPU */
	uint32_t current;	    /* generation */
	bool is_gone[ORIGINS];
	uint64_t counted[ORIGINS + 1], taken[ORIGINS + 1];
};

/* All have the same place in common. */
static uint32_t ifindex_of(uint32_t origin)
{
	return 1 + origin * OUTCOME_PLACES;
}

/* As src/bpf/store/outcomes.h does it. */
static void program_begin(struct model *model, struct program *program)
{
	uint32_t origin = test_below(ORIGINS);
	uint64_t wanted = origin_of(NETNS, ifindex_of(origin));

	*program = (struct program){
		.is_running = true,
		.generation = model->current,
		.origin = NOWHERE,
		.slot = &model->slots[OUTCOME_PLACES],
	};
	for (uint32_t look = 0; look < OUTCOME_LOOKS; look++) {
		struct outcome_slot *slot =
			&model->slots[outcome_place(wanted, look)];

		if (!slot->origin)
			slot->origin = wanted;
		if (slot->origin != wanted)
			continue;
		program->origin = origin;
		program->slot = slot;
		return;
	}
}

static void program_end(struct model *model, struct program *program)
{
	uint32_t place =
		outcome_index(program->generation, test_below(2),
			      (enum outcome_kind)test_below(OUTCOMES_COUNTED));
	uint32_t packets = 1 + test_below(100);

	program->slot->counts[place].packets += packets;
	model->counted[program->origin] += packets;
	program->is_running = false;
}

static bool on_outcomes(void *ctx, uint16_t netns, uint32_t ifindex,
			const struct count counts[2][OUTCOMES_COUNTED])
{
	struct model *model = ctx;
	uint32_t origin = NOWHERE;

	if (ifindex) {
		origin = (ifindex - 1) / OUTCOME_PLACES;
		assert_int_equal(netns, NETNS);
		assert_in_range(origin, 0, ORIGINS - 1);
		assert_int_equal(ifindex, ifindex_of(origin));
	}
	for (int d = 0; d < 2; d++)
		for (int i = 0; i < OUTCOMES_COUNTED; i++)
			model->taken[origin] += counts[d][i].packets;
	return ifindex && !model->is_gone[origin];
}

/* Sometimes again, as after an error. */
static void take(struct model *model, uint32_t generation)
{
	do {
		assert_int_equal(outcomes_take(&model->store, generation,
					       on_outcomes, model),
				 0);
	} while (!test_below(4));
}

/* A generation is at rest once what ran in it has ended; another program may have begun since. */
static void drain(struct model *model, struct program *program)
{
	uint32_t old = model->current;

	model->current = !old;
	if (program->is_running)
		program_end(model, program);
	if (test_below(2))
		program_begin(model, program);
	take(model, old);
}

static void run_round(struct model *model)
{
	struct program program = { 0 };

	memset(model->counted, 0, sizeof(model->counted));
	memset(model->taken, 0, sizeof(model->taken));
	for (int i = 0; i < STEPS; i++) {
		if (!test_below(8))
			drain(model, &program);
		else if (!test_below(8))
			model->is_gone[test_below(ORIGINS)] = test_below(2);
		else if (program.is_running)
			program_end(model, &program);
		else
			program_begin(model, &program);
	}
	if (program.is_running)
		program_end(model, &program);
	for (int i = 0; i < ORIGINS; i++)
		model->is_gone[i] = true;
	for (int i = 0; i < 4; i++) {
		model->current = !model->current;
		take(model, !model->current);
	}
}

static int setup(void **state)
{
	static const struct log silent;
	static struct model model;

	*state = &model;
	if (store_open(&model.store, &small, &silent))
		return -1;
	model.slots =
		map_mmap(program_set_map_fd(&model.store.maps, "outcome_slots"),
			 0, SLOTS_BYTES);
	return model.slots ? 0 : -1;
}

static int teardown(void **state)
{
	struct model *model = *state;

	if (model->slots)
		map_munmap(model->slots, SLOTS_BYTES);
	store_close(&model->store);
	return 0;
}

TEST_WITH(packets_are_those_of_their_interface, setup, teardown)
{
	struct model *model = *state;

	for (int round = 0; round < ROUNDS; round++) {
		run_round(model);
		for (int i = 0; i <= ORIGINS; i++)
			assert_int_equal(model->counted[i], model->taken[i]);
		for (int i = 0; i < OUTCOME_SLOTS; i++)
			assert_int_equal(model->slots[i].origin, 0);
	}
}
