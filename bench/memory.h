/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Memory of this process, and of the BPF maps that it holds. */
#ifndef NETOBS_BENCH_MEMORY_H
#define NETOBS_BENCH_MEMORY_H

#include <stdint.h>

/* Resident bytes now. */
uint64_t memory_rss(void);

/* The most there were since memory_reset_peak(). */
uint64_t memory_rss_peak(void);
void memory_reset_peak(void);

/* What the kernel took for all maps that this process has descriptors of. */
uint64_t memory_maps(void);

#endif
