/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "design.h"

#include "design_kinds.h"

const struct design *const designs[DESIGNS] = {
	[DESIGN_EMPTY] = &design_empty,
	[DESIGN_PARSE] = &design_parse,
	[DESIGN_RINGBUF] = &design_ringbuf,
	[DESIGN_HASH] = &design_hash,
	[DESIGN_HASH_SPINLOCK] = &design_hash_spinlock,
	[DESIGN_PERCPU_HASH] = &design_percpu_hash,
	[DESIGN_ARRAY] = &design_array,
	[DESIGN_PERCPU_ARRAY] = &design_percpu_array,
	[DESIGN_NETOBS] = &design_netobs,
};

static int fill(struct subject *subject)
{
	return subject->design->fill ?
		       subject->design->fill(subject) :
		       runner_fill(subject->runner, &subject->load);
}

int subject_open(struct subject *subject, const struct design *design,
		 const struct runner *runner)
{
	int err;

	*subject = (struct subject){
		.design = design,
		.runner = runner,
		.prog_fd = -1,
	};
	err = design->open(subject);
	err = err ?: spread_aim(runner->spread, subject->prog_fd);
	err = err ?: fill(subject);
	if (err)
		subject_close(subject);
	return err;
}

int subject_measure(struct subject *subject, const struct load *load,
		    double *ret_ns)
{
	struct load whole = *load;

	whole.burst = subject->load.burst;
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
