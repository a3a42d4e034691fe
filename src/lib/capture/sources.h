/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The interfaces that the packets of a capture came from. An interface that has the index
 * of an earlier one is another source: programs are attached to it after the host has
 * reported it, so the time of a packet distinguishes them.
 */
#ifndef NETOBS_CAPTURE_SOURCES_H
#define NETOBS_CAPTURE_SOURCES_H

#include "bpf/capture.h"
#include "host/host.h"

#include <net/if.h>
#include <stdint.h>

struct packets;

struct source {
	struct capture_interface_key key;
	enum link_kind link;
	const char *netns; /* on the host; NULL: the caller's own */
	char name[IF_NAMESIZE];
	uint64_t captured;
	/* When its packets came; CLOCK_BOOTTIME. The end is INT64_MAX while it is there. */
	int64_t start_ns, end_ns;
	/* The kernel's, which are those of the key, at both times. */
	struct capture_counters start, end;
};

struct sources {
	const struct host *host;
	const struct packets *packets;
	struct host_listener listener;
	struct source *list; /* in the order of their first packets */
	uint32_t n;
	uint32_t latest; /* source of the previous packet */
};

/* Call before programs are attached. */
void sources_init(struct sources *sources, struct host *host,
		  const struct packets *packets);

void sources_done(struct sources *sources);

/* @return the index in the list of where @packet came from, or -ENOMEM */
int sources_ensure(struct sources *sources, const struct capture_packet *packet);

/* Add interfaces all of whose packets were lost: they have counters only. */
void sources_add_counted(struct sources *sources);

/* @return the kernel's counters of an interface */
struct capture_counters sources_counters(const struct sources *sources,
					 uint32_t index);

#endif
