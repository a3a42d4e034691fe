/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * On the left what a packet costs on one CPU, by number of flows, a line per
 * design; on the right, where that was measured, how much of it is contention:
 * one flow on one CPU against the same flow on all CPUs.
 */
#include "plot.h"

#include "gnuplot.h"
#include "base/util.h"

#include <errno.h>
#include <math.h>

enum { WIDTH = 1180, HEIGHT = 600, NARROW = 820 };

/* Where the panels are, in shares of the width. */
#define LEFT_EDGE 0.062
#define LABEL_SHARE 0.10
#define PANELS_GAP 0.64

/* Steps between labels at the ends of lines, in shares of the height. */
static const double label_step = 0.036;

static const struct style {
	const char *colour;
	int width;
	const char *dash;
} styles[DESIGNS] = {
	[DESIGN_EMPTY] = { "#9a9a9a", 2, "(6,5)" },
	[DESIGN_PARSE] = { "#9a9a9a", 2, "(2,4)" },
	[DESIGN_RINGBUF] = { "#7b5ea7", 2, "solid" },
	[DESIGN_HASH] = { "#d08c1f", 2, "solid" },
	[DESIGN_HASH_SPINLOCK] = { "#a8501e", 2, "solid" },
	[DESIGN_PERCPU_HASH] = { "#c0304a", 3, "solid" },
	[DESIGN_ARRAY] = { "#4d8f4d", 2, "solid" },
	[DESIGN_PERCPU_ARRAY] = { "#85b04a", 2, "solid" },
	[DESIGN_NETOBS] = { "#1f5fbf", 5, "solid" },
};

/* ---- What is drawn ------------------------------------------------------------- */

/* The cells of the left panel: one CPU, uniform if there is such a thing. */
static struct cell main_case(const struct results *results)
{
	struct cell found = { .order = ORDER_UNIFORM,
			      .sharing = SHARING_DISJOINT,
			      .n_cpus = 1 };

	for (uint32_t i = 0; i < results->n_cells; i++) {
		const struct cell *cell = &results->cells[i];

		if (cell->order == found.order && cell->n_cpus == found.n_cpus)
			return found;
	}
	return results->cells[0];
}

static bool is_case(const struct cell *cell, const struct cell *like)
{
	return cell->order == like->order && cell->n_cpus == like->n_cpus &&
	       cell->sharing == like->sharing;
}

/* One flow on all CPUs, or NULL. */
static const struct cell *contended(const struct results *results, int design)
{
	for (uint32_t i = 0; i < results->n_cells; i++) {
		const struct cell *cell = &results->cells[i];

		if (cell->design == design && cell->flows == 1 &&
		    cell->n_cpus > 1 && cell->sharing == SHARING_SAME &&
		    cell->order == ORDER_UNIFORM)
			return cell;
	}
	return NULL;
}

static const struct cell *uncontended(const struct results *results, int design)
{
	const struct cell like = { .design = design,
				   .flows = 1,
				   .order = ORDER_UNIFORM,
				   .sharing = SHARING_DISJOINT,
				   .n_cpus = 1 };

	return results_find(results, &like);
}

static bool has_contention(const struct results *results)
{
	return contended(results, DESIGN_EMPTY) &&
	       uncontended(results, DESIGN_EMPTY);
}

/* ---- The left panel ------------------------------------------------------------ */

struct range {
	double low, high;
	uint32_t first, last; /* numbers of flows */
};

static struct range range_of(const struct results *results,
			     const struct cell *like)
{
	struct range range = { INFINITY, 0, UINT32_MAX, 0 };

	for (uint32_t i = 0; i < results->n_cells; i++) {
		const struct cell *cell = &results->cells[i];

		if (!is_case(cell, like))
			continue;
		range.low = fmin(range.low, cell->ns.min);
		range.high = fmax(range.high, cell->ns.max);
		range.first = min_u64(range.first, cell->flows);
		range.last = max_u64(range.last, cell->flows);
	}
	range.low *= 0.85;
	range.high *= 1.18;
	return range;
}

/* The cell of a design with the most flows; NULL: it has none. */
static const struct cell *last_cell(const struct results *results, int design,
				    const struct cell *like)
{
	const struct cell *last = NULL;

	for (uint32_t i = 0; i < results->n_cells; i++) {
		const struct cell *cell = &results->cells[i];

		if (cell->design == design && is_case(cell, like) &&
		    (!last || cell->flows > last->flows))
			last = cell;
	}
	return last;
}

struct label {
	int design;
	double y; /* share of the panel's height */
};

