/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * verifier LIMIT OBJECT...: how many instructions the kernel's verifier walks
 * to accept each program. Fails when one is refused, or takes more than LIMIT.
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

static bool report(const char *object, const struct bpf_program *program,
		   const char *log, long limit)
{
	long n = processed(log);

	printf("%8ld  %s %s\n", n, object, bpf_program__name(program));
	if (n < 0)
		fprintf(stderr, "the kernel did not say how many: %s\n", log);
	else if (n > limit)
		fprintf(stderr, "more than %ld\n", limit);
	return n >= 0 && n <= limit;
}

/* Each program has a log of its own: @logs holds LOG_SIZE bytes for each. */
static bool check_object(struct bpf_object *object, const char *name,
			 char *logs, long limit)
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
		return false;
	}
	log = logs;
	bpf_object__for_each_program(program, object) {
		good = report(name, program, log, limit) && good;
		log += LOG_SIZE;
	}
	return good;
}

static bool check(char *path, long limit)
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
	good = logs && check_object(object, basename(path), logs, limit);
	bpf_object__close(object);
	free(logs);
	return good;
}

int main(int argc, char **argv)
{
	bool good = argc > 2;

	for (int i = 2; i < argc; i++)
		good = check(argv[i], strtol(argv[1], NULL, 10)) && good;
	return good ? 0 : 1;
}
