/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A disk that fails on request and records the operations on it, for programs that include this: the
 * linker gives them the calls below instead of the C library's. Nothing in them waits for a real disk.
 */
#ifndef HARNESS_LIB_DISK_H
#define HARNESS_LIB_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum disk_call {
	DISK_OPEN,     /* openat(2), for writing */
	DISK_WRITE,    /* write(2), pwrite(2) */
	DISK_TRUNCATE, /* ftruncate(2), and O_TRUNC */
	DISK_SYNC,     /* fdatasync(2) and fsync(2), of a file */
	DISK_SYNC_DIR, /* of a directory */
	DISK_RENAME,   /* renameat(2) */
	DISK_UNLINK,   /* unlinkat(2) */
	DISK_READ,     /* pread(2) */
	DISK_CALLS,
};

/*
 * From the @nth call from now on, the first being 0, @n of them fail; if they write,
 * the first of them writes @partly bytes before.
 */
struct disk_fault {
	enum disk_call call;
	unsigned int nth, n;
	int err;
	size_t partly;
};

void disk_fail(const struct disk_fault *fault);
void disk_heal(void);

/* How often a call failed since disk_fail(). */
unsigned int disk_failures(void);

/* ---- What was done --------------------------------------------------------------- */

enum { DISK_NAME_SIZE = 64 };

struct disk_op {
	enum disk_call call;
	bool has_failed;
	unsigned int file; /* a number of its own, whatever its name */
	uint64_t offset;   /* of a write; the size to truncate to */
	size_t len;
	char *bytes;
	char name[DISK_NAME_SIZE], to[DISK_NAME_SIZE];
};

struct disk_log {
	struct disk_op *ops;
	size_t n;
	unsigned int n_files;
	size_t start; /* after the existing content */
};

/* Into @log, until it is NULL. */
void disk_record(struct disk_log *log);

/* What @dir holds, as if it had been made so, durably. */
void disk_record_dir(const char *dir);
void disk_log_free(struct disk_log *log);

#endif
