// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Of programs that have none of their own. */
#include "lib_test.h"

int main(void)
{
	return tests_run(NULL, NULL);
}
