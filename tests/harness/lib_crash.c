/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "lib_crash.h"

#include "lib_spool.h"
#include "lib_test.h"

#include <limits.h>

/* How much of an operation is left. */
enum part { NONE, WHOLE, TORN, ZEROS };

struct content {
	char *bytes;
	size_t len;
};

struct entry {
	char name[DISK_NAME_SIZE];
	unsigned int file;
};

enum { ENTRIES_MAX = 1024 };

struct image {
	struct content *contents; /* by number */
	struct entry entries[ENTRIES_MAX];
	size_t n;
};

static bool is_of_names(const struct disk_op *op)
{
	return op->call == DISK_OPEN || op->call == DISK_RENAME ||
	       op->call == DISK_UNLINK;
}

static bool is_data(const struct disk_op *op)
{
	return op->call == DISK_WRITE || op->call == DISK_TRUNCATE;
}

/* ---- What is left ---------------------------------------------------------------- */

/* The first sync behind it decides, whether it succeeds or not. */
static bool is_sure(const struct disk_log *log, size_t at, size_t n)
{
	const struct disk_op *op = &log->ops[at];

	for (size_t i = at + 1; i < n; i++) {
		const struct disk_op *later = &log->ops[i];

		if (is_data(op) ?
			    later->call == DISK_SYNC && later->file == op->file :
			    later->call == DISK_SYNC_DIR)
			return !later->has_failed;
	}
	return false;
}

static enum part part_in_mix(const struct disk_op *op, unsigned int seed)
{
	/* All, none or any of a file's: the extremes are not to be rare. */
	unsigned int mood = (seed >> (is_data(op) ? op->file % 7 : 7)) % 4;
	bool is_in = rand() % 2;

	if (mood < 2)
		return mood == 0 ? NONE : WHOLE;
	if (!is_in)
		return op->call == DISK_WRITE && rand() % 3 == 0 ? ZEROS : NONE;
	return op->call == DISK_WRITE && rand() % 3 == 0 ? TORN : WHOLE;
}

static enum part part_of(const struct disk_log *log, size_t at, size_t n,
			 enum crash_kind kind, unsigned int seed)
{
	const struct disk_op *op = &log->ops[at];

	if (kind == CRASH_ALL || (kind == CRASH_TORN && at + 1 < n))
		return WHOLE;
	if (kind == CRASH_TORN)
		return op->call == DISK_WRITE ? TORN : WHOLE;
	if (is_sure(log, at, n))
		return WHOLE;
	return kind == CRASH_SYNCED ? NONE : part_in_mix(op, seed);
}

/* ---- Doing it again -------------------------------------------------------------- */

static void resize(struct content *content, size_t len)
{
	content->bytes = realloc(content->bytes, len + 1);
	assert_non_null(content->bytes);
	if (len > content->len)
		memset(content->bytes + content->len, 0, len - content->len);
	content->len = len;
}

static void redo_data(struct image *image, const struct disk_op *op,
		      enum part part)
{
	struct content *content = &image->contents[op->file];
	size_t len = part == TORN ? (size_t)rand() % op->len : op->len;

	if (op->call == DISK_TRUNCATE) {
		resize(content, op->offset);
		return;
	}
	if (op->offset + len > content->len)
		resize(content, op->offset + len);
	if (part != ZEROS && len && content->bytes)
		memcpy(content->bytes + op->offset, op->bytes, len);
}

static struct entry *find(struct image *image, const char *name)
{
	for (size_t i = 0; i < image->n; i++)
		if (!strcmp(image->entries[i].name, name))
			return &image->entries[i];
	return NULL;
}

static void drop_entry(struct image *image, const char *name)
{
	struct entry *entry = find(image, name);

	if (entry)
		*entry = image->entries[--image->n];
}

static void add_entry(struct image *image, const char *name, unsigned int file)
{
	struct entry *entry;

	drop_entry(image, name);
	assert_true(image->n < ENTRIES_MAX);
	entry = &image->entries[image->n++];
	snprintf(entry->name, sizeof(entry->name), "%s", name);
	entry->file = file;
}

/* It is the file that a name is given to, whatever became of its name before. */
static void redo_name(struct image *image, const struct disk_op *op)
{
	if (op->call != DISK_OPEN)
		drop_entry(image, op->name);
	if (op->call != DISK_UNLINK)
		add_entry(image, op->call == DISK_OPEN ? op->name : op->to,
			  op->file);
}

static void write_out(const struct image *image, const char *dir)
{
	for (size_t i = 0; i < image->n; i++) {
		const struct entry *entry = &image->entries[i];
		const struct content *content = &image->contents[entry->file];
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s/%s", dir, entry->name);
		write_file(path, content->len ? content->bytes : "",
			   content->len);
	}
}

void crash_make(const struct disk_log *log, size_t n, enum crash_kind kind,
		unsigned int seed, const char *dir)
{
	struct image *image = calloc(1, sizeof(*image));

	srand(seed);
	image->contents = calloc(log->n_files + 1, sizeof(*image->contents));
	for (size_t i = 0; i < n; i++) {
		const struct disk_op *op = &log->ops[i];
		enum part part = NONE;

		if (is_data(op) || is_of_names(op))
			part = part_of(log, i, n, kind, seed);
		if (part != NONE && is_data(op))
			redo_data(image, op, part);
		else if (part != NONE)
			redo_name(image, op);
	}
	write_out(image, dir);
	for (unsigned int i = 0; i < log->n_files; i++)
		free(image->contents[i].bytes);
	free(image->contents);
	free(image);
}
