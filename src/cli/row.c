/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "row.h"

#include <stdio.h>
#include <string.h>

#include <netobs/flow.h>

#include "human.h"

#define ELLIPSIS "\u2026"

enum { GAP = 2, MIN_ENDPOINTS = 20 };

struct column_def {
	const char *heading;
	int width;    /* to begin with */
	bool right;   /* numbers align to the right */
	int leave_at; /* left out first: 1; never: 0 */
};

#define IS_RIGHT_left false
#define IS_RIGHT_right true
#define COLUMN(name, heading, width, align, leave, text) \
	[COLUMN_##name] = { heading, width, IS_RIGHT_##align, leave },

static const struct column_def columns[COLUMNS] = {
#include "columns.def"
};

enum { LEAVE_STEPS = 6 };

void row_fill(struct row *row, const struct netobs_flow *flow)
{
	row->start_ns = flow->start_ns;
	row->end_ns = flow->end_ns;
	row->packets = flow->packets;
	row->bytes = flow->bytes;
	human_protocol(row->protocol, sizeof(row->protocol), flow);
	human_endpoints(row->endpoints, sizeof(row->endpoints), flow);
	human_info(row->info, sizeof(row->info), flow);
	human_where(row->where, sizeof(row->where), flow);
}

void row_cells(const struct row *row, int64_t rate_ns, struct cells *ret_cells)
{
	enum { SIZE = sizeof(ret_cells->numbers[0]) };
	const int64_t lasted_ns = row->end_ns - row->start_ns;
	char(*numbers)[SIZE] = ret_cells->numbers;

	human_time(numbers[COLUMN_TIME], SIZE, row->start_ns);
	human_count(numbers[COLUMN_PACKETS], SIZE, row->packets);
	human_bytes(numbers[COLUMN_BYTES], SIZE, row->bytes);
	human_rate(numbers[COLUMN_RATE], SIZE, row->bytes,
		   rate_ns ? rate_ns : lasted_ns);
	human_duration(numbers[COLUMN_DURATION], SIZE, lasted_ns);

	for (int i = 0; i < COLUMNS; i++)
		ret_cells->text[i] = numbers[i];
	ret_cells->text[COLUMN_PROTOCOL] = row->protocol;
	ret_cells->text[COLUMN_ENDPOINTS] = row->endpoints;
	ret_cells->text[COLUMN_INFO] = row->info;
	ret_cells->text[COLUMN_WHERE] = row->where;
}

void row_headings(struct cells *ret_cells)
{
	for (int i = 0; i < COLUMNS; i++)
		ret_cells->text[i] = columns[i].heading;
}

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

void layout_init(struct layout *layout, bool time)
{
	*layout = (struct layout){ 0 };
	for (int i = 0; i < COLUMNS; i++)
		layout->width[i] = columns[i].width;
	if (!time)
		layout->width[COLUMN_TIME] = 0;
}

void layout_widen(struct layout *layout, const struct cells *cells)
{
	for (int i = 0; i < COLUMNS; i++) {
		int width = display_width(cells->text[i]);

		if (layout->widest[i] < width)
			layout->widest[i] = width;
		if (layout->width[i] && layout->width[i] < width)
			layout->width[i] = width;
	}
}

static int total_width(const struct layout *layout)
{
	int total = -GAP;

	for (int i = 0; i < COLUMNS; i++) {
		if (layout->width[i])
			total += layout->width[i] + GAP;
	}
	return total;
}

static void leave_out(struct layout *layout, int step)
{
	for (int i = 0; i < COLUMNS; i++) {
		if (columns[i].leave_at == step)
			layout->width[i] = 0;
	}
}

void layout_fit(struct layout *layout, int screen)
{
	int *endpoints = &layout->width[COLUMN_ENDPOINTS];
	int excess;

	if (total_width(layout) <= screen)
		return;
	for (int i = 0; i < COLUMNS; i++) {
		if (layout->width[i])
			layout->width[i] = layout->widest[i];
	}
	for (int step = 1; step <= LEAVE_STEPS && total_width(layout) > screen;
	     step++)
		leave_out(layout, step);

	excess = total_width(layout) - screen;
	if (excess > 0)
		*endpoints = *endpoints - excess > MIN_ENDPOINTS ?
				     *endpoints - excess :
				     MIN_ENDPOINTS;
}

size_t layout_line(const struct layout *layout, const struct cells *cells,
		   int screen, char *buf)
{
	size_t used = 0;

	for (int i = 0; i < COLUMNS; i++) {
		const char *text = cells->text[i];
		int padding = layout->width[i] - display_width(text);
		bool is_cut;

		if (!layout->width[i])
			continue;
		is_cut = padding < 0;
		if (is_cut)
			padding = 0;
		used += (size_t)snprintf(
			buf + used, ROW_LINE_MAX - used, "%*s%.*s%s%*s",
			columns[i].right ? padding : 0, "",
			prefix_length(text, layout->width[i] - is_cut), text,
			is_cut ? ELLIPSIS : "",
			GAP + (columns[i].right ? 0 : padding), "");
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
