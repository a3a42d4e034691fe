/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A piece of work for a thread: list containers, and read the files of some. It owns all data that
 * it needs.
 */
#ifndef NETOBS_WHO_CONTAINER_LOOKUP_H
#define NETOBS_WHO_CONTAINER_LOOKUP_H

#include "container_places.h"

#include <stdbool.h>
#include <stdint.h>

struct container_lookup {
	char *root;
	int inotify_fd; /* watches the listed directories; -1: none */
	bool lists;
	uint32_t room; /* for containers of the list */
	/* Containers that are known and need not be listed; sorted when it runs. */
	char (*known)[CONTAINER_ID_SIZE];
	uint32_t n_known;
	struct container_query *queries;
	uint32_t n, capacity;
	struct container_errors errors;
	int64_t took_ns;
};

/**
 * @param inotify_fd  is duplicated; -1: there is none
 * @param room        for containers of the list; others of it are left out
 * @return NULL: no memory
 */
struct container_lookup *container_lookup_new(const char *root, int inotify_fd,
					      uint32_t room);
void container_lookup_free(void *lookup);

/** Have the files of a container read, too. Without memory, they are not. */
void container_lookup_add(struct container_lookup *lookup, const char *id);

void container_lookup_run(void *lookup);

#endif
