// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Programs that are loaded while there is a use for them. bpf.sessions has all ways to attach them. */
#include "lib_lab.h"
#include "lib_test.h"
#include "lib_wait.h"
#include "lib_witness.h"
#include "engine/program_set.h"

#include "program_set.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

enum { LISTED_PORT = 9 };

static const struct log silent;

/* What a set is made of. */
struct recipe {
	const char *programs[2]; /* or NULL */
	uint32_t step;
	bool has_ports;
	int prepared;
};

static bool is_wanted(const struct recipe *recipe,
		      const struct bpf_program *program)
{
	for (size_t i = 0; i < ARRAY_SIZE(recipe->programs); i++)
		if (recipe->programs[i] &&
		    !strcmp(recipe->programs[i], bpf_program__name(program)))
			return true;
	return false;
}

static int prepare(struct bpf_object *object, void *ctx)
{
	struct program_set_bpf__rodata *knobs =
		program_set_knobs(object, sizeof(*knobs));
	struct recipe *recipe = ctx;
	struct bpf_program *program;
	struct bpf_map *ports = bpf_object__find_map_by_name(object, "ports");

	recipe->prepared++;
	if (!knobs || !ports)
		return -ENOENT;
	knobs->config_step = recipe->step ?: 1;
	knobs->config_ports = recipe->has_ports;
	bpf_map__set_autocreate(ports, recipe->has_ports);
	bpf_object__for_each_program(program, object)
		bpf_program__set_autoload(program, is_wanted(recipe, program));
	return 0;
}

static struct program_set set_of(struct recipe *recipe, const struct log *log,
				 struct program_set *base)
{
	return (struct program_set){
		.name = "program_set_bpf",
		.elf = program_set_bpf__elf_bytes,
		.doing = "load a test's programs",
		.log = log,
		.base = base,
		.prepare = prepare,
		.ctx = recipe,
	};
}

static uint64_t runs_of(const struct program_set *set)
{
	uint64_t runs = 0;
	uint32_t slot = 0;

	assert_int_equal(bpf_map_lookup_elem(program_set_map_fd(set, "runs"),
					     &slot, &runs),
			 0);
	return runs;
}

static int run_once(const struct program_set *set, const char *program)
{
	const struct bpf_program *found =
		bpf_object__find_program_by_name(set->object, program);
	uint8_t frame[64] = { 0 };
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = frame,
		    .data_size_in = sizeof(frame), .repeat = 1);

	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(found), &run), 0);
	return (int)run.retval;
}

static uint32_t map_id(const struct program_set *set, const char *map)
{
	struct bpf_map_info info = { 0 };
	uint32_t size = sizeof(info);

	assert_int_equal(bpf_obj_get_info_by_fd(program_set_map_fd(set, map),
						&info, &size),
			 0);
	return info.id;
}

/* The kernel frees a map after the programs that used it, by and by. */
static void wait_until_freed(uint32_t id)
{
	cleanup_fd int fd = -1;

	await_by((fd = bpf_map_get_fd_by_id(id)) == -ENOENT, {
		close_fd(&fd);
		usleep(WAIT_STEP_US);
	});
}

