/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The screen of netobsctl top, by ncurses: its state and how it is drawn. */
#ifndef NETOBS_CLI_VIEW_TOP_H
#define NETOBS_CLI_VIEW_TOP_H

#include "view_output.h"
#include "screen.h"
#include "top_tables.h"

struct top {
	struct screen_state common;
	struct top_tables tables;
	size_t table; /* that is shown */
	struct order order;
	bool since_start, is_typing;
	size_t n_rows; /* that can be shown */
	char search[64];
	char typed[64]; /* what will be searched for */
};

/** Draw all; records of a file that have come are of an interval that has ended. */
void top_draw(struct output *output);

/** Of a file: end the interval, if it has any records. */
void top_end_interval_of_file(struct top *top);

/** @return lines for rows; below them is one for the sum of those that do not fit */
size_t top_room(void);

#endif
