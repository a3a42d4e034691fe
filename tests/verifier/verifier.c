/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * verifier OBJECT...: what the kernel's verifier says of each program, a line
 * each: OBJECT/PROGRAM, instructions that it walked, bytes of stack.
 */
#include <bpf/libbpf.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOG_STATS = 4, LOG_SIZE = 64 * 1024 };

/* The log ends with "processed N insns ...". */
static long processed(const char *log)
{
	const char *found = strstr(log, "processed ");

	return found ? strtol(found + strlen("processed "), NULL, 10) : -1;
}

/* "stack depth 312+0+48": a frame of each function, which may all be in use. */
static long stack_depth(const char *log)
{
	static const char words[] = "stack depth ";
	const char *at = strstr(log, words);
	long sum = 0;

	if (!at)
		return -1;
	at += strlen(words) - 1;
	do {
		char *end;

		sum += strtol(at + 1, &end, 10);
		at = end;
	} while (*at == '+');
	return sum;
}

static bool report(const char *object, const struct bpf_program *program,
		   const char *log)
{
	long instructions = processed(log);
	long stack = stack_depth(log);

	if (instructions < 0 || stack < 0) {
		fprintf(stderr, "%s: the kernel did not say: %s\n", object, log);
		return false;
	}
	printf("%.*s/%s %ld %ld\n", (int)strcspn(object, "."), object,
	       bpf_program__name(program), instructions, stack);
	return true;
}

/* The programs of sessions are left out where the kernel lacks what they need. */
static bool is_optional(const char *name)
{
	return !strncmp(name, "session", strlen("session"));
}

/* libbpf prints what the verifier says about programs that have no log of their own. */
static void explain_refusal(const char *path)
{
	struct bpf_object *object = bpf_object__open_file(path, NULL);

	if (object)
		bpf_object__load(object);
	bpf_object__close(object);
}

/* Each program has a log of its own: @logs holds LOG_SIZE bytes for each. */
static bool load_object(struct bpf_object *object, const char *path,
			const char *name, char *logs)
{
	struct bpf_program *program;
	bool good = true;
	char *log = logs;

	bpf_object__for_each_program(program, object) {
		bpf_program__set_log_level(program, LOG_STATS);
		bpf_program__set_log_buf(program, log, LOG_SIZE);
		log += LOG_SIZE;
	}
	if (bpf_object__load(object) < 0) {
		fprintf(stderr, "%s: the kernel refuses it\n", name);
		explain_refusal(path);
		return is_optional(name);
	}
	log = logs;
	bpf_object__for_each_program(program, object) {
		good = report(name, program, log) && good;
		log += LOG_SIZE;
	}
	return good;
}

static bool load(char *path)
{
	struct bpf_object *object = bpf_object__open_file(path, NULL);
	struct bpf_program *program;
	size_t n = 0;
	char *logs;
	bool good;

	if (!object)
		return false;
	bpf_object__for_each_program(program, object)
		n++;
	logs = calloc(n + 1, LOG_SIZE);
	good = logs && load_object(object, path, basename(path), logs);
	bpf_object__close(object);
	free(logs);
	return good;
}

int main(int argc, char **argv)
{
	bool good = argc > 1;

	for (int i = 1; i < argc; i++)
		good = load(argv[i]) && good;
	return good ? 0 : 1;
}
