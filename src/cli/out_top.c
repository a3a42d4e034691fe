/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The screen of netobsctl top, by ncurses. However the program ends, keys_end() puts the
 * terminal back.
 */
#include <ctype.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define NCURSES_NOMACROS
#include <curses.h>
#include <term.h>

#include "base/clock_ms.h"
#include "keys.h"
#include "names.h"
#include "top.h"
#include "view.h"

enum {
	KEY_ESCAPE = 27,
	ESCAPE_MS = 25,	  /* until an ESC is no part of another key */
	MIN_AGE_MS = 200, /* of an interval: early drains may come much faster */
};

/* ---- Keys ----------------------------------------------------------------------- */

static void top_type(struct top *top, int key)
{
	const size_t len = strlen(top->typed);

	if (key == KEY_ESCAPE || key == '\n' || key == '\r' || key == KEY_ENTER) {
		if (key != KEY_ESCAPE)
			memcpy(top->search, top->typed, sizeof(top->search));
		top->is_typing = false;
		top->first = 0;
	} else if (key == KEY_BACKSPACE || key == '\b' || key == 127) {
		if (len)
			top->typed[len - 1] = '\0';
	} else if (key < 128 && isprint(key) && len + 1 < sizeof(top->typed)) {
		top->typed[len] = (char)key;
		top->typed[len + 1] = '\0';
	}
}

static void top_show_table(struct top *top, size_t table)
{
	top->table = table;
	top->first = 0;
}

static void top_sort(struct top *top, enum sort sort)
{
	top->order = (struct order){ .sort = sort };
	top->first = 0;
}

static bool top_scroll(struct top *top, int key)
{
	const size_t page = top_room(), last = top->n_rows ? top->n_rows - 1 : 0;
	size_t first = top->first;

	switch (key) {
	case KEY_UP:
		first -= !!first;
		break;
	case KEY_DOWN:
		first++;
		break;
	case KEY_PPAGE:
		first = first > page ? first - page : 0;
		break;
	case KEY_NPAGE:
		first += page;
		break;
	case KEY_HOME:
		first = 0;
		break;
	case KEY_END:
		first = last >= page ? last - page + 1 : 0;
		break;
	default:
		return false;
	}
	top->first = first < last ? first : last;
	return true;
}

static void top_toggle_names(struct top *top)
{
	struct names *names = top->names;

	top->names = NULL;
	if (names)
		names_free(names);
	else if (names_new(NULL, &top->names) < 0)
		snprintf(top->note, sizeof(top->note), "Names cannot be shown.");
}

static bool top_choose(struct top *top, int key)
{
	const size_t n = top->tables.n;

	if (key >= '1' && key < '1' + (int)n) {
		top_show_table(top, (size_t)(key - '1'));
		return true;
	}
	switch (key) {
	case '\t':
	case KEY_RIGHT:
		top_show_table(top, (top->table + 1) % n);
		return true;
	case KEY_BTAB:
	case KEY_LEFT:
		top_show_table(top, (top->table + n - 1) % n);
		return true;
	case 'b':
		top_sort(top, SORT_BYTES);
		return true;
	case 'k':
		top_sort(top, SORT_PACKETS);
		return true;
	case 'f':
		top_sort(top, SORT_FLOWS);
		return true;
	case 's':
		top_sort(top, SORT_SENT);
		return true;
	case 'n':
		top_sort(top, SORT_VALUE);
		return true;
	default:
		return top_scroll(top, key);
	}
}

/* False: quit. */
static bool top_follow_key(struct top *top, int key)
{
	if (top->has_help && key != 'q') {
		top->has_help = false;
		return true;
	}
	if (top->is_typing) {
		top_type(top, key);
		return true;
	}
	top->note[0] = '\0';
	if (top_choose(top, key))
		return true;
	switch (key) {
	case 'q':
		return false;
	case 'h':
	case '?':
		top->has_help = true;
		break;
	case 'p':
	case ' ':
		top->is_paused = !top->is_paused;
		break;
	case 't':
		top->since_start = !top->since_start;
		break;
	case 'N':
		top_toggle_names(top);
		break;
	case '/':
		top->is_typing = true;
		top->typed[0] = '\0';
		break;
	case KEY_ESCAPE:
		top->search[0] = '\0';
		break;
	default:
		break;
	}
	return true;
}

