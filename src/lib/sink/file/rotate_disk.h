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
#ifndef NETOBS_SINK_FILE_ROTATE_DISK_H
#define NETOBS_SINK_FILE_ROTATE_DISK_H

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

/* The part in which the final names of a file's generations differ. */
struct rotate_final {
	time_t start;
	unsigned int number; /* among those of the same second */
	const char *suffix;  /* ".gz", ".zst" or "" */
};

typedef char rotate_name[NAME_MAX + 1];

/* -EISDIR: @path is of a directory; -ENAMETOOLONG. */
int rotate_names_init(struct rotate_names *names, const char *path);

/* The final name with @tail, "" or ROTATE_PART, behind it. */
void rotate_names_format(const struct rotate_names *names,
			 const struct rotate_final *final, const char *tail,
			 rotate_name ret_name);

/* Whether @name is a final name with @tail behind it. */
bool rotate_names_parse(const struct rotate_names *names, const char *name,
			const char *tail, struct rotate_final *ret_final);

/* ---- The file that is being written --------------------------------------------- */

/*
 * Create it and lock it. If a crash has left one, rename that for rotate_work_do() to
 * finish. Errors: as open(2); -EBUSY: another process has it; -EPERM: another user made it.
 */
int rotate_part_open(const struct rotate_names *names, mode_t mode, int *ret_fd);

/*
 * Lock a file for the process that writes it. Users who can only read it cannot prevent that.
 * @return 0; -EBUSY: another process writes it
 */
int rotate_lock(int fd);

/* Whether it still has its name. */
bool rotate_part_is_there(int fd, const struct rotate_names *names);

/* Give it the name FINAL.part, with the next free number from that of @final on. */
int rotate_part_rename(const struct rotate_names *names,
		       struct rotate_final *final);

/* Remove an empty one, unless another process has removed it. */
void rotate_part_remove(int fd, const struct rotate_names *names);

/*
 * When a file was created. In a file of its own, apart from sys/stat.h, which declares
 * struct statx in some C libraries only (musl since 1.2.5).
 * @return 0, -EOPNOTSUPP if the file system does not know, or -errno
 */
int rotate_birth_time(int fd, time_t *ret_time);

/* ---- What waits for the disk ----------------------------------------------------- */

/* A complete file, which is called FINAL.part. */
struct rotate_file {
	int fd; /* has its lock */
	struct rotate_final final;
};

/* What a worker does: sync files, give them their names, remove the oldest. */
struct rotate_work {
	const struct rotate_names *names;
	const struct rotate_file *files; /* it closes those that it finishes */
	size_t n_files;
	uint32_t keep; /* files; 0: all */
	bool recovers; /* finish files that crashes have left; false once done */
	int part_fd;   /* to be synced; -1: none */

	/* The results. */
	int err;
	bool is_synced;	 /* the records of all these files are on the disk */
	bool is_lost;	 /* some records in part_fd may not be */
	size_t n_closed; /* of files, the first so many */
	uint64_t finished; /* files that got their final names, also recovered ones */
	uint64_t removed; /* files */
};

void rotate_work_do(void *work);

#endif
