// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "transit.h"

#include <stddef.h>

enum { FIRST_STEP = 2048 };

static struct transit_message *get_message(struct transit *transit, unsigned int i)
{
	return &transit->ring[(transit->first + i) % TRANSIT_MAX];
}

static void deliver_messages(struct transit *transit, struct position end)
{
	if (position_is_before(transit->delivered, end))
		transit->delivered = end;
}

void transit_start(struct transit *transit, struct position start)
{
	transit->first = transit->n = 0;
	transit->n_confirmed = transit->n_taken = 0;
	transit->unsure = (struct position){ 0 };
	transit->delivered = start;
	transit->sent = transit->step = 0;
}

/* Message @i may become part of the one after it. */
static bool may_merge(const struct transit *transit, unsigned int i,
		      uint64_t from, uint64_t next_at)
{
	return next_at - from <= transit->step &&
	       i + 1 != transit->n_confirmed && i + 1 != transit->n_taken;
}

/* What is not longer than a step becomes one message, if it is in one state. */
static void merge_messages(struct transit *transit)
{
	unsigned int n = 0, n_confirmed = 0, n_taken = 0;

	for (unsigned int i = 0; i < transit->n; i++) {
		struct transit_message message = *get_message(transit, i), *next;

		next = i + 1 < transit->n ? get_message(transit, i + 1) : NULL;
		if (next && may_merge(transit, i, message.from, next->at)) {
			next->from = message.from;
			next->count = position_add(next->count, message.count);
			continue;
		}
		n_confirmed += i < transit->n_confirmed;
		n_taken += i < transit->n_taken;
		*get_message(transit, n++) = message;
	}
	transit->n = n;
	transit->n_confirmed = n_confirmed;
	transit->n_taken = n_taken;
}

/* As few places are known as must be, at about equal distances. */
static void make_transit_room(struct transit *transit)
{
	do {
		transit->step = transit->step ? 2 * transit->step : FIRST_STEP;
		merge_messages(transit);
	} while (transit->n > TRANSIT_MAX / 2 + 2);
}

void transit_add(struct transit *transit, uint64_t at, struct position count,
		 struct position end)
{
	if (transit->n == TRANSIT_MAX)
		make_transit_room(transit);
	*get_message(transit, transit->n++) = (struct transit_message){
		.from = transit->sent, .at = at, .count = count, .end = end
	};
	transit->sent = at;
}

void transit_confirm(struct transit *transit, uint64_t bytes, int64_t now_ms)
{
	for (; transit->n_confirmed < transit->n; transit->n_confirmed++) {
		struct transit_message *next =
			get_message(transit, transit->n_confirmed);

		if (next->at > bytes)
			break;
		next->confirmed_ms = now_ms;
	}
}

static void drop_first(struct transit *transit)
{
	if (transit->n_taken) {
		transit->unsure = position_sub(transit->unsure,
					       get_message(transit, 0)->count);
		transit->n_taken--;
	}
	transit->first = (transit->first + 1) % TRANSIT_MAX;
	transit->n--;
	transit->n_confirmed--;
}

bool transit_read(struct transit *transit, uint64_t bytes)
{
	bool has_more = false;

	while (transit->n_confirmed && get_message(transit, 0)->at <= bytes) {
		deliver_messages(transit, get_message(transit, 0)->end);
		drop_first(transit);
		has_more = true;
	}
	return has_more;
}

static void take_next_message(struct transit *transit)
{
	const struct transit_message *next =
		get_message(transit, transit->n_taken++);

	transit->unsure = position_add(transit->unsure, next->count);
	deliver_messages(transit, next->end);
}

void transit_take(struct transit *transit, int64_t until_ms)
{
	while (transit->n_taken < transit->n_confirmed &&
	       get_message(transit, transit->n_taken)->confirmed_ms <= until_ms)
		take_next_message(transit);
}

void transit_take_half(struct transit *transit)
{
	unsigned int left = (transit->n_confirmed - transit->n_taken) / 2;

	while (transit->n_confirmed - transit->n_taken > left)
		take_next_message(transit);
}
