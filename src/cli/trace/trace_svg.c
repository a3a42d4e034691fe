// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "trace_summary.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "base/util.h"
#include "service/text/human.h"
#include "cli/view/print.h"

enum {
	WIDTH = 1000,
	MARGIN = 10,
	LABELS = 150, /* left of bars */
	BAR_WIDTH = WIDTH - LABELS - MARGIN,
	ROW = 26,
	BAR_HEIGHT = 22,
	LETTER = 7,
	LEGEND_WIDTH = 88,
	SEGMENTS = NETOBS_JOURNEY_TOTAL,
};

static const struct {
	uint32_t per_mille;
	const char *name;
} bars[] = {
	{ 500, "p50" },
	{ 900, "p90" },
	{ 990, "p99" },
	{ 1000, "max" },
};

static const char *const colours[SEGMENTS] = {
	[NETOBS_JOURNEY_WRITE] = "#8dd3c7",
	[NETOBS_JOURNEY_TCP] = "#80b1d3",
	[NETOBS_JOURNEY_RECOVERY] = "#fb8072",
	[NETOBS_JOURNEY_QDISC] = "#fdb462",
	[NETOBS_JOURNEY_DEVICE] = "#ffed6f",
	[NETOBS_JOURNEY_NETWORK] = "#bc80bd",
	[NETOBS_JOURNEY_FORWARD] = "#b3de69",
	[NETOBS_JOURNEY_STACK] = "#bebada",
	[NETOBS_JOURNEY_GAP] = "#f4a3c1",
	[NETOBS_JOURNEY_READER] = "#ccebc5",
	[NETOBS_JOURNEY_UNKNOWN] = "#d9d9d9",
};

/* ---- Text ---------------------------------------------------------------------------------- */

static void print_text(FILE *file, int x, int y, const char *text)
{
	fprintf(file, "<text x=\"%d\" y=\"%d\">", x, y);
	xml_print(file, text);
	fputs("</text>\n", file);
}

/* ---- Bars ---------------------------------------------------------------------------------- */

static void print_segment(FILE *file, uint64_t ns, unsigned int segment,
			  double x, double width, int y)
{
	const double share = 100 * width / BAR_WIDTH;
	const char *name = netobs_journey_series_name(segment);
	char time[32];

	human_latency(time, sizeof(time), ns);
	fprintf(file,
		"<g><title>%s: %s, %.1f%%</title>"
		"<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" "
		"fill=\"%s\"/>",
		name, time, share, x, y, width, BAR_HEIGHT, colours[segment]);
	if (width > (double)(LETTER * (strlen(name) + 1)))
		fprintf(file, "<text x=\"%.2f\" y=\"%d\">%s</text>", x + 4,
			y + 15, name);
	fputs("</g>\n", file);
}

static void print_bar(FILE *file, const uint64_t *times, const char *name, int y)
{
	const uint64_t total_ns = times[NETOBS_JOURNEY_TOTAL];
	char label[64], time[32];
	double x = LABELS;

	human_latency(time, sizeof(time), total_ns);
	snprintf(label, sizeof(label), "%s  %s", name, time);
	print_text(file, MARGIN, y + 15, label);
	for (unsigned int i = 0; i < SEGMENTS; i++) {
		const uint64_t ns = times[i];
		const double width =
			ns ? (double)ns / (double)total_ns * BAR_WIDTH : 0;

		if (ns)
			print_segment(file, ns, i, x, width, y);
		x += width;
	}
}

/* @return where the next one begins */
static int print_direction(FILE *file, struct netobs_journeys *journeys,
			   unsigned int d, int y)
{
	struct netobs_journey_sums sums = { .sz = sizeof(sums) };
	uint64_t ns[NETOBS_JOURNEY_SERIES];
	char label[128];

	netobs_journeys_get(journeys, d, &sums);
	snprintf(label, sizeof(label),
		 "%s: %" PRIu64 " journeys, %" PRIu64 " complete", sums.name,
		 sums.journeys, sums.complete);
	print_text(file, MARGIN, y + 15, label);
	y += ROW;
	for (size_t i = 0; i < ARRAY_SIZE(bars); i++, y += ROW)
		if (!netobs_journeys_ranked(journeys, d, bars[i].per_mille, ns))
			print_bar(file, ns, bars[i].name, y);
	return y + ROW / 2;
}

static void print_legend(FILE *file, int y)
{
	for (unsigned int i = 0; i < SEGMENTS; i++) {
		const int x = MARGIN + (int)i * LEGEND_WIDTH;

		fprintf(file,
			"<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" "
			"fill=\"%s\"/>\n",
			x, y, colours[i]);
		print_text(file, x + 16, y + 11, netobs_journey_series_name(i));
	}
}

/* ---- The picture --------------------------------------------------------------------------- */

static void print_title(FILE *file, const char *title)
{
	char text[256];

	snprintf(text, sizeof(text), "%s", title);
	safe_line(text);
	fputs("<title>", file);
	xml_print(file, text);
	fputs("</title>\n"
	      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
	      file);
	print_text(file, MARGIN, ROW - 8, text);
}

void trace_svg_print(FILE *file, struct netobs_journeys *journeys,
		     const char *title)
{
	uint64_t ns[NETOBS_JOURNEY_SERIES];
	int height = 3 * ROW, y = ROW;

	for (unsigned int d = 0; d < NETOBS_JOURNEY_DIRECTIONS; d++)
		if (!netobs_journeys_ranked(journeys, d, 0, ns))
			height += (int)(ARRAY_SIZE(bars) + 2) * ROW;
	fprintf(file,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
		"height=\"%d\" viewBox=\"0 0 %d %d\" "
		"font-family=\"sans-serif\" font-size=\"12\">\n",
		WIDTH, height, WIDTH, height);
	print_title(file, title);
	for (unsigned int d = 0; d < NETOBS_JOURNEY_DIRECTIONS; d++)
		if (!netobs_journeys_ranked(journeys, d, 0, ns))
			y = print_direction(file, journeys, d, y);
	print_legend(file, y);
	fputs("</svg>\n", file);
}
