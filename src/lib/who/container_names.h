/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The names of containers by their IDs, as files of their runtime have them (container_files.h): of those
 * that are there to begin with, of those whose directory comes later (inotify(7)), and of others when
 * they are first asked for. A thread reads, one fifth of the time at most. What it does not find is looked for
 * again, ever less often: a directory comes before its files. What it has found is read again a minute later
 * if it is still in use: a container may be given another name.
 *
 * A container that is gone keeps its names, for flows that are still to be reported. Where there is no
 * room, the one that was not asked for the longest time makes some.
 */
#ifndef NETOBS_WHO_CONTAINER_NAMES_H
#define NETOBS_WHO_CONTAINER_NAMES_H

#include "base/log.h"
#include "base/loop.h"
#include "container_facts.h"

#include <stdint.h>

struct container_names;

/**
 * Read about the containers that there are, for half a second at most, and have @loop do the rest.
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
 * Use the names as well, on the same thread. Once they are closed, they stay as they are.
 *
 * @return @names, for container_names_leave(); NULL: there are none
 */
struct container_names *container_names_share(struct container_names *names);
void container_names_leave(struct container_names *names); /* NULL is fine */

/** @return how many containers are in the table */
uint32_t container_names_count(const struct container_names *names);

/* Where the names of a process go: the arrays that struct netobs_process has. */
struct container_texts {
	char *name, *image, *pod_name, *pod_namespace;
};

/* Those of a struct with the same members. */
#define CONTAINER_TEXTS(to)                                      \
	(&(const struct container_texts){ (to)->container_name,  \
					  (to)->container_image, \
					  (to)->pod_name, (to)->pod_namespace })

/**
 * Write what is known of the container and the pod of a control group, without waiting.
 *
 * @param names  NULL: nothing is
 * @param to     is not touched where it is not known
 */
void container_names_fill(struct container_names *names,
			  const struct cgroup_names *cgroup,
			  const struct container_texts *to);

#endif
