/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The module, and a collector in the same thread. */
#ifndef TESTS_SINKS_GRPC_LIB_MODULE_H
#define TESTS_SINKS_GRPC_LIB_MODULE_H

#include "lib_collector.h"
#include "lib_sink_host.h"
#include "lib_test.h"

struct module_fixture {
	struct test_host host;
	struct collector collector;
	const char *kind; /* NULL: grpc */
	void *module;
};

#define MODULE_TEST(name) \
	TEST_OF(name, struct module_fixture *f, module_set_up, module_tear_down)

int module_set_up(void **state);
int module_tear_down(void **state);

void module_open(struct module_fixture *f, const char *options);

/* The module, then the collector have their turn. */
void module_turn(struct module_fixture *f, bool flush);

/* So many turns, with everything flushed. */
void module_turns(struct module_fixture *f, int n);

/* Until all records have been settled. */
void module_work_until_done(struct module_fixture *f);

void module_work_until_logged(struct module_fixture *f, const char *text);
void module_work_until_calls(struct module_fixture *f, uint32_t calls);

/* The module's, by its name. */
uint64_t module_counter(const struct module_fixture *f, const char *name);

/* What the collector says to the first call, and words of it in the log. */
struct failure {
	const char *logged;
	enum answer answer;
	const char *status, *message;
	uint32_t error;
	uint32_t window; /* it answers before it has read more; 0: not early */
};

/* The first call fails; later ones take all records. */
void module_fail_then_recover(struct module_fixture *f,
			      const struct failure *failure);

#endif
