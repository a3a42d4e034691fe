/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Which translation makes room for a new one. A flood from forged addresses makes many
 * translations without further packets; conversations go on. So each translation has a stage, and
 * each stage has a list, ordered by the last packet. The work is constant.
 */
#ifndef NETOBS_FLOWS_TRANSLATION_ORDER_H
#define NETOBS_FLOWS_TRANSLATION_ORDER_H

#include "translation.h"

/* @translation was added to the table (add), or has had a packet (renew). */
void translation_order_add(struct translation_table *table,
			   struct translation *translation);
void translation_order_renew(struct translation_table *table,
			     struct translation *translation);

void translation_order_remove(struct translation_table *table,
			      const struct translation *translation);

/*
 * Find the translation to evict. First choice is the one that ended first. If fewer than a
 * quarter of the table are not settled, the next choice is the settled one without a packet for
 * longest, at least for a minute. Then comes the oldest of those without an answer, or of those
 * with one, whichever are more.
 *
 * @return NULL: all have to stay
 */
struct translation *
translation_order_find_first(const struct translation_table *table,
			     int64_t now_ns);

#endif