TEST(set_is_loaded_from_its_first_to_its_last_reference)
{
	struct recipe recipe = { .programs = { "count_packets" } };
	struct program_set set = set_of(&recipe, &silent, NULL);
	int before = lab_count_fds();
	uint32_t id;

	assert_int_equal(program_set_bytes(&set), 0);
	assert_true(program_set_map_fd(&set, "runs") < 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(program_set_ref(&set), 0);
	assert_int_equal(recipe.prepared, 1);
	assert_true(program_set_bytes(&set) > 0);
	id = map_id(&set, "runs");
	for (int i = 0; i < 2; i++) {
		program_set_unref(&set);
		assert_int_equal(run_once(&set, "count_packets"), 0);
	}
	assert_int_equal(runs_of(&set), 2);
	program_set_unref(&set);
	program_set_unref(&set);
	assert_int_equal(lab_count_fds(), before);
	wait_until_freed(id);

	assert_int_equal(program_set_ref(&set), 0);
	assert_int_equal(runs_of(&set), 0);
	program_set_unref(&set);
	assert_int_equal(lab_count_fds(), before);
}

TEST(set_shares_the_maps_of_its_base_and_keeps_it_loaded)
{
	struct recipe maps = { 0 }, one = { .programs = { "count_packets" } },
		      ten = { .programs = { "count_packets" }, .step = 10 };
	struct program_set base = set_of(&maps, &silent, NULL);
	struct program_set ones = set_of(&one, &silent, &base);
	struct program_set tens = set_of(&ten, &silent, &base);
	int before = lab_count_fds();

	assert_int_equal(program_set_ref(&ones), 0);
	assert_int_equal(program_set_ref(&tens), 0);
	assert_int_equal(base.refs, 2);
	assert_int_equal(maps.prepared, 1);
	assert_int_equal(map_id(&ones, "runs"), map_id(&base, "runs"));
	/* Knobs are no shared map, and all that the set has of its own. */
	assert_true(program_set_bytes(&ones) < program_set_bytes(&base));
	run_once(&ones, "count_packets");
	run_once(&tens, "count_packets");
	assert_int_equal(runs_of(&base), 11);
	program_set_unref(&ones);
	run_once(&tens, "count_packets");
	assert_int_equal(runs_of(&base), 21);
	program_set_unref(&tens);
	assert_int_equal(base.refs, 0);
	assert_int_equal(lab_count_fds(), before);
}

TEST(map_of_a_feature_exists_only_with_it)
{
	struct recipe off = { .programs = { "count_packets" } },
		      on = { .programs = { "count_packets" }, .has_ports = true };
	struct program_set without = set_of(&off, &silent, NULL);
	struct program_set with = set_of(&on, &silent, NULL);
	uint32_t port = LISTED_PORT;
	uint64_t value;

	assert_int_equal(program_set_ref(&without), 0);
	assert_int_equal(program_set_ref(&with), 0);
	assert_true(program_set_map_fd(&without, "ports") < 0);
	assert_true(program_set_bytes(&without) < program_set_bytes(&with));
	run_once(&without, "count_packets");
	run_once(&with, "count_packets");
	assert_int_equal(bpf_map_lookup_elem(program_set_map_fd(&with, "ports"),
					     &port, &value),
			 0);
	program_set_unref(&without);
	program_set_unref(&with);
}

static int generate_match(struct bpf_object *object, void *ctx)
{
	struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = 42 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int err = prepare(object, ctx);

	return err ? err :
		     bpf_program__set_insns(bpf_object__find_program_by_name(
						    object, "match_packets"),
					    insns, ARRAY_SIZE(insns));
}

TEST(code_can_be_generated_before_a_set_is_loaded)
{
	struct recipe recipe = { .programs = { "match_packets" } };
	struct program_set set = set_of(&recipe, &silent, NULL);

	assert_int_equal(program_set_ref(&set), 0);
	assert_int_equal(run_once(&set, "match_packets"), 0);
	program_set_unref(&set);
	set.prepare = generate_match;
	assert_int_equal(program_set_ref(&set), 0);
	assert_int_equal(run_once(&set, "match_packets"), 42);
	program_set_unref(&set);
}

TEST(set_that_cannot_be_attached_leaves_nothing)
{
	const struct attach_point points[] = {
		{ .program = "count_forks", .kind = ATTACH_SECTION },
		{ .program = "count_connects",
		  .kind = ATTACH_CGROUP,
		  .cgroup_fd = -1 },
	};
	struct recipe maps = { 0 };
	struct recipe recipe = { .programs = { "count_forks", "count_connects" } };
	struct witness witness = { 0 };
	struct log log = witness_log(&witness);
	struct program_set base = set_of(&maps, &log, NULL);
	struct program_set set = set_of(&recipe, &log, &base);
	int before = lab_count_fds();

	set.points = points;
	set.n_points = ARRAY_SIZE(points);
	assert_true(program_set_ref(&set) < 0);
	assert_int_equal(set.refs, 0);
	assert_int_equal(base.refs, 0);
	assert_null(set.object);
	assert_int_equal(lab_count_fds(), before);
	assert_int_equal(witness.errors, 1);
	assert_true(witness_read(&witness, "cannot attach count_connects"));
	witness_clear(&witness);
}

TEST(set_that_cannot_be_loaded_says_why)
{
	struct recipe recipe = { .programs = { "count_packets" } };
	struct witness witness = { 0 };
	struct log log = witness_log(&witness);
	struct program_set set = set_of(&recipe, &log, NULL);
	const struct attach_point nowhere = { .program = "no_such_program" };

	set.points = &nowhere;
	set.n_points = 1;
	assert_int_equal(program_set_ref(&set), -ENOENT);
	assert_int_equal(set.refs, 0);
	assert_int_equal(witness.errors, 1);
	assert_true(witness_read(&witness, "cannot load a test's programs"));
	witness_clear(&witness);
}

TEST(refused_program_is_named_with_the_verifiers_reason)
{
	struct recipe recipe = { .programs = { "read_nothing" },
				 .has_ports = true };
	struct witness witness = { 0 };
	struct log log = witness_log(&witness);
	struct program_set set = set_of(&recipe, &log, NULL);

	assert_int_equal(program_set_ref(&set), -EACCES);
	assert_int_equal(witness.errors, 1);
	assert_true(witness_read(
		&witness,
		"cannot load a test's programs: Permission denied: the kernel refused read_nothing: R"));
	assert_true(witness_read(&witness, "invalid mem access"));
	assert_true(witness_read(&witness, " (compiled by clang 1"));
	assert_true(witness_read(
		&witness, "'netobsctl check -v' prints the verifier's log"));
	assert_true(witness_read(
		&witness, "processed ")); /* the whole log, as debug lines */
	witness_clear(&witness);

	/* What another set's error says is not of this program. */
	recipe.programs[0] = "count_packets";
	set.points = &(struct attach_point){ .program = "no_such_program" };
	set.n_points = 1;
	assert_int_equal(program_set_ref(&set), -ENOENT);
	assert_false(witness_read(&witness, "the kernel refused"));
	witness_clear(&witness);
}
