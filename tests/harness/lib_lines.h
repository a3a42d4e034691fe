/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A sink of numbered records, in a directory of its own, and the lines they become. */
#ifndef HARNESS_LIB_LINES_H
#define HARNESS_LIB_LINES_H

#include "lib_test.h"

#include <netobs/sink.h>

#include <limits.h>
#include <sys/resource.h>

struct lines_fixture {
	char dir[PATH_MAX / 2];
	char path[PATH_MAX];
	char spec[3 * PATH_MAX];
	char logged[4096]; /* all lines */
	struct netobs_sink *sink;
};

int lines_set_up(void **state);
int lines_tear_down(void **state);

#define LINES_TEST(name) \
	TEST_OF(name, struct lines_fixture *f, lines_set_up, lines_tear_down)

int try_open_sink(struct lines_fixture *f, const char *spec);

struct refused_spec {
	const char *spec;
	int err;
	const char *words; /* in the log */
};

/* No sink opens with any of @cases. */
void assert_refused(struct lines_fixture *f, const struct refused_spec *cases,
		    size_t n);

/* @format: with one %s, for the path. */
__attribute__((format(printf, 2, 0))) void open_sink(struct lines_fixture *f,
						     const char *format);

void close_sink(struct lines_fixture *f);

struct netobs_flow make_numbered_flow(uint64_t n);
void write_flows(struct lines_fixture *f, uint64_t from, uint64_t to);

/* Flush, and go on while there is something to be done without waiting. */
void flush_all(struct lines_fixture *f);

struct netobs_sink_stats sink_stats_of(const struct lines_fixture *f);
void assert_sink_identity(const struct lines_fixture *f);

/* Lines are those of consecutive records; the number behind the last. */
uint64_t check_lines(const char *text, uint64_t n);

/* A non-blocking socket that listens at a path of the file system. */
int listen_at(const char *path);

/* Any write beyond so many bytes of a file fails, as on a disk that is full. */
void limit_files(rlim_t bytes);

/* A file has the lines of records from @from to before @to. */
void assert_lines(const char *path, uint64_t from, uint64_t to);

/* All of a file; the caller's. */
char *read_text(const char *path);

#endif
