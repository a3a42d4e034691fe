/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Make a table, which takes a while if it is large: the kernel clears its pages, and
 * may have to find them first. A thread makes it, and the caller goes on meanwhile.
 */
#ifndef NETOBS_ENGINE_TABLE_MAKE_H
#define NETOBS_ENGINE_TABLE_MAKE_H

#include <stdint.h>

struct table_making;

/* At once: a file descriptor, or -errno. */
int table_make(uint32_t n_buckets);

/* Begin to make one: 0, or -errno. */
int table_make_begin(uint32_t n_buckets, struct table_making **ret_making);

/* -EAGAIN: not yet. Else a file descriptor, or -errno, and *@making is gone. */
int table_make_result(struct table_making **making);

/* The table is not wanted any more; NULL is fine. */
void table_make_abandon(struct table_making *making);

#endif
