/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The directories where container runtimes keep files about their containers. A container's file is
 * read up to 1 MiB, a list of all containers up to 16 MiB, once for all that are wanted.
 */
#ifndef NETOBS_WHO_CONTAINER_PLACES_H
#define NETOBS_WHO_CONTAINER_PLACES_H

#include "container_facts.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/inotify.h>

/*
 * Files of container runtimes, below a root directory. They are opened to be read, unless they are
 * a link, a pipe or a device, and only if root or the user of the process owns them. Links to the
 * directories of runtimes are followed within the root.
 *
 * All calls may wait for disks, so a thread makes them.
 */

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

enum {
	CONTAINER_PLACES_MAX = 20,
	CONTAINER_PLACES_TEXT_MAX = 480, /* bytes of their paths as text */
};

/* A directory in which a runtime keeps its containers. */
struct container_place {
	char path[256];
	/* Containers are in directories with such names in @path, or @below these; NULL: in @path itself. */
	bool (*is_dir)(const char *name);
	const char *below;
	const char *file; /* of a container, below its directory */
	container_facts_fn *read;
	const char *const *lists; /* files with all containers; NULL: none */
};

struct container_files {
	int root_fd;
	struct container_errors errors;
	struct container_place places[CONTAINER_PLACES_MAX];
	uint32_t n_places;
};

/** Find the places, also those that configurations of Docker, CRI-O and Podman name. @return 0; -errno of the root */
int container_files_open(const char *root, struct container_files *ret_files);
void container_files_close(struct container_files *files);

enum {
	CONTAINER_ID_SIZE = 65,	       /* with its NUL */
	CONTAINER_FILE_MAX = 1 << 20,  /* bytes */
	CONTAINER_LIST_MAX = 16 << 20, /* bytes of a list of all containers */
	CONTAINER_NAMESPACES_MAX = 16, /* directories of a place */
};

/* Events of watched directories: inotify(7). */
#define CONTAINER_WATCH_EVENTS \
	(IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF)

/** Write the paths of all places, with ", " in between. */
void container_places_text(const struct container_files *files, char *to,
			   size_t size);

/* A container whose names are wanted. */
struct container_query {
	char id[CONTAINER_ID_SIZE];
	bool is_listed; /* it comes from a list, and was not asked for */
	bool is_found;	/* a file has its name */
	struct container_facts facts;
};

/** Compare IDs, for qsort(3). */
int container_query_compare(const void *a, const void *b);

/** Look for names of containers. @queries: sorted by container_query_compare() */
void container_places_find(struct container_files *files,
			   struct container_query *queries, uint32_t n);

/**
 * Call @take for each container that has a directory.
 *
 * @param inotify_fd  watches these directories from now on, and those that a runtime which is not
 *                    installed would use; -1: none
 */
void container_places_list(struct container_files *files, int inotify_fd,
			   void (*take)(const char *id, void *ctx), void *ctx);

#endif
