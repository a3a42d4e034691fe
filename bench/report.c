/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "bench.h"

#include "base/json.h"
#include "base/util.h"

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

static void begin_json(const struct machine *machine, uint32_t rounds,
		       const struct rounds *turns)
{
	printf("{");
	print_text_member("kernel", machine->kernel.release);
	printf(",");
	print_text_member("cpu", machine->cpu);
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
		begin_json(&machine, rounds, turns);
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
