// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib_test.h"

#include <errno.h>
#include <stdlib.h>

static struct test_case *cases;
static size_t n_cases;

void test_add(struct test_case *test_case)
{
	struct test_case **at = &cases;

	while (*at && (*at)->line < test_case->line)
		at = &(*at)->next;
	test_case->next = *at;
	*at = test_case;
	n_cases++;
}

int tests_run(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
	/* A program without a case fails. */
	struct CMUnitTest *tests = n_cases ? calloc(n_cases, sizeof(*tests)) :
					     NULL;
	size_t n = 0;
	int ret;

	if (!tests)
		return 1;
	for (const struct test_case *one = cases; one; one = one->next)
		tests[n++] = one->test;
	ret = _cmocka_run_group_tests(program_invocation_short_name, tests, n,
				      set_up, tear_down);
	free(tests);
	return ret;
}
