/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The whole terminal, by ncurses. However the program ends, keys_end() puts the terminal
 * back.
 */
#ifndef NETOBS_CLI_VIEW_SCREEN_H
#define NETOBS_CLI_VIEW_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct layout;
struct netobs_names;
struct output;
struct screen;

enum { KEY_ESCAPE = 27 };
enum { SCREEN_LOSSES = 1 }; /* number of a colour pair */

/* Comes first in the state of an output that takes the terminal. */
struct screen_state {
	struct screen *screen;	    /* NULL: it does not, or not yet */
	struct netobs_names *names; /* NULL: not wanted */
	size_t first;		    /* row that is shown */
	bool is_paused, has_help;
	int64_t drawn_at_s; /* time of day of the last interval; 0: none has ended */
	char note[160];	    /* until a key is pressed; "" */
	char standing[160]; /* lasting state, shown if there is no note; "": none */

	void (*draw)(struct output *output);
	/** @return whether it is a key of this screen, and no common one */
	bool (*follow_key)(struct output *output, int key);
};

/** @return 0; -ENOTSUP: this terminal cannot be used, which was logged */
int screen_start(const struct output *output, struct screen **ret_screen);

/** Put the terminal back. */
void screen_end(struct screen *screen);

/* ---- Of outputs whose state begins with a struct screen_state, if they are open --------- */

int screen_names_fd(const struct output *output);
void screen_take_names(struct output *output);

/* The terminal has another size. */
void screen_resize(struct output *output);

/* Freeze it, or resume: flows that arrive during a pause are on the first screen after it. */
void screen_pause(struct output *output);

/* Read and follow the keys that were pressed. @return false: the user has seen enough */
bool screen_follow_keys(struct output *output);

/* Show a log line. */
void screen_note(struct output *output, const char *message);

/* Show it in the place of a note from the next refresh on; "": no more. */
void screen_stand(struct output *output, const char *text);

/* ---- Parts ------------------------------------------------------------------------------ */

/* @return the note, or else what lasts; "": there is neither */
static inline const char *screen_words(const struct screen_state *state)
{
	return *state->note ? state->note : state->standing;
}

/**
 * Put headings of columns, in reverse, and @n records below them, as wide as the screen.
 *
 * @param first  of records that have @size bytes each
 */
void screen_put_rows(int line, struct layout *layout, const void *first,
		     size_t size, size_t n);

/** Put a line of one byte per column. @line may be below the screen. */
void screen_put(int line, unsigned int attributes, const char *text);

/** Put a note in the last line or, if there is none, as many of @keys as fit before the common keys. */
void screen_put_foot(const struct screen_state *state, const char *keys);

/** Put texts from @line on, a line each, and in the last line how to go back. */
void screen_put_help(int line, const char *const *texts, size_t n);

/**
 * Follow a key that scrolls.
 *
 * @param page      rows that there is room for
 * @param n         rows that there are
 * @param ret_first the first row that is shown
 * @return whether it is such a key
 */
bool screen_scroll(int key, size_t page, size_t n, size_t *ret_first);

/** Put the first line, with @right at its right end. */
void screen_put_title(const char *left, const char *right);

/**
 * "12:34:56  eth0, every 1 s"
 *
 * @param drawn_at_s  time of day of the last interval; 0: none has ended
 */
void screen_subject(const struct output *output, int64_t drawn_at_s, char *buf,
		    size_t size);

#endif
