/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A command that runs on a terminal until it is stopped: a key ends it, and its output is drawn in
 * place, below a line about it. If the output is no terminal, it is written line by line.
 */
#ifndef NETOBS_CLI_VIEW_LIVE_H
#define NETOBS_CLI_VIEW_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct live {
	bool has_keys;	/* take the keys of the terminal */
	bool is_screen; /* draw in place; false: line by line */
	bool is_paused; /* do not change the screen */
	/* Size below that line, on the terminal of standard output; 0: it is none. */
	uint32_t rows, columns;
	char subject[256]; /* text of that line */
};

/* Take the keys, if standard output is a terminal. @is_screen: draw in place on it. */
void live_start(struct live *live, bool is_screen);

/* Put the terminal back. */
void live_end(const struct live *live);

/* Freeze a screen, or resume. */
void live_pause(struct live *live);

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

/**
 * @param rows  that are wanted, at most; 0: all
 * @return rows that fit between the headings and a line below them; 0: there is no limit
 */
uint32_t live_room(const struct live *live, uint32_t rows);

/* For a stream on a terminal: print a line on stderr: what the command waits for, and how to end it. */
void live_say(const char *command, const char *what);

#endif
