/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What fuzzers have in common. They are linked with a few sources each, and without the harness. */
#ifndef HARNESS_LIB_FUZZ_H
#define HARNESS_LIB_FUZZ_H

#include "base/util.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define check(condition)                  \
	do {                              \
		if (!(condition))         \
			__builtin_trap(); \
	} while (0)

#endif
