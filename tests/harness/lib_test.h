/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* cmocka and what nearly every test calls, and how a file defines its cases. */
#ifndef HARNESS_LIB_TEST_H
#define HARNESS_LIB_TEST_H

#include "base/util.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* It wants some of these before it. */
#include <cmocka.h>

struct test_case {
	struct CMUnitTest test;
	int line; /* cases run in the order of their file */
	struct test_case *next;
};

/* Called before main(). */
void test_add(struct test_case *test_case);

/* Runs all cases between @set_up and @tear_down. A file without main() gets one without these. */
int tests_run(CMFixtureFunction set_up, CMFixtureFunction tear_down);

#define TEST_ADD(name, run, set_up, tear_down)                           \
	__attribute__((constructor)) static void name##_add(void)        \
	{                                                                \
		static struct test_case test_case = {                    \
			.test = { #name, run, set_up, tear_down, NULL }, \
			.line = __LINE__,                                \
		};                                                       \
		test_add(&test_case);                                    \
	}

/* TEST(drain_keeps_entries) { ... } defines a case, which may use cmocka's void **state. */
#define TEST(name) TEST_WITH(name, NULL, NULL)
#define TEST_WITH(name, set_up, tear_down)      \
	static void name(void **state);         \
	TEST_ADD(name, name, set_up, tear_down) \
	static void name(__attribute__((unused)) void **state)

/* A case of @fixture, "struct world *world", which is what @set_up makes. */
#define TEST_OF(name, fixture, set_up, tear_down)     \
	static void name(fixture);                    \
	static void name##_run(void **state)          \
	{                                             \
		name(*state);                         \
	}                                             \
	TEST_ADD(name, name##_run, set_up, tear_down) \
	static void name(__attribute__((unused)) fixture)

/*
 * set_up() and tear_down() of a file whose cases each have a zeroed @type, which @begin(type *)
 * fills and @end(type *) clears.
 */
#define TEST_FIXTURE(type, begin, end)                 \
	static int set_up(void **state)                \
	{                                              \
		type *made = calloc(1, sizeof(*made)); \
                                                       \
		assert_non_null(made);                 \
		*state = made;                         \
		begin(made);                           \
		return 0;                              \
	}                                              \
	static int tear_down(void **state)             \
	{                                              \
		end(*state);                           \
		free(*state);                          \
		return 0;                              \
	}

#endif
