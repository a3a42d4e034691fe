/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The names of containers by their IDs, from the files of their runtime (container_places.h). The
 * files are read at the start, when a directory is created (inotify(7)), and when a container is
 * first asked for. A thread reads, one fifth of the time at most. It tries containers without a
 * name again, ever less often, since a directory comes before its files. It reads containers with a
 * name again after a minute if they are still in use, since they may be renamed.
 *
 * A container that is gone keeps its names, for flows that are still to be reported. If the table
 * is full, the least recently used container is evicted.
 */
#ifndef NETOBS_WHO_CONTAINER_NAMES_H
#define NETOBS_WHO_CONTAINER_NAMES_H

#include "base/log.h"
#include "base/loop.h"
#include "container_facts.h"

#include <stdint.h>

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

#endif
