/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The names of containers by their IDs, as files of their runtime have them (container_files.h): of those
 * that are there to begin with, of those whose directory comes later (inotify(7)), and of others when
 * they are first asked for. A thread reads. What it does not find is looked for again, ever less often:
 * a directory comes before its files. What it has found is read again a minute later if it is still
 * in use: a container may be given another name.
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

struct worker;
struct named_container;

enum {
	CONTAINER_NAMES_MAX = 4096,
	CONTAINER_NAMES_BUCKETS = 1024,
};

struct container_names {
	const struct log *log; /* NULL: it is off */
	char *root;
	struct worker *worker;
	int inotify_fd; /* -1: it cannot be had */
	int timer;
	bool is_list_due;
	bool has_complained;
	int64_t worked_ns; /* when the last work began, CLOCK_BOOTTIME */
	int64_t armed_ns;  /* when the timer expires; 0: never */
	uint32_t count;
	struct named_container **buckets;
	uint32_t secret[16]; /* of the hash */
};

/**
 * Read about the containers that there are, for half a second at most, and have @loop do the rest.
 *
 * @param root  the directory below which the runtimes' files are; NULL: "/"
 * @return 0; -ENOMEM, -errno
 */
int container_names_open(struct container_names *names, const char *root,
			 struct loop *loop, const struct log *log);

/** Does not wait for the thread. A struct of zeroes stays as it is. */
void container_names_close(struct container_names *names);

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
 * @param names  NULL, or off: nothing is
 * @param to     is not touched where it is not known
 */
void container_names_fill(struct container_names *names,
			  const struct cgroup_names *cgroup,
			  const struct container_texts *to);

#endif
