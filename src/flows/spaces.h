/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The network namespaces that sockets are in, by inode. Ways into those that the host does not
 * follow are a process with a socket there, their names, as ip-netns(8), Docker and CNI have
 * them, and any other process.
 */
#ifndef NETOBS_FLOWS_SPACES_H
#define NETOBS_FLOWS_SPACES_H

#include "base/log.h"
#include "host/addresses.h"
#include "host/host.h"
#include "sessions/owner_table.h"

struct space {
	struct space *next;
	uint32_t inode;
	uint32_t pid;	/* of a process with a socket there */
	uint32_t round; /* in which the addresses were read, or could not be */
	bool has_addresses;
	struct addresses addresses;
};

enum { SPACE_BUCKETS = 256 };

struct spaces {
	const struct host *host;
	const struct owner_table *sockets;
	const struct log *log;
	uint32_t round;
	bool is_current;     /* processes are those of this round */
	uint32_t wanted;     /* pairs that the last search has not found */
	uint32_t wait_s;     /* until the next one; 0: it goes on */
	int64_t searched_ns; /* CLOCK_BOOTTIME */
	bool is_denied; /* namespaces of other processes are not to be opened */
	bool is_denial_logged;
	uint32_t count;
	struct space *buckets[SPACE_BUCKETS];
};

void spaces_done(struct spaces *spaces);

/** The table of sockets is up to date: find namespaces that pairs of the host lead to. */
void spaces_begin_round(struct spaces *spaces);

/** @return whether an interface of that namespace has the address, as far as is known */
bool spaces_have(struct spaces *spaces, uint32_t inode,
		 const uint8_t address[16]);

#endif
