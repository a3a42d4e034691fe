/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Files of container runtimes, below a root directory. They are opened to be read, unless they are
 * a link, a pipe or a device, and only if root or the user of the process owns them. Links to the
 * directories of runtimes are followed within the root.
 *
 * All calls may wait for disks, so a thread makes them.
 */
#ifndef NETOBS_WHO_CONTAINER_FILES_H
#define NETOBS_WHO_CONTAINER_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CONTAINER_ERRORS_MAX = 8 };

/* A file that exists and cannot be read. */
struct container_error {
	int error; /* -errno */
	char path[192];
};

/* The first errors, one for each cause. */
struct container_errors {
	struct container_error list[CONTAINER_ERRORS_MAX];
	uint32_t n;
};

/** @return whether both have the same cause; a missing privilege is one cause for all files */
bool container_error_equal(const struct container_error *a,
			   const struct container_error *b);

void container_errors_add(struct container_errors *errors, int error,
			  const char *path);

struct container_files {
	int root_fd;
	struct container_errors errors;
};

/** @return 0; -errno of the root */
int container_files_open(const char *root, struct container_files *ret_files);
void container_files_close(struct container_files *files);

/** Open a directory of a runtime. @return it; -errno */
int container_files_dir(const struct container_files *files, const char *path);

/** Open a file or directory of a runtime's directory, without following links. @return it; -errno */
int container_files_below(int dir_fd, const char *path, uint64_t flags);

/**
 * Read a file.
 *
 * @param dir   the path of @dir_fd
 * @param path  below it
 * @param max   bytes; larger files are errors
 * @return the text, which the caller frees; NULL: it cannot be read
 */
char *container_files_read(struct container_files *files, int dir_fd,
			   const char *dir, const char *path, size_t max);

/** Note an error of @name in @dir, unless the file does not exist. */
void container_files_note(struct container_files *files, int err,
			  const char *dir, const char *name);

#endif
