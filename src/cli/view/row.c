/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "service/text/human.h"

enum {
	GAP = 2,
	LEAST_CUT = 3,
	LEAST_END = 7, /* "…:40000" */
	LEAST_ENDPOINTS = 20,
	LEAST_KEY = 8,
	KEY_WIDTH = 22
};

enum tables {
	TABLES_flows = 1,
	TABLES_groups = 2,
	TABLES_hosts = 4,
	TABLES_all = 7,
	TABLES_top = 8,
	TABLES_process = 16,
	TABLES_rtt = 32,
	TABLES_nat = 64,
	TABLES_drops = 128,
	TABLES_cause = 256
};

enum { LEAVE_STEPS = 6 };

/* ---- Signs ---------------------------------------------------------------------- */

/* Read the variables that setlocale(3) uses, without checking that the locale is installed. */
static bool is_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	const char *value = NULL;

	for (size_t i = 0;
	     i < sizeof(names) / sizeof(names[0]) && (!value || !*value); i++)
		value = getenv(names[i]);
	return value && (strcasestr(value, "utf-8") || strcasestr(value, "utf8"));
}

void row_plain(char *text)
{
	static const struct {
		char sign[4], plain[4];
	} signs[] = { { "\u2192", "->" },
		      { "\u2190", "<-" },
		      { "\u2194", "<->" },
		      { ROW_CUT, "~" } };

	if (is_utf8())
		return;
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
		const size_t len = strlen(signs[i].plain);

		for (char *at = text; (at = strstr(at, signs[i].sign));) {
			memcpy(at, signs[i].plain, len);
			memmove(at + len, at + strlen(signs[i].sign),
				strlen(at + strlen(signs[i].sign)) + 1);
		}
	}
}

/* ---- Cells ---------------------------------------------------------------------- */

/* Add the sampling to the text of a row that is not sampled as the heading says. */
static void add_sampling(const struct layout *layout,
			 const struct netobs_group_sum *tally, char *buf,
			 size_t size)
{
	const char *space = *buf ? " " : "";

	if (tally->sampling == layout->sampling || !tally->sampling ||
	    (tally->sampling == 1 && !layout->sampling))
		return;
	if (tally->sampling == 1)
		text_append(buf, size, "%s(all)", space);
	else
		text_append(buf, size, "%s(%s:%u)", space,
			    tally->sampling_mode == NETOBS_SAMPLE_FLOWS ? "flow" :
									  "1",
			    tally->sampling);
}

static int64_t lasted_ns(const struct row *row)
{
	return row->sum.end_ns - row->sum.start_ns;
}

/* With a sign that the others may have more bytes of the group. */
static void bytes_text(const struct layout *layout, const struct row *row,
		       char *buf, size_t size)
{
	const bool is_partial = layout->groups && row->group &&
				row->group->missing_bytes;

	*buf = '>';
	human_bytes(buf + is_partial, size - is_partial, row->sum.bytes);
}

/* The columns of columns.def. */
/* clang-format off */
TABLE_PUT(struct row, TIME, human_time(buf, size, row->sum.start_ns))
TABLE_PUT(struct row, PROTOCOL, human_protocol(buf, size, row->flow.proto))
TABLE_PUT(struct row, ENDPOINTS, tuple_text(&row->flow, layout->names, buf, size))
TABLE_PUT(struct row, PROCESS, snprintf(buf, size, "%s", row->process))
TABLE_PUT(struct row, NAT, snprintf(buf, size, "%s", row->nat))
TABLE_PUT(struct row, INFO, snprintf(buf, size, "%s", row->info);
	  add_sampling(layout, &row->sum, buf, size))
TABLE_PUT(struct row, FLOWS, human_count(buf, size, row->sum.flows))
TABLE_PUT(struct row, PACKETS, human_count(buf, size, row->sum.packets))
TABLE_PUT(struct row, PACE, human_pace(buf, size, row->sum.packets, layout->rate_ns))
TABLE_PUT(struct row, BYTES, bytes_text(layout, row, buf, size))
TABLE_PUT(struct row, SENT, human_bytes(buf, size, row->sum.sent_bytes))
TABLE_PUT(struct row, RTT, human_latency(buf, size, sum_rtt_ns(&row->sum)))
TABLE_PUT(struct row, RETRANSMITS, human_count(buf, size, row->sum.retransmits))
TABLE_PUT(struct row, DROPS, human_count(buf, size, row->sum.drop_packets))
TABLE_PUT(struct row, CAUSE, snprintf(buf, size, "%s", row->cause))
TABLE_PUT(struct row, RATE,
	  human_rate(buf, size, row->sum.bytes, layout->rate_ns ?: lasted_ns(row)))
TABLE_PUT(struct row, DURATION, human_duration(buf, size, lasted_ns(row)))
TABLE_PUT(struct row, WHERE, snprintf(buf, size, "%s", row->where))
/* clang-format on */