static int by_height(const void *a, const void *b)
{
	double x = ((const struct label *)a)->y;
	double y = ((const struct label *)b)->y;

	return (x > y) - (x < y);
}

/* Upwards and downwards until no two are closer than a step. */
static void push_apart(struct label *labels, int n)
{
	for (int pass = 0; pass < 100; pass++) {
		for (int i = 1; i < n; i++) {
			double lack =
				label_step - (labels[i].y - labels[i - 1].y);

			if (lack > 0) {
				labels[i].y += lack / 2;
				labels[i - 1].y -= lack / 2;
			}
		}
	}
}

static int place_labels(const struct results *results, const struct cell *like,
			struct range range, struct label labels[DESIGNS])
{
	int n = 0;

	for (int design = 0; design < DESIGNS; design++) {
		const struct cell *last = last_cell(results, design, like);

		if (last)
			labels[n++] = (struct label){
				design, log(last->ns.median / range.low) /
						log(range.high / range.low)
			};
	}
	qsort(labels, n, sizeof(*labels), by_height);
	push_apart(labels, n);
	return n;
}

static void print_labels(const struct results *results, const struct cell *like,
			 struct range range, FILE *file)
{
	struct label labels[DESIGNS];
	int n = place_labels(results, like, range, labels);

	for (int i = 0; i < n; i++) {
		bool is_ours = labels[i].design == DESIGN_NETOBS;

		fprintf(file,
			"set label \"%s%s%s\" at graph 1.02, graph %.4f left front %s textcolor rgb \"%s\"\n",
			is_ours ? "{/:Bold " : "",
			designs[labels[i].design]->name, is_ours ? "}" : "",
			labels[i].y, is_ours ? "" : "noenhanced",
			styles[labels[i].design].colour);
	}
}

/* 1, 64, 1k, 16k, 131k, 1M */
static void print_count(uint32_t count, FILE *file)
{
	if (count < 1000)
		fprintf(file, "%u", count);
	else if (count < 1000000)
		fprintf(file, "%uk", count / 1000);
	else
		fprintf(file, "%.*fM", count % 1000000 < 100000 ? 0 : 1,
			count / 1e6);
}

static void print_ticks(const struct results *results, const struct cell *like,
			FILE *file)
{
	const char *separator = "";

	fputs("set xtics scale 0.5 (", file);
	for (uint32_t i = 0; i < results->n_cells; i++) {
		const struct cell *cell = &results->cells[i];

		if (!is_case(cell, like) || cell->design != DESIGN_EMPTY)
			continue;
		fprintf(file, "%s\"", separator);
		print_count(cell->flows, file);
		fprintf(file, "\" %u", cell->flows);
		separator = ", ";
	}
	fputs(")\n", file);
}

static void print_line_data(const struct results *results, int design,
			    const struct cell *like, FILE *file)
{
	fprintf(file, "$d%d << EOD\n", design);
	for (uint32_t i = 0; i < results->n_cells; i++) {
		const struct cell *cell = &results->cells[i];

		if (cell->design == design && is_case(cell, like))
			fprintf(file, "%u %.2f %.2f %.2f\n", cell->flows,
				cell->ns.median, cell->ns.min, cell->ns.max);
	}
	fputs("EOD\n", file);
}

/* Each as a line over a band from minimum to maximum; netobs above all. */
static void print_lines(const struct results *results, const struct cell *like,
			FILE *file)
{
	const char *separator = "plot";

	for (int design = 0; design < DESIGNS; design++) {
		const struct style *style = &styles[design];

		if (!last_cell(results, design, like))
			continue;
		fprintf(file,
			"%s $d%d using 1:3:4 with filledcurves fillcolor rgb \"%s\" fillstyle transparent solid 0.12 noborder, "
			"$d%d using 1:2 with linespoints linecolor rgb \"%s\" linewidth %d dashtype %s pointtype 7 pointsize %.1f",
			separator, design, style->colour, design, style->colour,
			style->width, style->dash, style->width * 0.12 + 0.15);
		separator = ",";
	}
	fputc('\n', file);
}

