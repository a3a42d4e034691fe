/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "translation_table.h"

enum { UNSETTLED_PART = 4 }; /* a quarter */

static uint8_t stage_of(const struct translation *translation)
{
	if (translation->ended_ns)
		return STAGE_ENDED;
	if (translation->signs & SIGN_LASTS)
		return STAGE_SETTLED;
	if (!(translation->signs & SIGN_ANSWERED))
		return STAGE_ASKED;
	return translation->signs & SIGN_GOES_ON ? STAGE_SETTLED : STAGE_ANSWERED;
}

/* @place: as translation.older */
static struct translation *at_place(const struct translation_table *table,
				    uint32_t place)
{
	return place ? &table->list[place - 1] : NULL;
}

void translation_order_add(struct translation_table *table,
			   struct translation *translation)
{
	const uint32_t place = 1 + (uint32_t)(translation - table->list);
	struct stage *stage;

	translation->stage = stage_of(translation);
	stage = &table->stages[translation->stage];
	translation->older = stage->newest;
	translation->newer = 0;
	if (stage->newest)
		at_place(table, stage->newest)->newer = place;
	else
		stage->oldest = place;
	stage->newest = place;
	stage->n++;
}

void translation_order_remove(struct translation_table *table,
			      const struct translation *translation)
{
	struct stage *stage = &table->stages[translation->stage];

	if (translation->older)
		at_place(table, translation->older)->newer = translation->newer;
	else
		stage->oldest = translation->newer;
	if (translation->newer)
		at_place(table, translation->newer)->older = translation->older;
	else
		stage->newest = translation->older;
	stage->n--;
}

void translation_order_renew(struct translation_table *table,
			     struct translation *translation)
{
	/* The one that ended first stays the first one. */
	if (translation->stage == STAGE_ENDED && translation->ended_ns)
		return;
	translation_order_remove(table, translation);
	translation_order_add(table, translation);
}

static bool is_idle(const struct translation_table *table,
		    const struct translation *translation, int64_t now_ns)
{
	return translation_last(table, translation) <
	       now_ns - TRANSLATION_KEEP_S * NSEC_PER_SEC;
}

struct translation *
translation_order_find_first(const struct translation_table *table, int64_t now_ns)
{
	const struct stage *asked = &table->stages[STAGE_ASKED];
	const struct stage *answered = &table->stages[STAGE_ANSWERED];
	struct translation *settled =
		at_place(table, table->stages[STAGE_SETTLED].oldest);

	if (table->stages[STAGE_ENDED].n)
		return at_place(table, table->stages[STAGE_ENDED].oldest);
	if (asked->n + answered->n < table->max / UNSETTLED_PART && settled &&
	    is_idle(table, settled, now_ns))
		return settled;
	return at_place(table, asked->n >= answered->n ? asked->oldest :
							 answered->oldest);
}