static void put_key(const struct layout *layout, const struct column *column,
		    const void *record, char *buf, size_t size)
{
	const struct row *row = record;
	const uint32_t key = (uint32_t)(column->id - COLUMN_KEYS);

	netobs_group_text(layout->groups, row->group, key, layout->names, buf,
			  size);
	if (key + 1 == layout->by->keys.n)
		add_sampling(layout, &row->sum, buf, size);
}

#define COLUMN(name, heading, tables, width, align, leave, text)             \
	{ TABLES_##tables,                                                   \
	  { COLUMN_##name, heading, TABLE_IS_RIGHT_##align, leave, 0, width, \
	    0, put_##name } },

static const struct {
	enum tables tables;
	struct column column;
} columns[COLUMN_KEYS] = {
#include "catalogue/columns.def"
};

void layout_cells(const struct layout *layout, const void *record,
		  struct cells *ret_cells)
{
	for (size_t i = 0; i < layout->n; i++) {
		const struct column *column = &layout->columns[i];

		ret_cells->text[i] = ret_cells->buf[i];
		column->put(layout, column, record, ret_cells->buf[i],
			    sizeof(ret_cells->buf[i]));
		row_plain(ret_cells->buf[i]);
	}
}

void layout_cells_sum(const struct layout *layout, const char *text,
		      const struct netobs_group_sum *tally,
		      struct cells *ret_cells)
{
	const struct row row = { .sum = *tally };

	for (size_t i = 0; i < layout->n; i++) {
		const struct column *column = &layout->columns[i];
		const bool is_number = column->right || column->id == COLUMN_TIME;

		ret_cells->text[i] = is_number ? ret_cells->buf[i] : text;
		if (is_number)
			column->put(layout, column, &row, ret_cells->buf[i],
				    sizeof(ret_cells->buf[i]));
		else
			text = "";
	}
}

void layout_headings(const struct layout *layout, struct cells *ret_cells)
{
	for (size_t i = 0; i < layout->n; i++) {
		snprintf(ret_cells->buf[i], sizeof(ret_cells->buf[i]), "%s",
			 layout->columns[i].heading);
		row_plain(ret_cells->buf[i]);
		ret_cells->text[i] = ret_cells->buf[i];
	}
}

/* ---- Widths --------------------------------------------------------------------- */

int row_prefix_length(const char *text, int width)
{
	const char *pos = text;

	for (; *pos; pos++) {
		if ((*pos & 0xc0) != 0x80 && width-- == 0)
			break;
	}
	return (int)(pos - text);
}

int row_text_width(const char *text)
{
	int width = 0;

	for (; *text; text++)
		width += (*text & 0xc0) != 0x80;
	return width;
}

/* @return the port at the end of an address, ":443" or ":443/TCP", or "" */
static const char *find_port(const char *text)
{
	const char *colon = strrchr(text, ':'), *end;

	if (!colon)
		return "";
	end = colon + 1 + strspn(colon + 1, "0123456789");
	return end > colon + 1 && (!*end || *end == '/') ? colon : "";
}

static void cut_text(char *buf, size_t size, const char *text, int width);

/* @return the arrow between two ends in a text that cut_text() cuts */
static const char *find_arrow(const char *text)
{
	const char *arrow = strstr(text, " \u2192 ");

	return arrow ?: strstr(text, " -> ");
}

/* The end behind the arrow, which is the server's, gets the width it needs; the other end gets the rest. */
static void cut_ends(char *buf, size_t size, const char *text,
		     const char *arrow, int width)
{
	const char *behind = strchr(arrow + 1, ' ') + 1;
	const int gap = row_text_width(arrow) - row_text_width(behind);
	const int wanted = row_text_width(behind), room = width - gap - LEAST_END;
	char end[2][CELL_MAX / 2 - 4], from[CELL_MAX];

	snprintf(from, sizeof(from), "%.*s", (int)(arrow - text), text);
	cut_text(end[1], sizeof(end[1]), behind, wanted < room ? wanted : room);
	cut_text(end[0], sizeof(end[0]), from,
		 width - gap - row_text_width(end[1]));
	snprintf(buf, size, "%s%.*s%s", end[0], (int)(behind - arrow), arrow,
		 end[1]);
}

/* Write @text to @buf in @width columns. Cuts are marked; ports, and a part of each of two ends, remain. */
static void cut_text(char *buf, size_t size, const char *text, int width)
{
	const char *port = find_port(text), *arrow = find_arrow(text);
	int room;

	if (row_text_width(text) <= width) {
		snprintf(buf, size, "%s", text);
		return;
	}
	if (arrow && width > 2 * LEAST_END) {
		cut_ends(buf, size, text, arrow, width);
		return;
	}
	room = width - 1 - row_text_width(port);
	if (room < LEAST_CUT) {
		port = "";
		room = width - 1;
	}
	snprintf(buf, size, "%.*s" ROW_CUT "%s", row_prefix_length(text, room),
		 text, port);
	row_plain(buf);
}

static void layout_add_keys(struct layout *layout, const struct by *by)
{
	for (size_t i = 0; i < by->keys.n; i++)
		layout->columns[layout->n++] =
			(struct column){ .id = COLUMN_KEYS + (int)i,
					 .heading = by->keys.headings[i],
					 .least = LEAST_KEY,
					 .width = KEY_WIDTH / (int)by->keys.n,
					 .put = put_key };
}

void layout_init(struct layout *layout, const struct by *by, enum layout_kind kind)
{
	const unsigned int table =
		(kind == LAYOUT_TOP ? TABLES_top : 0) |
		(!by->keys.n && by->shows_process ? TABLES_process : 0) |
		(!by->keys.n && by->shows_nat ? TABLES_nat : 0) |
		(!by->keys.n && by->shows_drops ? TABLES_cause : 0) |
		(by->shows_drops ? TABLES_drops : 0) |
		(by->shows_rtt ? TABLES_rtt : 0) |
		(!by->keys.n	      ? TABLES_flows :
		 by_has_both_ends(by) ? TABLES_groups | TABLES_hosts :
					TABLES_groups);

	*layout = (struct layout){ .by = by };
	for (int i = 0; i < COLUMN_KEYS; i++) {
		if (i == COLUMN_FLOWS)
			layout_add_keys(layout, by);
		if (!(columns[i].tables & table) ||
		    (i == COLUMN_TIME && kind != LAYOUT_LINES))
			continue;
		layout->columns[layout->n++] = columns[i].column;
		if (i == COLUMN_ENDPOINTS)
			layout->columns[layout->n - 1].least = LEAST_ENDPOINTS;
	}
}

void layout_widen(struct layout *layout, const struct cells *cells)
{
	for (size_t i = 0; i < layout->n; i++) {
		struct column *column = &layout->columns[i];
		int width = row_text_width(cells->text[i]);

		if (column->widest < width)
			column->widest = width;
		if (column->width && column->width < width)
			column->width = width;
	}
}

int layout_width(const struct layout *layout)
{
	int total = -GAP;

	for (size_t i = 0; i < layout->n; i++) {
		if (layout->columns[i].width)
			total += layout->columns[i].width + GAP;
	}
	return total;
}

void layout_fill(struct layout *layout, int screen)
{
	const int spare = screen - layout_width(layout);

	if (spare > 0)
		layout->columns[layout->n - 1].width += spare;
}

static void layout_leave_out(struct layout *layout, int step)
{
	for (size_t i = 0; i < layout->n; i++) {
		if (layout->columns[i].leave_at == step)
			layout->columns[i].width = 0;
	}
}

/* @return the column that can be cut by most; NULL: none can be cut any more */
static struct column *layout_find_spare(struct layout *layout)
{
	struct column *found = NULL;

	for (size_t i = 0; i < layout->n; i++) {
		struct column *column = &layout->columns[i];
		const int spare =
			column->least ? column->width - column->least : 0;

		if (spare > (found ? found->width - found->least : 0))
			found = column;
	}
	return found;
}

void layout_fit(struct layout *layout, int screen)
{
	struct column *column;

	if (!screen || layout_width(layout) <= screen)
		return;
	for (size_t i = 0; i < layout->n; i++) {
		if (layout->columns[i].width)
			layout->columns[i].width = layout->columns[i].widest;
	}
	for (int step = 1; step <= LEAVE_STEPS && layout_width(layout) > screen;
	     step++)
		layout_leave_out(layout, step);
	while (layout_width(layout) > screen &&
	       (column = layout_find_spare(layout)))
		column->width--;
}

void layout_fit_rows(struct layout *layout, const void *first, size_t size,
		     size_t n, int screen)
{
	struct cells cells;

	layout_headings(layout, &cells);
	layout_widen(layout, &cells);
	for (size_t i = 0; i < n; i++) {
		layout_cells(layout, (const char *)first + i * size, &cells);
		layout_widen(layout, &cells);
	}
	layout_fit(layout, screen);
}

size_t layout_line(const struct layout *layout, const struct cells *cells,
		   int screen, char *buf)
{
	size_t used = 0;

	*buf = '\0';
	for (size_t i = 0; i < layout->n; i++) {
		const struct column *column = &layout->columns[i];
		char text[CELL_MAX];
		int padding;

		if (!column->width)
			continue;
		cut_text(text, sizeof(text), cells->text[i], column->width);
		padding = column->width - row_text_width(text);
		used += (size_t)snprintf(buf + used, ROW_LINE_MAX - used,
					 "%*s%s%*s",
					 column->right ? padding : 0, "", text,
					 GAP + (column->right ? 0 : padding), "");
		if (used >= ROW_LINE_MAX)
			used = ROW_LINE_MAX - 1;
	}
	if (screen)
		used = (size_t)row_prefix_length(buf, screen);
	while (used && buf[used - 1] == ' ')
		used--;
	buf[used] = '\0';
	return used;
}

int row_line_width(void)
{
	const char *wanted = getenv("COLUMNS");
	struct winsize size;
	char *end;
	long width;

	width = wanted ? strtol(wanted, &end, 10) : 0;
	if (width > 0 && width < ROW_LINE_MAX && !*end)
		return (int)width;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
		return 0;
	return size.ws_col;
}