static void print_left(const struct results *results, double right_edge,
		       FILE *file)
{
	const struct cell like = main_case(results);
	struct range range = range_of(results, &like);

	for (int design = 0; design < DESIGNS; design++)
		print_line_data(results, design, &like, file);
	fprintf(file,
		"set lmargin at screen %f\nset rmargin at screen %f\n"
		"set label 1 \"%s, %s\" at graph 0, graph 1.045 left\n"
		"set logscale xy\n"
		"set yrange [%f:%f]\n"
		"set xrange [%f:%f]\n"
		"set ytics scale 0.5 (10, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000)\n"
		"set xlabel \"flows\"\n"
		"set ylabel \"ns per packet\" offset 1.5,0\n",
		LEFT_EDGE, right_edge,
		like.n_cpus == 1 ? "One CPU" : "All CPUs at once",
		like.order == ORDER_UNIFORM ? "all flows equally busy" :
					      "flows by Zipf's law",
		range.low, range.high, range.first * 0.95, range.last * 1.05);
	print_ticks(results, &like, file);
	print_labels(results, &like, range, file);
	print_lines(results, &like, file);
}

/* ---- The right panel ----------------------------------------------------------- */

static void print_bar_data(const struct results *results, FILE *file)
{
	int row = 0;

	fputs("$bars << EOD\n", file);
	for (int design = DESIGNS - 1; design >= 0; design--) {
		const struct cell *one = uncontended(results, design);
		const struct cell *all = contended(results, design);

		if (one && all)
			fprintf(file, "%d %s %.1f %.1f %d\n", row++,
				designs[design]->name, one->ns.median,
				all->ns.median,
				(int)strtol(styles[design].colour + 1, NULL, 16));
	}
	fputs("EOD\n", file);
}

static void print_right(const struct results *results, FILE *file)
{
	uint32_t n_cpus = contended(results, DESIGN_EMPTY)->n_cpus;

	print_bar_data(results, file);
	fprintf(file,
		"unset logscale\nunset label\nunset xlabel\nunset ylabel\n"
		"set lmargin at screen %f\nset rmargin at screen 0.955\n"
		"set label 1 \"One flow: on one CPU (pale), on %u CPUs at once (full)\" at graph -0.42, graph 1.045 left\n"
		"set xlabel \"ns per packet\"\n"
		"set xrange [0:*]\nset xtics scale 0.5 autofreq\n"
		"set yrange [-0.6:*] noextend\nset offsets 0, 0, 0.6, 0\n"
		"set ytics scale 0 noenhanced\n"
		"plot $bars using (0):($1+0.20):(0):3:($1+0.03):($1+0.37):5:ytic(2) with boxxyerror fillcolor rgb variable fillstyle transparent solid 0.35 noborder, "
		"$bars using (0):($1-0.20):(0):4:($1-0.37):($1-0.03):5 with boxxyerror fillcolor rgb variable fillstyle solid 1 noborder, "
		"$bars using 4:($1-0.20):(sprintf(\"%%.0f\", $4)) with labels left offset 0.6,0 font \",11\" textcolor rgb \"#404040\", "
		"$bars using 3:($1+0.20):(sprintf(\"%%.0f\", $3)) with labels left offset 0.6,0 font \",11\" textcolor rgb \"#808080\"\n",
		PANELS_GAP + 0.10, n_cpus);
}

/* ---------------------------------------------------------------------------------- */

static void print_head(const struct results *results, bool is_wide, FILE *file)
{
	fprintf(file,
		"set terminal svg size %d,%d font \"Helvetica,13\" background rgb \"white\"\n"
		"set encoding utf8\nset key off\n"
		"set border 3 linecolor rgb \"#606060\"\nset tics nomirror\n"
		"set grid linetype 1 linecolor rgb \"#e4e4e4\"\n"
		"set tmargin at screen 0.83\nset bmargin at screen 0.115\n"
		"set multiplot\n"
		"set label 10 \"{/:Bold=19 What a packet costs, by how its flow is stored}\" at screen 0.012, screen 0.955 left\n"
		"set label 11 \"Linux %s, %s; medians of %u rounds, bands from minimum to maximum\" noenhanced at screen 0.012, screen 0.905 left textcolor rgb \"#606060\"\n",
		is_wide ? WIDTH : NARROW, HEIGHT, results->host.kernel.release,
		results->host.cpu, results->rounds);
}

static void print_script(const struct results *results, FILE *file)
{
	bool is_wide = has_contention(results);
	double right_edge = is_wide ? PANELS_GAP - LABEL_SHARE :
				      1 - LABEL_SHARE * WIDTH / NARROW;

	print_head(results, is_wide, file);
	print_left(results, right_edge, file);
	if (is_wide)
		print_right(results, file);
	fputs("unset multiplot\n", file);
}

int plot_check(void)
{
	return gnuplot_check();
}

int plot_draw(const struct results *results, int fd)
{
	struct gnuplot gnuplot;
	int err = gnuplot_start(&gnuplot, fd);

	if (err)
		return err;
	print_script(results, gnuplot.script);
	return gnuplot_finish(&gnuplot);
}
