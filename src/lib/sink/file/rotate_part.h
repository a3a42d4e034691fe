/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The names of a file that is rotated. What is written to DIR/flows.json goes to
 *
 *   flows.json.part                        while it is written
 *   flows-20261121T164500Z.json.part       until it is on the disk
 *   flows-20261121T164500Z.json            then
 *   flows-20261121T164500Z_001.json        if there is one of that name
 *
 * with .gz or .zst before .part. The time is that of its first record's writing, UTC.
 * In alphabetical order the names are in order of time.
 */
#ifndef NETOBS_SINK_FILE_ROTATE_PART_H
#define NETOBS_SINK_FILE_ROTATE_PART_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define ROTATE_PART ".part"

struct rotate_names {
	char dir[PATH_MAX]; /* absolute */
	char stem[NAME_MAX], extension[NAME_MAX];
	char part[NAME_MAX + 1]; /* flows.json.part */
};

typedef char rotate_name[NAME_MAX + 1];

/* -EISDIR: @path is of a directory; -ENAMETOOLONG. */
int rotate_names_init(struct rotate_names *names, const char *path);

/* The final name, number 0. @suffix: ".gz", ".zst" or "". */
void rotate_names_make(const struct rotate_names *names, time_t start,
		       const char *suffix, rotate_name ret_name);

/* The same final name with another number. */
void rotate_names_number(const struct rotate_names *names, const char *name,
			 unsigned int number, rotate_name ret_name);

/* Whether it is a final name, with @tail behind. */
bool rotate_names_match(const struct rotate_names *names, const char *name,
			const char *tail);

/* Move a file within its directory, but not over another. */
int rotate_move(int dir_fd, const char *from, const char *to);

/* ---- The file that is being written: rotate_part.c ------------------------------ */

/*
 * Make it, and keep others from it; what a crash has left gets another name, for
 * rotate_work_do() to finish. Errors: as open(2); -EBUSY: another process has it.
 */
int rotate_part_open(const struct rotate_names *names, mode_t mode, int *ret_fd);

/* Whether it still has its name. */
bool rotate_part_is_there(int fd, const struct rotate_names *names);

/* What the last file was called. */
struct rotate_last {
	time_t start;
	unsigned int number;
};

/*
 * Give it the name FINAL.part; @ret_name becomes FINAL. Of those of a second, the next
 * number, also where a lower one has become free.
 */
int rotate_part_rename(const struct rotate_names *names, time_t start,
		       const char *suffix, struct rotate_last *last,
		       rotate_name ret_name);

/* It is empty, or another process has removed it. */
void rotate_part_remove(int fd, const struct rotate_names *names);

/*
 * When a file was created. In a file of its own, apart from sys/stat.h, which declares
 * struct statx in some C libraries only (musl since 1.2.5).
 * @return 0, -EOPNOTSUPP if the file system does not know, or -errno
 */
int rotate_birth_time(int fd, time_t *ret_time);

/* ---- What waits for the disk: rotate_work.c ------------------------------------- */

/* How lines, pieces of them or IPFIX messages are compressed: ".gz", ".zst" or "". */
const char *rotate_suffix(int fd);

/* Cut off what a crash has torn at its end. Errors: as pread(2), ftruncate(2). */
int rotate_cut(int fd, uint64_t *ret_size);

enum {
	ROTATE_WAITING_MAX = 64
}; /* files to be finished, each with a descriptor */

/* What a worker does: sync files, give them their names, remove the oldest. */
struct rotate_work {
	const struct rotate_names *names;
	uint32_t keep; /* files; 0: all */
	bool recovers; /* look for files that crashes have left; false once done */
	int part_fd; /* to be synced; -1: none */
	size_t n_files;
	struct {
		int fd;
		rotate_name name;	 /* the intended final one */
	} files[ROTATE_WAITING_MAX + 1]; /* complete, NAME.part; failed ones stay */

	/* The results. */
	int err;
	bool is_synced; /* the records of all these files are on the disk */
	bool is_lost;	/* some records in part_fd may not be */
	uint64_t finished, removed; /* files */
};

void rotate_work_do(void *work);

#endif
