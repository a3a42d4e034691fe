/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "keys.h"

#include <stdbool.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "service/signals.h"

/* The process has one terminal, so it has one state to restore. */
static struct termios before;
static volatile bool is_started;
static char farewell[64];
static volatile size_t farewell_len;

/* A background process that changed the terminal would be stopped. */
static bool is_ours(void)
{
	return isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

void keys_start(void)
{
	struct termios raw;

	signals_restore_by(keys_end);
	if (is_started || !is_ours() || tcgetattr(STDIN_FILENO, &before) < 0)
		return;
	raw = before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	is_started = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

void keys_farewell(const char *text)
{
	const size_t len = strnlen(text, sizeof(farewell));

	farewell_len = 0;
	memcpy(farewell, text, len);
	farewell_len = len;
}

void keys_end(void)
{
	if (farewell_len && is_ours() &&
	    write(STDOUT_FILENO, farewell, farewell_len) < 0)
		is_started = false; /* the terminal is gone */
	if (is_started && is_ours())
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
	is_started = false;
}

int keys_fd(void)
{
	return is_started && is_ours() ? STDIN_FILENO : -1;
}

unsigned int keys_read(void)
{
	char typed[64];
	ssize_t len = read(STDIN_FILENO, typed, sizeof(typed));
	unsigned int keys = 0;

	if (len == 0) /* the terminal is gone */
		keys_end();
	for (ssize_t i = 0; i < len; i++) {
		if (typed[i] == 'q')
			keys |= KEY_QUIT;
		else if (typed[i] == 'p')
			keys ^= KEY_PAUSE;
	}
	return keys;
}
