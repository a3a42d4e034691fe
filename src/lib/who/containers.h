/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The containers that pairs of interfaces lead to: those whose processes are in the namespace of the
 * other end. The paths of control groups have the IDs of containers, and their processes are listed
 * there; the kernel tells the id that one namespace has for the namespace of a process (RTM_GETNSID),
 * and links to it have that id. So this takes no privileges, and no access to /proc of other users.
 *
 * A thread searches, because thousands of groups take longer than a loop may.
 */
#ifndef NETOBS_WHO_CONTAINERS_H
#define NETOBS_WHO_CONTAINERS_H

#include "base/log.h"
#include "base/loop.h"
#include "container_facts.h"
#include "host/host.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/inotify.h>

/*
 * The directories where container runtimes keep files about their containers. A container's file is
 * read up to 1 MiB, a list of all containers up to 16 MiB, once for all that are wanted.
 */

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

/*
 * The names of containers by their IDs, from the files of their runtime. The
 * files are read at the start, when a directory is created (inotify(7)), and when a container is
 * first asked for. A thread reads, one fifth of the time at most. It tries containers without a
 * name again, ever less often, since a directory comes before its files. It reads containers with a
 * name again after a minute if they are still in use, since they may be renamed.
 *
 * A container that is gone keeps its names, for flows that are still to be reported. If the table
 * is full, the least recently used container is evicted.
 */

struct container_names;

enum { CONTAINERS_MAX = 4096 }; /* in the table */

/**
 * Read the files of existing containers, for half a second at most; @loop does the rest.
 *
 * @param root       the directory below which the runtimes' files are; NULL: "/"
 * @param ret_names  ends with container_names_close(), before @loop and @log
 * @return 0; -ENOMEM, -errno
 */
int container_names_open(const char *root, struct loop *loop,
			 const struct log *log,
			 struct container_names **ret_names);

/** Does not wait for the thread. NULL is fine. */
void container_names_close(struct container_names *names);

/**
 * Use the names as well, on the same thread. After container_names_close(), they do not change any
 * more.
 *
 * @return @names, for container_names_leave(); NULL: there are none
 */
struct container_names *container_names_share(struct container_names *names);
void container_names_leave(struct container_names *names); /* NULL is fine */

/** @return how many containers are in the table */
uint32_t container_names_count(const struct container_names *names);

/* The arrays of struct netobs_process that get the names of a process. */
struct container_texts {
	char *name, *image, *pod_name, *pod_namespace;
};

/* The arrays of a struct with these members. */
#define CONTAINER_TEXTS(to)                                      \
	(&(const struct container_texts){ (to)->container_name,  \
					  (to)->container_image, \
					  (to)->pod_name, (to)->pod_namespace })

/**
 * Write the known names of the container and the pod of a control group, without waiting.
 *
 * @param names  NULL: no names are known
 * @param to     arrays of unknown names are not touched
 */
void container_names_fill(struct container_names *names,
			  const struct cgroup_names *cgroup,
			  const struct container_texts *to);

struct contained;
struct worker;

struct containers {
	const struct host *host; /* NULL: it is off */
	struct worker *worker;
	struct contained *list; /* interfaces, as of the last search */
	uint32_t n;
	uint64_t pairs; /* a hash of the pairs at the last search */
	int64_t searched_ns,
		wait_ns; /* CLOCK_BOOTTIME; until the next one, at most */
};

/** @return 0; -ENOMEM, -errno */
int containers_init(struct containers *containers, const struct host *host);

/** Does not wait for a search. A struct of zeroes stays as it is. */
void containers_done(struct containers *containers);

/** @return a descriptor that is readable when containers_collect() is due; -1: it is off */
int containers_fd(const struct containers *containers);

/** Begin a search if one is due: pairs have changed since the last one, or it was long ago. */
void containers_look(struct containers *containers);
void containers_collect(struct containers *containers);

/**
 * @return the container, or the pod, that has the other end of @netif, as of the last search; of
 *         a pod, whose containers share a namespace, only its UID. NULL: none, several, or it is
 *         not known
 */
const struct cgroup_names *containers_find(const struct containers *containers,
					   const struct netns *netns,
					   const struct netif *netif);

#endif
