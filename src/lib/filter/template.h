/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Programs that are loaded only for filter_load() to copy them. libbpf relocates what it loads,
 * and nothing else. The kernel's verifier would follow each of them twice, which is most of what
 * loading costs: so the original ends after its first instructions, and only the copy goes on.
 */
#ifndef NETOBS_FILTER_TEMPLATE_H
#define NETOBS_FILTER_TEMPLATE_H

#include "code.h"

#include <stdbool.h>

struct bpf_object;
struct bpf_program;

enum { TEMPLATE_END = 2 /* instructions that end the program */ };

struct filter_template {
	const char *name;		   /* name of the program */
	const struct bpf_program *program; /* NULL before filter_template_init() */
	bool ends_early;		   /* these are replaced: */
	uint32_t end;
	struct bpf_insn replaced[TEMPLATE_END];
};

/**
 * Find the program in an object that is open, and end it early. One without a place for that is
 * loaded as it is.
 *
 * @return 0; -ENOENT: the object has no such program; -ENOMEM
 */
int filter_template_init(struct filter_template *template,
			 const struct bpf_object *object);

/* Undo the early end in a copy of the program. @insns: of the copy */
void filter_template_restore(const struct filter_template *template,
			     struct bpf_insn *insns);

#endif
