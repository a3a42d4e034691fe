/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The files of container runtimes, below a root directory. They are opened to read, never as a link, a
 * pipe or a device, only if root or the user of the process owns them, and have 1 MiB at most. Links
 * to the directories of runtimes are followed within the root.
 *
 * All of it may wait for disks, so it is the work of a thread.
 */
#ifndef NETOBS_WHO_CONTAINER_FILES_H
#define NETOBS_WHO_CONTAINER_FILES_H

#include "container_facts.h"

#include <stdint.h>

enum {
	CONTAINER_ID_SIZE = 65,	       /* with its NUL */
	CONTAINER_FILE_MAX = 1 << 20,  /* bytes */
	CONTAINER_NAMESPACES_MAX = 16, /* of containerd */
};

struct container_files {
	int root_fd;
	int error; /* of the first file that is there and cannot be read, -errno; 0: none */
	char path[192]; /* its path */
};

/** @return 0; -errno of the root */
int container_files_open(const char *root, struct container_files *ret_files);
void container_files_close(struct container_files *files);

/** @return whether a file has a name of the container; else @ret_facts is not touched */
bool container_files_find(struct container_files *files, const char *id,
			  struct container_facts *ret_facts);

/**
 * Call @take for each container that has a directory.
 *
 * @param inotify_fd  watches these directories from now on; -1: there is none
 * @param take        false: that is enough
 */
void container_files_list(struct container_files *files, int inotify_fd,
			  bool (*take)(const char *id, void *ctx), void *ctx);

#endif
