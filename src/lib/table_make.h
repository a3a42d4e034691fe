/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Make a table, which takes a while if it is large: the kernel clears its pages, and
 * may have to find them first. A thread makes it, and the caller goes on emptying
 * the ring buffer, which would soon be full.
 */
#ifndef NETOBS_LIB_TABLE_MAKE_H
#define NETOBS_LIB_TABLE_MAKE_H

#include <stdint.h>

/* Calls @meanwhile, if it is not NULL, time and again. A file descriptor, or -errno. */
int table_make(uint32_t n_buckets, void (*meanwhile)(void *ctx), void *ctx);

#endif
