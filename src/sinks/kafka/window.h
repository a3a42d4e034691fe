/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Records that were taken from the spool and are not acknowledged yet, in their
 * order. Partitions answer in any order; a spool wants to hear of all before a position.
 * So the window keeps what became of each, and settles them from the front.
 *
 * After a rewind the spool gives out the same records again. Those that need no
 * second sending are found here, and are not sent again.
 */
#ifndef NETOBS_SINKS_KAFKA_WINDOW_H
#define NETOBS_SINKS_KAFKA_WINDOW_H

#include "sink/position.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum window_state {
	WINDOW_UNSENT,
	WINDOW_SENT,
	WINDOW_DELIVERED,
	WINDOW_REFUSED,
};

struct window_entry {
	struct position end;
	enum window_state state;
	bool is_suspect; /* its batch was refused: it is sent alone */
};

struct window {
	struct window_entry *entries; /* a ring */
	size_t size;		      /* a power of two */
	uint64_t first, next, end;    /* numbers of entries: [first, end) */
};

void window_free(struct window *window);

/*
 * The number of the entry of a record that comes from the spool: a new one, or the
 * one it had before a rewind. -ENOMEM.
 */
int window_place(struct window *window, struct position end,
		 uint64_t *ret_number);

static inline struct window_entry *window_entry(const struct window *window,
						uint64_t number)
{
	return &window->entries[number & (window->size - 1)];
}

static inline bool window_is_empty(const struct window *window)
{
	return window->first == window->end;
}

/* The spool begins again at the front. */
static inline void window_rewind(struct window *window)
{
	window->next = window->first;
}

/* What was sent is not on its way any more. */
void window_unsend(struct window *window);

/*
 * Remove what is settled alike from the front, up to *@ret_end. False: the first
 * entry is not settled, or the spool has to give it out again first.
 */
bool window_settle(struct window *window, enum window_state *ret_state,
		   struct position *ret_end);

#endif
