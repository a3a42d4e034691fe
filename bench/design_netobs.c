/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "design_kinds.h"

#include "engine.h"
#include "base/util.h"

#include <errno.h>

enum { PER_FLOW = 512 };

static uint64_t memory(uint32_t flows, uint32_t n_cpus)
{
	(void)n_cpus;
	return (uint64_t)flows * PER_FLOW;
}

static int open_netobs(struct subject *subject)
{
	struct engine *engine = malloc(sizeof(*engine));
	int err;

	if (!engine)
		return -ENOMEM;
	subject->state = engine;
	err = engine_open(engine, subject->runner->spread->room);
	if (!err)
		subject->prog_fd = engine_program(engine);
	return err;
}

static int fill(struct subject *subject)
{
	int err = engine_adapt(subject->state, subject->runner);

	return err ?: engine_fill(subject->state, subject->runner);
}

/* Packets without room cost something else than those that were counted. */
static int check(struct subject *subject)
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

const struct design design_netobs = {
	.name = "netobs",
	.memory = memory,
	.open = open_netobs,
	.fill = fill,
	.check = check,
	.close = close_netobs,
};
