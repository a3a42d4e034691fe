/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A module's host without a spool: it counts records, and keeps log lines. */
#ifndef HARNESS_LIB_SINK_HOST_H
#define HARNESS_LIB_SINK_HOST_H

#include "lib_test.h"

#include "base/log.h"
#include "sink/module.h"

struct test_host {
	struct sink_host host; /* first */
	struct log log;
	int epoll_fd;
	int n_watched;	 /* descriptors; none is left at the end */
	int64_t wake_ms; /* CLOCK_MONOTONIC; 0: never */
	char logged[16384];

	/* Records 0 to n - 1, as make() has them. */
	void (*make)(uint64_t n, struct netobs_flow *ret_flow);
	/* The same of another type, if it is set. */
	const struct netobs_record *(*make_other)(uint64_t n);
	struct netobs_flow flow;
	uint64_t n_records;
	uint64_t next, acked, refused; /* refused: how many */
	bool has_stats;
};

/* For unit tests' fixtures. */
void test_host_open(struct test_host *host);
void test_host_close(struct test_host *host);

/* A spec that is parsed, with errors to host->logged; for spec_free(). */
void test_host_spec(struct test_host *host, const char *text,
		    struct spec *ret_spec);

/* A module that is opened with options that are right. */
void *test_host_module(struct test_host *host, const struct sink_module *module,
		       const char *text);

/* A module's counter, by its name. */
uint64_t test_counter(const struct sink_module *module, const void *state,
		      const char *name);

/*
 * A socket at 127.0.0.1 and *@port, or at a free one, which is noted there, if that is 0.
 * @type: as socket(2) has it; a stream's listens.
 */
int test_listen(int type, uint16_t *port);

/* An IPv4 flow of @n bytes at an interface. */
void test_flow(uint64_t n, struct netobs_flow *ret_flow);

/* Wait for a watched event or the time of wake_in(), for @ms at most. */
void test_host_wait(struct test_host *host, int ms);

unsigned int test_host_lines(const struct test_host *host);

#endif
