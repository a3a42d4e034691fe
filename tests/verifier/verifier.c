/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * verifier OBJECT...: what the kernel's verifier says of each program, a line
 * each: OBJECT/PROGRAM, and instructions that it walked. Those with features that are off at
 * first follow once more, with these, as OBJECT+all, but for programs of one configuration, flows_*, which
 * have the same with each value. Of an iterator that this kernel refuses, whatever it does, and of a program
 * whose tracepoint or hook it lacks, 0 were.
 */
#include "iterators.h"

#include <libgen.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LOG_STATS = 4,
	LOG_SIZE = 64 * 1024,
	/* Of Linux 6.4's include/uapi/linux/bpf.h. */
	PROG_TYPE_NETFILTER = 32,
	ATTACH_TYPE_NETFILTER = 45,
};

static bool starts(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* The log ends with "processed N insns ...". */
static long processed(const char *log)
{
	const char *found = strstr(log, "processed ");

	return found ? strtol(found + strlen("processed "), NULL, 10) : -1;
}

/* ---- Features -------------------------------------------------------------------- */

/*
 * The verifier does not follow what these turn off. Not config_is_filtered: the code of filters is
 * generated, and what stands in for it rejects all packets.
 */
static const struct knob {
	const char *name;
	uint8_t value;
} knobs[] = {
	{ "config_has_rules", 1 },  { "config_is_sampled", 1 },
	{ "config_lanes", 4 },	    { "config_rtt", 1 },
	{ "config_alerts", 1 },	    { "config_has_nat", 1 },
	{ "config_has_queues", 1 },
};

static bool set_knob(const struct btf *btf, const struct btf_type *constants,
		     uint8_t *bytes, const struct knob *knob)
{
	const struct btf_var_secinfo *variable = btf_var_secinfos(constants);

	for (int i = 0; i < btf_vlen(constants); i++, variable++) {
		const struct btf_type *type =
			btf__type_by_id(btf, variable->type);

		if (strcmp(btf__name_by_offset(btf, type->name_off), knob->name))
			continue;
		memset(bytes + variable->offset, 0, variable->size);
		memcpy(bytes + variable->offset, &knob->value, 1);
		return true;
	}
	return false;
}

/* Returns whether it has all of them; else none is set, or it is not to be loaded. */
static bool set_knobs(struct bpf_object *object)
{
	const struct btf *btf = bpf_object__btf(object);
	struct bpf_map *map = bpf_object__find_map_by_name(object, ".rodata");
	int id = btf ? btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC) :
		       -1;
	uint8_t *bytes;
	size_t size;

	bytes = map ? (void *)bpf_map__initial_value(map, &size) : NULL;
	if (!bytes || id < 0)
		return false;
	for (size_t i = 0; i < sizeof(knobs) / sizeof(*knobs); i++)
		if (!set_knob(btf, btf__type_by_id(btf, (uint32_t)id), bytes,
			      &knobs[i]))
			return false;
	return true;
}

/* ---- What is loaded -------------------------------------------------------------- */

static struct btf *kernel;

static bool has_hook(const struct bpf_program *program)
{
	const char *section = bpf_program__section_name(program);
	char name[64];

	if (!strcmp(section, "netfilter"))
		return btf__find_by_name_kind(kernel, "bpf_nf_ctx",
					      BTF_KIND_STRUCT) >= 0;
	if (!starts(section, "tp_btf/"))
		return true;
	snprintf(name, sizeof(name), "btf_trace_%s", section + strlen("tp_btf/"));
	return btf__find_by_name_kind(kernel, name, BTF_KIND_TYPEDEF) >= 0;
}

static void choose(struct bpf_program *program)
{
	bpf_program__set_autoload(program,
				  is_to_be_had(program) && has_hook(program));
}

/* ---- What it says ---------------------------------------------------------------- */

/* @name: of the object's file */
static bool report(const char *name, bool has_all,
		   const struct bpf_program *program, const char *log)
{
	long instructions = bpf_program__autoload(program) ? processed(log) : 0;

	if (instructions < 0) {
		fprintf(stderr, "%s: the kernel did not say: %s\n", name, log);
		return false;
	}
	printf("%.*s%s/%s %ld\n", (int)strcspn(name, "."), name,
	       has_all ? "+all" : "", bpf_program__name(program), instructions);
	return true;
}

/*
 * The programs of sockets are left out if the kernel lacks a feature that they need, and all of drops and
 * of the tracer if it lacks arguments of one of their tracepoints. Those for translations give
 * way to the general ones.
 */
static bool is_optional(const char *name)
{
	return starts(name, "drops") || starts(name, "leaving") ||
	       starts(name, "sched") || starts(name, "session") ||
	       starts(name, "trace") || starts(name, "connect") ||
	       starts(name, "flows_nat") || starts(name, "flows_rtt_nat");
}

/* libbpf prints what the verifier says about programs that have no log of their own. */
static void explain_refusal(const char *path, bool has_all)
{
	struct bpf_object *object = bpf_object__open_file(path, NULL);

	struct bpf_program *program;

	if (!object)
		return;
	bpf_object__for_each_program(program, object)
		choose(program);
	if (!has_all || set_knobs(object))
		bpf_object__load(object);
	bpf_object__close(object);
}

/* libbpf before 1.3 knows no section for it. */
static void set_type(struct bpf_program *program)
{
	if (strcmp(bpf_program__section_name(program), "netfilter") != 0)
		return;
	bpf_program__set_type(program, (enum bpf_prog_type)PROG_TYPE_NETFILTER);
	bpf_program__set_expected_attach_type(
		program, (enum bpf_attach_type)ATTACH_TYPE_NETFILTER);
}

/* Each program has a log of its own: @logs holds LOG_SIZE bytes for each. */
static bool load_object(struct bpf_object *object, const char *path,
			bool has_all, const char *name, char *logs)
{
	struct bpf_program *program;
	bool good = true;
	char *log = logs;

	bpf_object__for_each_program(program, object) {
		set_type(program);
		choose(program);
		bpf_program__set_log_level(program, LOG_STATS);
		bpf_program__set_log_buf(program, log, LOG_SIZE);
		log += LOG_SIZE;
	}
	if (bpf_object__load(object) < 0) {
		fprintf(stderr, "%s: the kernel refuses it%s\n", name,
			has_all ? " with all features" : "");
		explain_refusal(path, has_all);
		return is_optional(name);
	}
	log = logs;
	bpf_object__for_each_program(program, object) {
		good = report(name, has_all, program, log) && good;
		log += LOG_SIZE;
	}
	return good;
}

static bool load(char *path, bool has_all)
{
	struct bpf_object *object = bpf_object__open_file(path, NULL);
	struct bpf_program *program;
	size_t n = 0;
	char *logs;
	bool good;

	if (!object)
		return false;
	if (has_all && (starts(basename(path), "flows_") || !set_knobs(object))) {
		bpf_object__close(object);
		return true;
	}
	bpf_object__for_each_program(program, object)
		n++;
	logs = calloc(n + 1, LOG_SIZE);
	good = logs && load_object(object, path, has_all, basename(path), logs);
	bpf_object__close(object);
	free(logs);
	return good;
}

int main(int argc, char **argv)
{
	bool good = argc > 1;

	kernel = btf__load_vmlinux_btf();
	probe_iterators();
	for (int i = 1; i < argc; i++)
		good = load(argv[i], false) && load(argv[i], true) && good;
	btf__free(kernel);
	return good ? 0 : 1;
}
