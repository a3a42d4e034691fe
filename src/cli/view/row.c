/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "service/text/human.h"
#include "group/names.h"

#define ELLIPSIS "\u2026"

enum { GAP = 2, LEAST_ENDPOINTS = 20, LEAST_KEY = 8, KEY_WIDTH = 22 };

enum tables {
	TABLES_flows = 1,
	TABLES_groups = 2,
	TABLES_hosts = 4,
	TABLES_all = 7,
	TABLES_top = 8,
	TABLES_process = 16,
	TABLES_rtt = 32
};

#define IS_RIGHT_left false
#define IS_RIGHT_right true
#define COLUMN(name, heading, tables, width, align, leave, text) \
	{ TABLES_##tables,                                       \
	  { COLUMN_##name, heading, IS_RIGHT_##align, leave, 0, width, 0 } },

static const struct {
	enum tables tables;
	struct column column;
} columns[COLUMN_KEYS] = {
#include "catalogue/columns.def"
};

enum { LEAVE_STEPS = 6 };

/* ---- Cells ---------------------------------------------------------------------- */

/* False: it is not a number. */
static bool put_number(int id, const struct tally *tally, int64_t rate_ns,
		       char *buf, size_t size)
{
	const int64_t lasted_ns = tally->end_ns - tally->start_ns;

	switch (id) {
	case COLUMN_TIME:
		human_time(buf, size, tally->start_ns);
		return true;
	case COLUMN_FLOWS:
		human_count(buf, size, tally->flows);
		return true;
	case COLUMN_PACKETS:
		human_count(buf, size, tally->packets);
		return true;
	case COLUMN_PACE:
		human_pace(buf, size, tally->packets, rate_ns);
		return true;
	case COLUMN_BYTES:
		human_bytes(buf, size, tally->bytes);
		return true;
	case COLUMN_SENT:
		human_bytes(buf, size, tally->sent_bytes);
		return true;
	case COLUMN_RTT:
		human_latency(buf, size, tally_rtt_ns(tally));
		return true;
	case COLUMN_RETRANSMITS:
		human_count(buf, size, tally->retransmits);
		return true;
	case COLUMN_RATE:
		human_rate(buf, size, tally->bytes,
			   rate_ns ? rate_ns : lasted_ns);
		return true;
	case COLUMN_DURATION:
		human_duration(buf, size, lasted_ns);
		return true;
	default:
		return false;
	}
}

/* To the text of a row that is not sampled as the heading says. */
static void add_sampling(const struct layout *layout, const struct tally *tally,
			 char *buf, size_t size)
{
	const size_t len = strlen(buf);
	const char *space = len ? " " : "";

	if (tally->sampling == layout->sampling || !tally->sampling ||
	    (tally->sampling == 1 && !layout->sampling))
		return;
	if (tally->sampling == 1)
		snprintf(buf + len, size - len, "%s(all)", space);
	else
		snprintf(buf + len, size - len, "%s(%s:%u)", space,
			 tally->sampling_mode == NETOBS_SAMPLE_FLOWS ? "flow" :
								       "1",
			 tally->sampling);
}

static const char *put_text(const struct layout *layout, int id,
			    struct names *names, const struct row *row,
			    char *buf, size_t size)
{
	switch (id) {
	case COLUMN_PROTOCOL:
		human_protocol(buf, size, row->flow.proto);
		return buf;
	case COLUMN_ENDPOINTS:
		by_tuple_text(&row->flow, names, buf, size);
		return buf;
	case COLUMN_INFO:
		snprintf(buf, size, "%s", row->info);
		add_sampling(layout, &row->tally, buf, size);
		return buf;
	case COLUMN_WHERE:
		return row->where;
	case COLUMN_PROCESS:
		return row->process;
	default:
		by_text(layout->by, (size_t)(id - COLUMN_KEYS), row->value,
			names, buf, size);
		if ((size_t)(id - COLUMN_KEYS) + 1 == layout->by->n)
			add_sampling(layout, &row->tally, buf, size);
		return buf;
	}
}

void layout_cells(const struct layout *layout, struct names *names,
		  const struct row *row, int64_t rate_ns, struct cells *ret_cells)
{
	for (size_t i = 0; i < layout->n; i++) {
		char *buf = ret_cells->buf[i];
		const size_t size = sizeof(ret_cells->buf[i]);
		const int id = layout->columns[i].id;

		ret_cells->text[i] =
			put_number(id, &row->tally, rate_ns, buf, size) ?
				buf :
				put_text(layout, id, names, row, buf, size);
	}
}

void layout_cells_sum(const struct layout *layout, const char *text,
		      const struct tally *tally, int64_t rate_ns,
		      struct cells *ret_cells)
{
	for (size_t i = 0; i < layout->n; i++) {
		char *buf = ret_cells->buf[i];

		if (put_number(layout->columns[i].id, tally, rate_ns, buf,
			       sizeof(ret_cells->buf[i]))) {
			ret_cells->text[i] = buf;
			continue;
		}
		ret_cells->text[i] = text;
		text = "";
	}
}

void layout_headings(const struct layout *layout, struct cells *ret_cells)
{
	for (size_t i = 0; i < layout->n; i++)
		ret_cells->text[i] = layout->columns[i].heading;
}

/* ---- Widths --------------------------------------------------------------------- */

/* Bytes that @text takes for at most @width columns of the screen. UTF-8
 * sequences that are printed here take one column each. */
static int prefix_length(const char *text, int width)
{
	const char *pos = text;

	for (; *pos; pos++) {
		if ((*pos & 0xc0) != 0x80 && width-- == 0)
			break;
	}
	return (int)(pos - text);
}

static int display_width(const char *text)
{
	int width = 0;

	for (; *text; text++)
		width += (*text & 0xc0) != 0x80;
	return width;
}

static void layout_add_column(struct layout *layout, const struct column *column)
{
	layout->columns[layout->n++] = *column;
}

static void layout_add_keys(struct layout *layout, const struct by *by)
{
	for (size_t i = 0; i < by->n; i++)
		layout_add_column(
			layout,
			&(struct column){ .id = COLUMN_KEYS + (int)i,
					  .heading = by_heading(by, i),
					  .least = LEAST_KEY,
					  .width = KEY_WIDTH / (int)by->n });
}

void layout_init(struct layout *layout, const struct by *by, enum layout_kind kind)
{
	const unsigned int table =
		(kind == LAYOUT_TOP ? TABLES_top : 0) |
		(!by->n && by->shows_process ? TABLES_process : 0) |
		(by->shows_rtt ? TABLES_rtt : 0) |
		(!by->n	       ? TABLES_flows :
		 by->both_ends ? TABLES_groups | TABLES_hosts :
				 TABLES_groups);

	layout->n = 0;
	layout->sampling = 0;
	layout->by = by;
	for (int i = 0; i < COLUMN_KEYS; i++) {
		if (i == COLUMN_FLOWS)
			layout_add_keys(layout, by);
		if (!(columns[i].tables & table) ||
		    (i == COLUMN_TIME && kind != LAYOUT_LINES))
			continue;
		layout_add_column(layout, &columns[i].column);
		if (i == COLUMN_ENDPOINTS)
			layout->columns[layout->n - 1].least = LEAST_ENDPOINTS;
	}
}

void layout_widen(struct layout *layout, const struct cells *cells)
{
	for (size_t i = 0; i < layout->n; i++) {
		struct column *column = &layout->columns[i];
		int width = display_width(cells->text[i]);

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

/* The widest column that can be cut; NULL: there is none any more. */
static struct column *layout_find_widest(struct layout *layout)
{
	struct column *widest = NULL;

	for (size_t i = 0; i < layout->n; i++) {
		struct column *column = &layout->columns[i];

		if (column->least && column->width > column->least &&
		    (!widest || column->width > widest->width))
			widest = column;
	}
	return widest;
}

void layout_fit(struct layout *layout, int screen)
{
	struct column *widest;

	if (layout_width(layout) <= screen)
		return;
	for (size_t i = 0; i < layout->n; i++) {
		if (layout->columns[i].width)
			layout->columns[i].width = layout->columns[i].widest;
	}
	for (int step = 1; step <= LEAVE_STEPS && layout_width(layout) > screen;
	     step++)
		layout_leave_out(layout, step);
	while (layout_width(layout) > screen &&
	       (widest = layout_find_widest(layout)))
		widest->width--;
}

void layout_fit_rows(struct layout *layout, struct names *names,
		     const struct rows *rows, size_t first, size_t n,
		     int64_t rate_ns, int screen)
{
	struct cells cells;

	layout_headings(layout, &cells);
	layout_widen(layout, &cells);
	for (size_t i = first; i < first + n; i++) {
		layout_cells(layout, names, rows_at(rows, i), rate_ns, &cells);
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
		const char *text = cells->text[i];
		int padding = column->width - display_width(text);
		bool is_cut = padding < 0;

		if (!column->width)
			continue;
		if (is_cut)
			padding = 0;
		used += (size_t)snprintf(
			buf + used, ROW_LINE_MAX - used, "%*s%.*s%s%*s",
			column->right ? padding : 0, "",
			prefix_length(text, column->width - is_cut), text,
			is_cut ? ELLIPSIS : "",
			GAP + (column->right ? 0 : padding), "");
		if (used >= ROW_LINE_MAX)
			used = ROW_LINE_MAX - 1;
	}
	if (screen)
		used = (size_t)prefix_length(buf, screen);
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
