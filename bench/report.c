/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "report.h"

#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
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

/* ---- JSON, CSV ------------------------------------------------------------- */

static void put_decimal(struct json *json, const char *key, double value,
			int decimals)
{
	if (isnan(value))
		return;
	json_key(json, key);
	json_decimal(json, lround(value * pow(10, decimals)), decimals);
}

static void put_value(struct json *json, const struct report_field *field,
		      const char *at)
{
	switch (field->type) {
	case REPORT_TEXT:
		json_key(json, field->key);
		json_string(json, *(const char *const *)at);
		break;
	case REPORT_U32:
		json_key_u64(json, field->key, *(const uint32_t *)at);
		break;
	case REPORT_U64:
		if (*(const uint64_t *)at != REPORT_UNKNOWN)
			json_key_u64(json, field->key, *(const uint64_t *)at);
		break;
	case REPORT_NS:
		put_decimal(json, field->key, *(const double *)at, 2);
		break;
	case REPORT_RATIO:
		put_decimal(json, field->key, *(const double *)at, 4);
		break;
	}
}

static void put_rows(struct json *json, const struct report *report)
{
	const char *row = report->rows;

	json_key(json, "results");
	json_open(json, '[');
	for (uint32_t i = 0; i < report->n; i++, row += report->row_size) {
		json_open(json, '{');
		for (const struct report_field *f = report->fields; f->key; f++)
			put_value(json, f, row + f->offset);
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
	if (report->put_more)
		report->put_more(json, report->user);
	put_rows(json, report);
	json_close(json, '}');
}

static int print_json(const struct report *report, FILE *file)
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
	return fprintf(file, "%s\n", text) < 0 ? -errno : 0;
}

static void print_csv_value(FILE *file, const struct report_field *field,
			    const char *at)
{
	switch (field->type) {
	case REPORT_TEXT:
		fputs(*(const char *const *)at, file);
		break;
	case REPORT_U32:
		fprintf(file, "%u", *(const uint32_t *)at);
		break;
	case REPORT_U64:
		fprintf(file, "%llu", *(const unsigned long long *)at);
		break;
	case REPORT_NS:
		fprintf(file, "%.2f", *(const double *)at);
		break;
	case REPORT_RATIO:
		fprintf(file, "%.4f", *(const double *)at);
		break;
	}
}

static int print_csv(const struct report *report, FILE *file)
{
	const struct report_field *fields = report->fields;
	const char *row = report->rows;

	for (const struct report_field *f = fields; f->key; f++)
		fprintf(file, "%s%s", f == fields ? "" : ",", f->key);
	fputc('\n', file);
	for (uint32_t i = 0; i < report->n; i++, row += report->row_size) {
		for (const struct report_field *f = fields; f->key; f++) {
			if (f != fields)
				fputc(',', file);
			print_csv_value(file, f, row + f->offset);
		}
		fputc('\n', file);
	}
	return ferror(file) ? -EIO : 0;
}

static int print_to_fd(const struct report *report, int fd,
		       int (*print)(const struct report *report, FILE *file))
{
	FILE *file = fdopen(dup(fd), "w");
	int err;

	if (!file)
		return -errno;
	err = print(report, file);
	return fclose(file) ? -errno : err;
}

int report_print_json(const struct report *report)
{
	return print_json(report, stdout);
}

int report_write_json(const struct report *report, int fd)
{
	return print_to_fd(report, fd, print_json);
}

int report_write_csv(const struct report *report, int fd)
{
	return print_to_fd(report, fd, print_csv);
}

/* ---- Files ----------------------------------------------------------------- */

static int report_file_error(const struct report_file *file, int err)
{
	if (err)
		fprintf(stderr, "netobsctl bench: %s: %s\n", file->path,
			strerror(-err));
	return err;
}

int report_file_open(struct report_file *file, const char *path)
{
	*file = (struct report_file){ .path = path, .fd = -1 };
	if (!path)
		return 0;
	file->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	file->is_new = file->fd >= 0;
	if (file->fd < 0 && errno == EEXIST)
		file->fd = open(path, O_WRONLY | O_CLOEXEC);
	return file->fd < 0 ? report_file_error(file, -errno) : 0;
}

int report_file_write(struct report_file *file, const struct report *report,
		      int (*write)(const struct report *report, int fd))
{
	if (!file->path)
		return 0;
	/* Pipes and terminals cannot be truncated. */
	if (ftruncate(file->fd, 0) < 0 && errno != EINVAL)
		return report_file_error(file, -errno);
	file->is_new = false;
	return report_file_error(file, write(report, file->fd));
}

void report_file_close(struct report_file *file)
{
	close_fd(&file->fd);
	if (file->is_new)
		unlink(file->path);
}
