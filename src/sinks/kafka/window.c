// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "window.h"

#include <errno.h>
#include <stdlib.h>

enum { FIRST_SIZE = 1024 };

void window_free(struct window *window)
{
	free(window->entries);
	*window = (struct window){ 0 };
}

static int grow_window(struct window *window)
{
	struct window larger = *window;

	larger.size = window->size ? 2 * window->size : FIRST_SIZE;
	larger.entries = malloc(larger.size * sizeof(*larger.entries));
	if (!larger.entries)
		return -ENOMEM;
	for (uint64_t n = window->first; n < window->end; n++)
		*window_entry(&larger, n) = *window_entry(window, n);
	free(window->entries);
	*window = larger;
	return 0;
}

int window_place(struct window *window, struct position end, uint64_t *ret_number)
{
	/* What the spool does not give out again, it has dropped. */
	for (; window->next < window->end; window->next++) {
		struct window_entry *entry = window_entry(window, window->next);

		if (entry->end.seq == end.seq) {
			*ret_number = window->next++;
			return 0;
		}
		if (!position_is_before(entry->end, end))
			break;
		if (entry->state == WINDOW_UNSENT)
			entry->state = WINDOW_DELIVERED;
	}
	if (window->end - window->first == window->size) {
		int err = grow_window(window);

		if (err)
			return err;
	}
	*ret_number = window->end++;
	window->next = window->end;
	*window_entry(window, *ret_number) =
		(struct window_entry){ .end = end, .state = WINDOW_UNSENT };
	return 0;
}

void window_unsend(struct window *window)
{
	for (uint64_t n = window->first; n < window->end; n++) {
		struct window_entry *entry = window_entry(window, n);

		if (entry->state == WINDOW_SENT)
			entry->state = WINDOW_UNSENT;
	}
}

bool window_settle(struct window *window, enum window_state *ret_state,
		   struct position *ret_end)
{
	const struct window_entry *entry;

	if (window->first == window->next)
		return false;
	entry = window_entry(window, window->first);
	if (entry->state < WINDOW_DELIVERED)
		return false;
	*ret_state = entry->state;
	do {
		*ret_end = entry->end;
		entry = window_entry(window, ++window->first);
	} while (window->first < window->next && entry->state == *ret_state);
	return true;
}
