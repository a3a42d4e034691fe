/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Factors for hash_key() that nobody outside can know. */
#ifndef NETOBS_LIB_FACTORS_H
#define NETOBS_LIB_FACTORS_H

#include "bpf/hash.h"

#include <stdint.h>

void factors_init(__u64 factors[HASH_LANES]);

#endif
