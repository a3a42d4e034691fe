/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "report.h"

#include "base/util.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/utsname.h>

enum { HEAD_BYTES = 16 << 10, ROW_BYTES = 1024 };

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

void report_print_machine(void)
{
	struct machine machine = read_machine();

	printf("Linux %s, %s\n", machine.kernel.release, machine.cpu);
}

/* ---- JSON ------------------------------------------------------------- */

enum { NUMBER_MAX = 32 };

/* NULL: it is left out. */
static const char *format_value(const struct report_field *field,
				const char *at, char number[NUMBER_MAX])
{
	unsigned long long integer;
	int decimals = 2;

	switch (field->type) {
	case REPORT_TEXT:
		return *(const char *const *)at;
	case REPORT_U32:
	case REPORT_U64:
		integer = field->type == REPORT_U32 ? *(const uint32_t *)at :
						      *(const uint64_t *)at;
		if (integer == REPORT_UNKNOWN)
			return NULL;
		snprintf(number, NUMBER_MAX, "%llu", integer);
		return number;
	case REPORT_RATIO:
		decimals = 4;
		break;
	case REPORT_NS:
		break;
	}
	if (isnan(*(const double *)at))
		return NULL;
	snprintf(number, NUMBER_MAX, "%.*f", decimals, *(const double *)at);
	return number;
}

static void put_value(struct json *json, const struct report_field *field,
		      const char *at)
{
	char number[NUMBER_MAX];
	const char *value = format_value(field, at, number);

	if (!value)
		return;
	json_key(json, field->key);
	if (field->type == REPORT_TEXT) {
		json_string(json, value);
		return;
	}
	json_separate(json);
	json_put(json, value, strlen(value));
}

/* What says how far a comparison can be believed. */
static const struct report_field turns_fields[] = {
	REPORT_FIELD(rounds, "width", REPORT_RATIO, width),
	REPORT_FIELD(rounds, "others", REPORT_RATIO, others),
	REPORT_FIELD(rounds, "repeated", REPORT_U32, repeated),
	{ 0 }
};

static void put_fields(struct json *json, const struct report_field *fields,
		       const void *row)
{
	for (const struct report_field *f = fields; f->key; f++)
		put_value(json, f, (const char *)row + f->offset);
}

static void put_rows(struct json *json, const struct report *report)
{
	const char *row = report->rows;

	json_key(json, "results");
	json_open(json, '[');
	for (uint32_t i = 0; i < report->n; i++, row += report->row_size) {
		json_open(json, '{');
		put_fields(json, report->fields, row);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void put_report(struct json *json, const struct report *report)
{
	struct machine machine = read_machine();

	json_open(json, '{');
	json_key(json, "kernel");
	json_string(json, machine.kernel.release);
	json_key(json, "cpu");
	json_string(json, machine.cpu);
	json_key_u64(json, "rounds", report->rounds);
	if (report->turns)
		put_fields(json, turns_fields, report->turns);
	if (report->put_more)
		report->put_more(json, report->user);
	put_rows(json, report);
	json_close(json, '}');
}

static int print_report_json(const struct report *report)
{
	size_t size = HEAD_BYTES + (size_t)report->n * ROW_BYTES;
	cleanup_free char *text = malloc(size);
	struct json json;
	int len;

	if (!text)
		return -ENOMEM;
	json_begin(&json, text, size);
	put_report(&json, report);
	len = json_end(&json);
	if (len < 0)
		return len;
	return puts(text) < 0 ? -errno : 0;
}

int report_print(const struct report *report, bool is_json)
{
	if (is_json)
		return print_report_json(report);
	report->print_table(report);
	return 0;
}
