// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "live.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "keys.h"

#define GO_HOME "\033[H"
#define CLEAR_BELOW "\033[J"
#define SAVE_CURSOR "\0337"
#define RESTORE_CURSOR "\0338"

void live_start(struct live *live, bool is_screen)
{
	const bool is_terminal = isatty(STDOUT_FILENO);

	*live = (struct live){ .is_screen = is_screen && is_terminal,
			       .has_keys = is_terminal };
	if (is_terminal)
		keys_start();
}

void live_end(const struct live *live)
{
	if (live->has_keys)
		keys_end();
}

void live_measure(struct live *live)
{
	struct winsize size;

	live->rows = live->columns = 0;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
		return;
	live->columns = size.ws_col;
	live->rows = size.ws_row && live->is_screen ? size.ws_row - 1U :
						      size.ws_row;
}

uint32_t live_room(const struct live *live, uint32_t rows)
{
	const uint32_t room = live->rows > 3 ? live->rows - 3 : 0;

	return rows && (!room || rows < room) ? rows : room;
}

void live_title(char *buf, size_t size, const char *subject, bool is_paused,
		int width)
{
	const char *hint = is_paused ? "PAUSED  p continue  q quit" :
				       "p pause  q quit";
	const int room = width - (int)strlen(hint) - 2;

	if (room > 0)
		snprintf(buf, size, "%-*.*s  %s", room, room, subject, hint);
	else
		snprintf(buf, size, "%.*s", width, hint);
}

static void print_title(const struct live *live)
{
	char line[512];

	live_title(line, sizeof(line), live->subject, live->is_paused,
		   live->columns ? (int)live->columns : 80);
	puts(line);
}

void live_begin(struct live *live, const char *subject, uint32_t interval_ms)
{
	const time_t now = time(NULL);
	struct tm tm = { 0 };

	live_measure(live);
	if (!live->is_screen)
		return;
	localtime_r(&now, &tm);
	snprintf(live->subject, sizeof(live->subject),
		 "%02d:%02d:%02d  %.200s, every %g s", tm.tm_hour, tm.tm_min,
		 tm.tm_sec, subject, interval_ms / 1000.0);
	fputs(GO_HOME CLEAR_BELOW, stdout);
	print_title(live);
}

void live_pause(struct live *live)
{
	if (!live->is_screen)
		return;
	live->is_paused = !live->is_paused;
	fputs(SAVE_CURSOR GO_HOME, stdout);
	print_title(live);
	fputs(RESTORE_CURSOR, stdout);
	fflush(stdout);
}

void live_say(const char *command, const char *what)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "netobsctl %s: %s; %s\n", command, what,
			keys_fd() >= 0 ? "q quits" : "^C ends");
}
