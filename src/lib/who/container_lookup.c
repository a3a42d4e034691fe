// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "container_places.h"

#include "base/clock.h"
#include "base/util.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

struct container_lookup *container_lookup_new(const char *root, int inotify_fd,
					      uint32_t room)
{
	struct container_lookup *lookup = calloc(1, sizeof(*lookup));

	if (!lookup)
		return NULL;
	lookup->room = room;
	lookup->inotify_fd =
		inotify_fd < 0 ? -1 : fcntl(inotify_fd, F_DUPFD_CLOEXEC, 0);
	lookup->root = strdup(root);
	if (lookup->root)
		return lookup;
	container_lookup_free(lookup);
	return NULL;
}

void container_lookup_free(void *arg)
{
	struct container_lookup *lookup = arg;

	if (!lookup)
		return;
	close_fd(&lookup->inotify_fd);
	free(lookup->root);
	free(lookup->known);
	free(lookup->queries);
	free(lookup);
}

static struct container_query *add_query(struct container_lookup *lookup,
					 const char *id)
{
	struct container_query *query;

	if (!array_reserve(&lookup->queries, lookup->n, &lookup->capacity,
			   sizeof(*lookup->queries), 16))
		return NULL;
	query = &lookup->queries[lookup->n++];
	*query = (struct container_query){ 0 };
	snprintf(query->id, sizeof(query->id), "%s", id);
	return query;
}

void container_lookup_add(struct container_lookup *lookup, const char *id)
{
	add_query(lookup, id);
}

static int compare_ids(const void *a, const void *b)
{
	return strcmp(a, b);
}

static bool is_known(const struct container_lookup *lookup, const char *id)
{
	return lookup->n_known && bsearch(id, lookup->known, lookup->n_known,
					  sizeof(*lookup->known), compare_ids);
}

/* A container may have directories in two places of a storage. */
static bool is_query(const struct container_lookup *lookup, const char *id)
{
	for (uint32_t i = 0; i < lookup->n; i++)
		if (!strcmp(lookup->queries[i].id, id))
			return true;
	return false;
}

static void take_listed(const char *id, void *ctx)
{
	struct container_lookup *lookup = ctx;
	struct container_query *query;

	if (!lookup->room || is_known(lookup, id) || is_query(lookup, id))
		return;
	query = add_query(lookup, id);
	if (!query)
		return;
	query->is_listed = true;
	lookup->room--;
}

static void look_up(struct container_lookup *lookup, struct container_files *files)
{
	if (lookup->n_known)
		qsort(lookup->known, lookup->n_known, sizeof(*lookup->known),
		      compare_ids);
	if (lookup->lists)
		container_places_list(files, lookup->inotify_fd, take_listed,
				      lookup);
	if (lookup->n)
		qsort(lookup->queries, lookup->n, sizeof(*lookup->queries),
		      container_query_compare);
	container_places_find(files, lookup->queries, lookup->n);
}

void container_lookup_run(void *arg)
{
	struct container_lookup *lookup = arg;
	const int64_t start_ns = clock_boot_ns();
	struct container_files files;
	const int err = container_files_open(lookup->root, &files);

	if (err) {
		container_errors_add(&lookup->errors, err, lookup->root);
		return;
	}
	look_up(lookup, &files);
	lookup->errors = files.errors;
	container_files_close(&files);
	lookup->took_ns = clock_boot_ns() - start_ns;
}
