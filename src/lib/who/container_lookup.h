/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A piece of work for a thread: list containers, and read what files say about some. It has all that
 * it needs.
 */
#ifndef NETOBS_WHO_CONTAINER_LOOKUP_H
#define NETOBS_WHO_CONTAINER_LOOKUP_H

#include "container_files.h"

#include <stdbool.h>
#include <stdint.h>

/* A container that is asked for, or that was in the list. */
struct container_query {
	char id[CONTAINER_ID_SIZE];
	bool is_listed; /* and was not asked for */
	bool is_found;
	struct container_facts facts;
};

struct container_lookup {
	char *root;
	int inotify_fd; /* that watches from the list on; -1: none */
	bool lists;
	uint32_t max; /* queries */
	/* Those of the list that are known already; they are sorted when it runs. */
	char (*known)[CONTAINER_ID_SIZE];
	uint32_t n_known;
	struct container_query *queries;
	uint32_t n, capacity;
	int error; /* see struct container_files */
	char path[192];
};

/**
 * @param inotify_fd  is duplicated; -1: there is none
 * @return NULL: no memory
 */
struct container_lookup *container_lookup_new(const char *root, int inotify_fd,
					      uint32_t max);
void container_lookup_free(void *lookup);

/** Have it read about a container, too. Without memory, or beyond the maximum, it does not. */
void container_lookup_add(struct container_lookup *lookup, const char *id);

void container_lookup_run(void *lookup);

#endif
