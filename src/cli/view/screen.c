// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "screen.h"

#include "base/clock_ms.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "row.h" /* before term.h, whose macros have names of its members */

#define NCURSES_NOMACROS
#include <curses.h>
#include <term.h>

#include "service/text/human.h"
#include "keys.h"
#include <netobs/names.h>
#include "service/outputs/output.h"
#include "view.h"

enum { ESCAPE_MS = 25 /* until an ESC is no part of another key */ };

/* Prepare the sequence that restores the terminal when there is no time for ncurses to do so. */
static void prepare_farewell(void)
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

/* Names of processes may be UTF-8 in any locale. */
static void set_locale(void)
{
	setlocale(LC_CTYPE, "");
	if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
		setlocale(LC_CTYPE, "C.UTF-8");
}

int screen_start(const struct output *output, struct screen **ret_screen)
{
	struct screen *screen;

	keys_start();
	set_locale();
	screen = newterm(NULL, stdout, stdin);
	if (!screen) {
		keys_end();
		output_say(output,
			   "this terminal cannot be used (TERM); try --once");
		return -ENOTSUP;
	}
	prepare_farewell();
	cbreak();
	noecho();
	nodelay(stdscr, TRUE);
	keypad(stdscr, TRUE);
	set_escdelay(ESCAPE_MS);
	curs_set(0);
	if (has_colors()) {
		start_color();
		use_default_colors();
		init_pair(SCREEN_LOSSES, COLOR_RED, -1);
	}
	*ret_screen = screen;
	return 0;
}

void screen_end(struct screen *screen)
{
	endwin();
	keys_farewell("");
	keys_end();
	delscreen(screen);
}

/* Cut text is marked. */
static void put_text(int line, int column, const char *text, int width)
{
	if (row_text_width(text) <= width) {
		mvaddstr(line, column, text);
	} else if (width > 0) {
		char mark[] = ROW_CUT;

		row_plain(mark);
		mvaddnstr(line, column, text, row_prefix_length(text, width - 1));
		addstr(mark);
	}
}

void screen_put(int line, unsigned int attributes, const char *text)
{
	if (line >= LINES)
		return;
	attrset(attributes);
	put_text(line, 0, text, COLS);
	attrset(A_NORMAL);
}

void screen_put_title(const char *left, const char *right)
{
	int room = COLS - (int)strlen(right);

	if (room < 0)
		room = 0;
	attrset(A_BOLD);
	put_text(0, 0, left, room ? room - 1 : 0);
	put_text(0, room, right, COLS - room);
	attrset(A_NORMAL);
}

void screen_subject(const struct output *output, int64_t drawn_at_s, char *buf,
		    size_t size)
{
	char time[24] = "Observing";

	if (drawn_at_s) {
		human_time(time, sizeof(time), drawn_at_s * NSEC_PER_SEC);
		time[sizeof("12:34:56") - 1] = ' ';
		time[sizeof("12:34:56")] = '\0';
	}
	if (output->view->is_file)
		snprintf(buf, size, "%s", output->view->subject);
	else
		snprintf(buf, size, "%s %s, every %g s", time,
			 output->view->subject,
			 output->view->interval_ms / 1000.0);
}

/* Bytes of the first keys that fit, whole: two blanks are between them. */
static int fit_keys(const char *keys, int width)
{
	int len = row_prefix_length(keys, width > 0 ? width : 0);

	if (!keys[len])
		return len;
	while (len && (keys[len] != ' ' || keys[len + 1] != ' '))
		len--;
	return len;
}

void screen_put_foot(const struct screen_state *state, const char *keys)
{
	static const char common[] = "p pause  h help  q quit";
	char line[160];
	int len;

	if (*screen_words(state)) {
		screen_put(LINES - 1, A_DIM, screen_words(state));
		return;
	}
	len = fit_keys(keys, COLS - (int)sizeof("  ") - (int)strlen(common));
	snprintf(line, sizeof(line), "%.*s%s%s", len, keys, len ? "  " : "",
		 common);
	screen_put(LINES - 1, A_DIM, line);
}

/* @return where the words after a key begin, as in "p pause"; 0: there is no key */
static int find_hanging(const char *text)
{
	const char *gap = strstr(text, "  ");

	return gap ? (int)(gap - text) + (int)strspn(gap, " ") : 0;
}

/* Bytes of the words of @text that fit, at least a part of the first. */
static int fit_words(const char *text, int width)
{
	int len = row_prefix_length(text, width), end = len;

	if (!text[len])
		return len;
	while (end && text[end] != ' ')
		end--;
	return end ? end : len;
}

