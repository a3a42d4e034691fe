/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef NETOBS_BENCH_DESIGN_KINDS_H
#define NETOBS_BENCH_DESIGN_KINDS_H

#include "design.h"

extern const struct design design_empty;
extern const struct design design_parse;
extern const struct design design_ringbuf;
extern const struct design design_hash;
extern const struct design design_hash_spinlock;
extern const struct design design_percpu_hash;
extern const struct design design_array;
extern const struct design design_percpu_array;
extern const struct design design_netobs;

#endif