/* Nothing to be read means that the terminal is gone. */
static bool top_follow_keys(struct output *output)
{
	struct top *top = output->state;
	int key, pending = 0;

	if (ioctl(STDIN_FILENO, FIONREAD, &pending) < 0 || !pending)
		return false;
	while ((key = getch()) != ERR)
		if (key != KEY_RESIZE && !top_follow_key(top, key))
			return false;
	top_draw(output);
	return true;
}

/* ---- The output ------------------------------------------------------------------ */

/* What puts the terminal back when there is no time for ncurses to do so. */
static void top_prepare_farewell(void)
{
	static const char *const names[] = { "rmkx", "sgr0", "cnorm", "rmcup" };
	char text[64] = "";
	size_t used = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *capability = tigetstr(names[i]);

		if (capability && capability != (char *)-1 &&
		    used + strlen(capability) < sizeof(text))
			used += (size_t)sprintf(text + used, "%s", capability);
	}
	keys_farewell(text);
}

/* Arrows are drawn in any locale, as in the other tables. */
static void top_set_locale(void)
{
	setlocale(LC_CTYPE, "");
	if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
		setlocale(LC_CTYPE, "C.UTF-8");
}

static int top_start_screen(struct output *output, struct top *top)
{
	keys_start();
	top_set_locale();
	top->screen = newterm(NULL, stdout, stdin);
	if (!top->screen) {
		keys_end();
		output_say(output,
			   "this terminal cannot be used (TERM); try --once");
		return -ENOTSUP;
	}
	top_prepare_farewell();
	cbreak();
	noecho();
	nodelay(stdscr, TRUE);
	keypad(stdscr, TRUE);
	set_escdelay(ESCAPE_MS);
	curs_set(0);
	if (has_colors()) {
		start_color();
		use_default_colors();
		init_pair(TOP_LOSSES, COLOR_RED, -1);
	}
	return 0;
}

static void top_free(struct top *top)
{
	top_tables_free(&top->tables);
	names_free(top->names);
	free(top);
}

static int top_open(struct output *output)
{
	struct top *top = calloc(1, sizeof(*top));
	int err;

	if (!top)
		return -ENOMEM;
	top->order = output->view->order;
	top->since_start = output->is_file;
	err = top_tables_init(&top->tables, &output->view->by);
	if (err == 0 && output->view->want_names)
		err = names_new(NULL, &top->names);
	if (err == 0)
		err = top_start_screen(output, top);
	if (err < 0) {
		top_free(top);
		return err;
	}
	output->state = top;
	top_draw(output);
	return 0;
}

static void top_add_flow(struct output *output, const struct netobs_flow *flow)
{
	struct top *top = output->state;

	top_tables_add(&top->tables, flow);
}

/* What comes while the screen is frozen is on the first one after it. */
static void top_end_interval(struct output *output)
{
	struct top *top = output->state;
	int64_t age_ms = output->interval_ms * INT64_C(3) / 4;

	if (output->is_file) {
		top_end_interval_of_file(top);
		return;
	}
	if (top->is_paused || (!top->drawn_at_s && !top->tables.next_sum.flows))
		return;
	if (age_ms < MIN_AGE_MS)
		age_ms = MIN_AGE_MS;
	if (top_tables_age_ns(&top->tables) < age_ms * NSEC_PER_MSEC)
		return;
	top_tables_turn(&top->tables, false);
	top->drawn_at_s = clock_ns(CLOCK_REALTIME) / NSEC_PER_SEC;
	top_draw(output);
}

static int top_names_fd(const struct output *output)
{
	const struct top *top = output->state;

	return names_fd(top->names);
}

static void top_take_names(struct output *output)
{
	const struct top *top = output->state;

	names_clear(top->names);
	top_draw(output);
}

static void top_resize(struct output *output)
{
	struct winsize size;

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row && size.ws_col)
		resizeterm(size.ws_row, size.ws_col);
	clearok(curscr, TRUE); /* terminals differ in what they keep */
	top_draw(output);
}

static bool top_note(struct output *output, const char *message)
{
	struct top *top = output->state;

	snprintf(top->note, sizeof(top->note), "%s", message);
	top_draw(output);
	return true;
}

static bool top_close(struct output *output)
{
	struct top *top = output->state;

	if (!top)
		return true;
	endwin();
	keys_farewell("");
	keys_end();
	delscreen(top->screen);
	top_free(top);
	output->state = NULL;
	return true;
}

const struct output_kind output_top = {
	.open = top_open,
	.flow = top_add_flow,
	.interval = top_end_interval,
	.fd = top_names_fd,
	.ready = top_take_names,
	.resize = top_resize,
	.keys = top_follow_keys,
	.note = top_note,
	.close = top_close,
};
