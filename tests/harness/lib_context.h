/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A context that observes the loopback of a namespace of its own. */
#ifndef HARNESS_LIB_CONTEXT_H
#define HARNESS_LIB_CONTEXT_H

#include "lib_lab.h"
#include "lib_witness.h"
#include "lib_test.h"

#include <netobs/netobs.h>

struct context_fixture {
	struct lab lab;
	struct witness witness;
	struct netobs *ctx;
};

/* For cmocka: *state is the fixture; the test may leave ctx to the teardown. */
int context_setup(void **state);
int context_teardown(void **state);

#define CONTEXT_TEST(name) \
	TEST_OF(name, struct context_fixture *f, context_setup, context_teardown)

struct netobs_opts context_options(struct witness *witness, uint32_t interval_ms);

void context_start_with(struct context_fixture *f,
			const struct netobs_opts *opts);
void context_start(struct context_fixture *f, uint32_t interval_ms);

/* Begin a change and wait for it. @return its result */
int context_change(struct netobs *ctx, const struct netobs_opts *opts);

/* A change fails with @err, and a message that has @words. */
void context_assert_refused(struct context_fixture *f,
			    const struct netobs_opts *opts, int err,
			    const char *words);

/* @return the number of interfaces that are observed */
uint32_t context_interfaces(const struct netobs *ctx);
void context_await_interfaces(struct netobs *ctx, uint32_t n);

/* At most @most descriptors are open. A thread closes replaced programs and maps. */
void context_await_fds(struct netobs *ctx, int most);

/* How many records came until the end. */
uint32_t context_await_stop(struct netobs *ctx);

void context_stop(struct netobs *ctx);

/* Each packet was exported, or counted as something else. */
void context_assert_conserved(const struct netobs *ctx);

#endif
