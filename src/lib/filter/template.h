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
#include <stddef.h>

struct bpf_object;
struct bpf_prog_load_opts;
struct bpf_program;
struct btf;
struct filter_template;

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

/* ---- Functions ----------------------------------------------------------------------- */

/*
 * The functions of a program: which ones the kernel's verifier follows apart from it, see
 * bpf/apart.h, and how its stub of judge() is taken out.
 */

struct functions {
	struct btf *btf;
	struct bpf_func_info *infos;
	uint32_t n;
};

/**
 * Describe the functions of @code, whose jumps are linked, to the kernel.
 *
 * @param features  that are on: 1 << enum apart_feature
 * @param ret       to be released with functions_done(), also if this fails
 * @return 0; others, as of bpf(2)
 */
int functions_describe(const struct code *code, uint32_t features,
		       struct functions *ret);

/* Add them to what a program is loaded with. @functions has to outlive @opts. */
void functions_set(const struct functions *functions,
		   struct bpf_prog_load_opts *opts);

void functions_done(struct functions *functions);

/* ---- judge() ---------------------------------------------------------------------- */

/**
 * Copy the program without judge() into @code, which is empty. The caller appends another judge(): calls go
 * to the end of the copy.
 *
 * @param has_inner         the new judge() calls find_carried(): the copy keeps that function
 * @param ret_find_carried  where that function begins in the copy, with @has_inner
 * @return 0; -EINVAL: the program does not call them
 */
int functions_splice(struct code *code, const struct filter_template *template,
		     bool has_inner, uint32_t *ret_find_carried);

#endif
