/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "bench.h"

#include "base/json.h"
#include "base/util.h"
#include "design.h"
#include "results.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

/* ---- The machine ----------------------------------------------------------- */

struct machine {
	struct utsname kernel;
	char cpu[128];
};

/* "model name\t: AMD EPYC\n" */
static bool read_model(const char *line, char *ret_cpu, size_t size)
{
	const char *value = strchr(line, ':');

	if (strncmp(line, "model name", strlen("model name")) || !value)
		return false;
	value += 1 + strspn(value + 1, " ");
	snprintf(ret_cpu, size, "%.*s", (int)strcspn(value, "\n"), value);
	return true;
}

static struct machine read_machine(void)
{
	FILE *file = fopen("/proc/cpuinfo", "re");
	struct machine machine;
	char line[1024];

	uname(&machine.kernel);
	/* Not all architectures name the model. */
	snprintf(machine.cpu, sizeof(machine.cpu), "%s", machine.kernel.machine);
	if (!file)
		return machine;
	while (fgets(line, sizeof(line), file) &&
	       !read_model(line, machine.cpu, sizeof(machine.cpu)))
		;
	fclose(file);
	return machine;
}

/* ---- Rows ------------------------------------------------------------------ */

enum { TEXT_MAX = 4096, COLUMN_WIDTH = 12 };

static void print_text_member(const char *name, const char *text)
{
	char quoted[TEXT_MAX];
	struct json json;

	json_begin(&json, quoted, sizeof(quoted));
	json_string(&json, text);
	json_end(&json);
	printf("\"%s\":%s", name, quoted);
}

static void begin_json(uint32_t rounds, const struct rounds *turns)
{
	struct machine machine = read_machine();

	printf("{");
	print_text_member("kernel", machine.kernel.release);
	printf(",");
	print_text_member("cpu", machine.cpu);
	printf(",\"rounds\":%u", rounds);
	if (turns)
		printf(",\"width\":%.4f,\"others\":%.4f,\"repeated\":%u",
		       turns->width, turns->others, turns->repeated);
	printf(",\"results\":[");
}

void report_begin(struct report *report, const char *title, uint32_t rounds,
		  const struct rounds *turns)
{
	struct machine machine = read_machine();

	report->n_rows = 0;
	if (report->is_json) {
		begin_json(rounds, turns);
		return;
	}
	printf("%s: medians of %u rounds\n", title, rounds);
	if (turns)
		rounds_print(turns);
	printf("Linux %s, %s\n\n", machine.kernel.release, machine.cpu);
	for (uint32_t i = 0; i < report->n_columns; i++)
		printf("%*s ", COLUMN_WIDTH, report->columns[i].name);
	printf("\n");
}

static void put_value(const struct report *report,
		      const struct report_column *column, const char *text,
		      double number)
{
	const bool is_first = column == report->columns;

	if (!text && isnan(number))
		return;
	printf("%s", is_first ? "" : ",");
	if (text)
		print_text_member(column->name, text);
	else
		printf("\"%s\":%.*f", column->name, column->decimals, number);
}

static void print_value(const struct report_column *column, const char *text,
			double number)
{
	int width = max_i64(strlen(column->name), COLUMN_WIDTH);

	if (text || isnan(number))
		printf("%*s ", width, text ?: "-");
	else
		printf("%*.*f ", width, column->decimals, number);
}

void report_row(struct report *report, const char *const *texts,
		const double *numbers)
{
	if (report->is_json)
		printf("%s{", report->n_rows++ ? "," : "");
	for (uint32_t i = 0; i < report->n_columns; i++) {
		const struct report_column *column = &report->columns[i];
		const bool is_text = column->decimals == COLUMN_TEXT;
		const char *text = is_text ? *texts++ : NULL;
		const double number = is_text ? 0 : *numbers++;

		if (report->is_json)
			put_value(report, column, text, number);
		else
			print_value(column, text, number);
	}
	puts(report->is_json ? "}" : "");
}

void report_end(const struct report *report)
{
	if (report->is_json)
		puts("]}");
}

/* ---- Results ------------------------------------------------------------------------- */

/* ---- Sums ------------------------------------------------------------------ */

/* @room: for @n values. */
static void sum_up_cell(const struct cell *empty, const double *empty_samples,
			struct cell *cell, const double *samples, uint32_t n,
			double *room)
{
	cell->n = n;
	/* A high rate is a short time. */
	for (uint32_t i = 0; i < n; i++)
		room[i] = empty_samples[i] / samples[i];
	cell->ratio = interval_of(room, n);
	memcpy(room, samples, n * sizeof(*room));
	cell->ns = interval_of(room, n).median;
	cell->over_empty = cell->ns - empty->ns;
}

static void report_noise(const struct results *results, const struct cell *cell)
{
	char what[128];

	snprintf(what, sizeof(what), "%s with %u flows (%s)",
		 design_names[cell->design], cell->flows,
		 order_names[cell->order]);
	rounds_report_noise(&results->rounds, what, &cell->ratio, cell->n);
}

bool results_settle_case(const struct results *results, struct cell *cells,
			 double *const *samples, uint32_t n_cells, uint32_t n,
			 bool is_last)
{
	cleanup_free double *room = calloc(n, sizeof(*room));
	bool is_settled = room;

	for (uint32_t i = 0; i < n_cells && room; i++) {
		sum_up_cell(cells, samples[0], &cells[i], samples[i], n, room);
		if (interval_is_narrow(&cells[i].ratio, results->rounds.width))
			continue;
		is_settled = false;
		if (is_last)
			report_noise(results, &cells[i]);
	}
	return is_settled;
}

/* ---- Output ---------------------------------------------------------------- */

static const struct report_column columns[] = {
	{ "store", COLUMN_TEXT }, { "distribution", COLUMN_TEXT },
	{ "flows", 0 },		  { "ratio", 4 },
	{ "ratio_low", 4 },	  { "ratio_high", 4 },
	{ "ns_per_packet", 2 },	  { "ns_over_empty", 2 },
	{ "rounds", 0 },	  { "sent", 0 },
	{ "counted", 0 },
};

void results_print(const struct results *results, bool is_json)
{
	struct report report = { .is_json = is_json,
				 .columns = columns,
				 .n_columns = ARRAY_SIZE(columns) };

	report_begin(&report,
		     "Rates of packets, as ratios to that with the empty program",
		     results->rounds.n, &results->rounds);
	for (uint32_t i = 0; i < results->n_cells; i++) {
		const struct cell *c = &results->cells[i];
		const char *const texts[ARRAY_SIZE(columns)] = {
			design_names[c->design], order_names[c->order]
		};
		const double numbers[ARRAY_SIZE(columns)] = {
			c->flows,      c->ratio.median, c->ratio.low,
			c->ratio.high, c->ns,		c->over_empty,
			c->n,	       c->sent,		c->counted
		};

		report_row(&report, texts, numbers);
	}
	report_end(&report);
}