/* @return the line behind it */
static int put_wrapped(int line, const char *from)
{
	char copy[1024];
	const char *text = copy;
	int hanging = find_hanging(from), column = 0;

	snprintf(copy, sizeof(copy), "%s", from);
	row_plain(copy);

	if (hanging * 2 > COLS)
		hanging = 0;
	do {
		/* Do not break the line between a key and its words. */
		const int head = column ? 0 : hanging;
		const int len = head + fit_words(text + head, COLS - hanging);

		if (line < LINES - 1)
			mvaddnstr(line, column, text, len);
		line++;
		text += len;
		text += strspn(text, " ");
		column = hanging;
	} while (*text);
	return line;
}

void screen_put_help(int line, const char *const *texts, size_t n)
{
	attrset(A_NORMAL);
	for (size_t i = 0; i < n; i++)
		line = put_wrapped(line, texts[i]);
	screen_put(LINES - 1, A_DIM, "any key goes back");
}

bool screen_scroll(int key, size_t page, size_t n, size_t *ret_first)
{
	const size_t last = n ? n - 1 : 0;
	size_t first = *ret_first;

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
	*ret_first = first < last ? first : last;
	return true;
}

void screen_put_rows(int line, struct layout *layout, const void *first,
		     size_t size, size_t n)
{
	char text[ROW_LINE_MAX];
	struct cells cells;

	layout_fit_rows(layout, first, size, n, COLS);
	layout_headings(layout, &cells);
	layout_line(layout, &cells, COLS, text);
	attrset(A_REVERSE);
	mvhline(line, 0, ' ', COLS);
	mvaddstr(line, 0, text);
	attrset(A_NORMAL);
	for (size_t i = 0; i < n; i++) {
		layout_cells(layout, (const char *)first + i * size, &cells);
		layout_line(layout, &cells, COLS, text);
		mvaddstr(line + 1 + (int)i, 0, text);
	}
}

/* ---- Outputs ------------------------------------------------------------------------ */

int screen_names_fd(const struct output *output)
{
	const struct screen_state *state = output->state;

	return state->names ? netobs_names_fd(state->names) : -1;
}

void screen_take_names(struct output *output)
{
	const struct screen_state *state = output->state;

	netobs_names_poll(state->names, 0);
	state->draw(output);
}

static void fit_terminal(void)
{
	struct winsize size;

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row && size.ws_col)
		resizeterm(size.ws_row, size.ws_col);
	clearok(curscr, TRUE); /* terminals differ in the content that they keep */
}

void screen_resize(struct output *output)
{
	const struct screen_state *state = output->state;

	if (state->screen)
		fit_terminal();
	state->draw(output);
}

void screen_pause(struct output *output)
{
	struct screen_state *state = output->state;

	state->is_paused = !state->is_paused;
	state->draw(output);
}

void screen_note(struct output *output, const char *message)
{
	struct screen_state *state = output->state;

	snprintf(state->note, sizeof(state->note), "%s", message);
	state->draw(output);
}

void screen_stand(struct output *output, const char *text)
{
	struct screen_state *state = output->state;

	snprintf(state->standing, sizeof(state->standing), "%s", text);
}

/* False: they cannot be looked up. */
static bool toggle_names(struct screen_state *state)
{
	struct netobs_names *before = state->names;

	state->names = NULL;
	netobs_names_free(before);
	return before || netobs_names_new(NULL, &state->names) == 0;
}

/* False: quit. */
static bool follow_key(struct output *output, int key)
{
	struct screen_state *state = output->state;

	if (state->has_help && key != 'q') {
		state->has_help = false;
		return true;
	}
	state->note[0] = '\0';
	if (state->follow_key(output, key))
		return true;
	switch (key) {
	case 'q':
		return false;
	case 'h':
	case '?':
		state->has_help = true;
		break;
	case 'p':
	case ' ':
		state->is_paused = !state->is_paused;
		break;
	case 'N':
		if (!toggle_names(state))
			snprintf(state->note, sizeof(state->note),
				 "Names cannot be shown.");
		break;
	default:
		break;
	}
	return true;
}

/* Standard input that is readable without anything to be read has ended. */
static bool has_keys(void)
{
	int pending = 0;

	return !ioctl(STDIN_FILENO, FIONREAD, &pending) && pending;
}

bool screen_follow_keys(struct output *output)
{
	const struct screen_state *state = output->state;
	int key;

	if (!has_keys())
		return false;
	while ((key = getch()) != ERR)
		if (key != KEY_RESIZE && !follow_key(output, key))
			return false;
	state->draw(output);
	return true;
}
