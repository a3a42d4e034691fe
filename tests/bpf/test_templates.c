// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Programs that are loaded to be copied with a filter: the kernel's verifier follows the copy only. */
#include "lib_test.h"

#include "bpf/apart.h"
#include "bpf/capture.h"
#include "engine/program_set.h"
#include "filter/filter.h"
#include "prog_skeleton.h"

#include "capture.skel.h"
#include "flows_default.skel.h"

#include <bpf/bpf.h>

enum { FEW = 16 /* instructions */ };

static const struct log silent;

static const struct subject {
	const char *program;
	const void *(*elf)(size_t *ret_size);
} subjects[] = {
	{ "netobs_ingress", flows_default_bpf__elf_bytes },
	{ "netobs_egress", flows_default_bpf__elf_bytes },
	{ "netobs_ingress", flows_bpf__elf_bytes },
	{ "netobs_egress", flows_bpf__elf_bytes },
	{ "netobs_capt_in", capture_bpf__elf_bytes },
	{ "netobs_capt_out", capture_bpf__elf_bytes },
};

/* Loads nothing but this program, filtered. */
static int prepare(struct bpf_object *object, void *ctx)
{
	const struct subject *subject = ctx;
	struct bpf_program *program;

	bpf_object__for_each_program(program, object)
		bpf_program__set_autoload(program,
					  !strcmp(bpf_program__name(program),
						  subject->program));
	if (subject->elf == capture_bpf__elf_bytes) {
		struct capture_bpf__rodata *knobs =
			program_set_knobs(object, sizeof(*knobs));

		assert_non_null(knobs);
		knobs->config_is_filtered = true;
	} else {
		struct flows_bpf__rodata *knobs =
			program_set_knobs(object, sizeof(*knobs));

		assert_non_null(knobs);
		knobs->config_is_filtered = true;
	}
	return 0;
}

static struct bpf_prog_info info_of(int fd)
{
	struct bpf_prog_info info = { 0 };
	uint32_t size = sizeof(info);

	assert_true(fd >= 0);
	assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &size), 0);
	return info;
}

/* @return what the kernel says of the program as it is, of which no copy is made */
static struct bpf_prog_info load_whole(struct program_set *set,
				       const struct subject *subject)
{
	struct bpf_prog_info info;

	assert_int_equal(program_set_ref(set), 0);
	info = info_of(bpf_program__fd(
		bpf_object__find_program_by_name(set->object, subject->program)));
	program_set_unref(set);
	return info;
}

static void check(const struct subject *subject, const struct filter *filter)
{
	const struct filter_frames frames = { .link = LINK_ETHERNET,
					      .features = 1U << APART_ALWAYS };
	struct filter_template template = { .name = subject->program };
	struct program_set set = {
		.name = "template",
		.elf = subject->elf,
		.doing = "load a test's programs",
		.log = &silent,
		.prepare = prepare,
		.ctx = (void *)subject,
	};
	const struct bpf_prog_info whole = load_whole(&set, subject);
	struct bpf_prog_info original, copy;
	int fd;

	set.templates = &template;
	set.n_templates = 1;
	assert_int_equal(program_set_ref(&set), 0);
	assert_true(template.ends_early);
	original = info_of(bpf_program__fd(template.program));
	fd = filter_load(filter, &template, &frames, &silent);
	copy = info_of(fd);
	close_fd(&fd);
	program_set_unref(&set);

	assert_in_range(copy.xlated_prog_len, whole.xlated_prog_len / 2,
			UINT32_MAX);
	assert_in_range(original.xlated_prog_len, 1, whole.xlated_prog_len - 1);
	assert_in_range(original.verified_insns, 0, whole.verified_insns);
	/*
	 * COMPAT(<6.8): functions that it verifies apart are there without a call. COMPAT(<5.16): it
	 * does not say how many instructions it followed.
	 */
	if (original.nr_func_info == 1)
		assert_in_range(original.verified_insns, 0, FEW);
}

TEST(only_copies_are_verified_in_full)
{
	char error[FILTER_ERROR_MAX];
	struct filter *filter;

	assert_int_equal(filter_new("tcp or udp", &filter, &error), 0);
	for (size_t i = 0; i < ARRAY_SIZE(subjects); i++)
		check(&subjects[i], filter);
	filter_free(filter);
}

TEST(a_program_has_to_be_there)
{
	struct filter_template template = { .name = "none" };
	struct program_set set = {
		.name = "template",
		.elf = flows_default_bpf__elf_bytes,
		.doing = "load a test's programs",
		.log = &silent,
		.prepare = prepare,
		.ctx = (void *)&subjects[0],
		.templates = &template,
		.n_templates = 1,
	};

	assert_int_equal(program_set_ref(&set), -ENOENT);
}
