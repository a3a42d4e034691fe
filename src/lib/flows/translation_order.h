/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Which translation makes room for a new one. A flood from addresses that do not exist makes
 * many of which nothing more is heard; conversations go on. So each translation has a stage,
 * and each stage has a list, in the order of the last packets. The work is constant.
 */
#ifndef NETOBS_FLOWS_TRANSLATION_ORDER_H
#define NETOBS_FLOWS_TRANSLATION_ORDER_H

#include "translation.h"

/* @translation has come to the table, or has had a packet. */
void translation_order_add(struct translation_table *table,
			   struct translation *translation);
void translation_order_renew(struct translation_table *table,
			     struct translation *translation);

void translation_order_remove(struct translation_table *table,
			      const struct translation *translation);

/*
 * The one that has ended for longest; else, if less than a quarter of the places is for those that
 * are not settled, the settled one without a packet for longest, a minute at least; else the oldest
 * of those without an answer, or of those with one, whichever are more.
 *
 * @return NULL: all have to stay
 */
struct translation *
translation_order_find_first(const struct translation_table *table,
			     int64_t now_ns);

#endif
