/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A command that goes on until it is stopped, on a terminal: a key ends it, and what it shows is
 * drawn in place, below a line about it. Elsewhere, nothing of this happens.
 */
#ifndef NETOBS_SERVICE_TEXT_LIVE_H
#define NETOBS_SERVICE_TEXT_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct live {
	bool is_screen; /* it is drawn in place; else line by line */
	bool is_paused; /* what is on the screen stays */
	/* Below that line, on the terminal of standard output; 0: it is none. */
	uint32_t rows, columns;
	char subject[256]; /* of that line */
};

/* Take the keys, if standard output is a terminal. @is_screen: what is shown there is drawn in place. */
void live_start(struct live *live, bool is_screen);

/* Put the terminal back. */
void live_end(void);

/* What to poll for reading is keys_fd(). @return false: the user has seen enough */
bool live_take_keys(struct live *live);

/**
 * Begin to draw: of a screen, clear it and write the first line. What follows goes to stdout.
 *
 * @param subject  what is shown
 */
void live_begin(struct live *live, const char *subject, uint32_t interval_ms);

/* The first line of a screen, "12:34:56  drops, every 1 s        p pause  q quit": of the subject, what fits. */
void live_title(char *buf, size_t size, const char *subject, bool is_paused,
		int width);

/* Find the size of the terminal, if standard output is one. */
void live_measure(struct live *live);

/* Of a stream on a terminal: a line on stderr about what it waits for, and how it ends. */
void live_say(const char *command, const char *what);

#endif
