// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "base/clock.h"
#include "base/util.h"
#include "host/netns.h"
#include "host/rtnl.h"
#include "queue_sums.h"

#include <stdio.h>
#include <string.h>

enum {
	FLOWS_MAX = 4096,
	FIRST_SOCKETS = 256,
	READ_SOCKETS = 64,
};

#define LOOK_NS NSEC_PER_SEC

struct known_flow {
	uint32_t id;
	uint32_t pid; /* 0: not known */
	char command[16];
};

/* ---- Sockets of all processes --------------------------------------------------------- */

static void take_sockets(struct queue_owners *owners,
			 const struct queue_owner *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!array_reserve(&owners->sockets, owners->n, &owners->capacity,
				   sizeof(*list), FIRST_SOCKETS))
			return;
		owners->sockets[owners->n++] = list[i];
	}
}

static void list_sockets(struct queue_owners *owners,
			 const struct trace_programs *programs)
{
	struct queue_owner list[READ_SOCKETS];
	cleanup_fd int fd =
		program_set_open_iterator(&programs->set, "netobs_tr_owner");
	ssize_t len;

	owners->n = 0;
	if (fd < 0)
		return;
	while ((len = read(fd, list, sizeof(list))) > 0 ||
	       (len < 0 && (errno == EAGAIN || errno == EINTR)))
		if (len > 0)
			take_sockets(owners, list, (size_t)len / sizeof(*list));
}

/* Another namespace may have a socket with that port as well. */
static bool has_address(uint32_t pid, const struct ip_addr *address)
{
	struct addresses addresses = { 0 };
	cleanup_fd int fd = -1;
	char path[40];
	bool has;

	snprintf(path, sizeof(path), "/proc/%u/ns/net", pid);
	fd = netns_open(path);
	has = fd >= 0 && !addresses_read(&addresses, fd) &&
	      addresses_have(&addresses, address->bytes);
	addresses_done(&addresses);
	return has;
}

static const struct queue_owner *find_owner(const struct queue_owners *owners,
					    const struct queue_sender *sender)
{
	const struct queue_flow origin = queue_origin(sender);
	const struct queue_owner *best = NULL;
	enum queue_match found = QUEUE_NO_MATCH;

	for (uint32_t i = 0; i < owners->n; i++) {
		const struct queue_owner *owner = &owners->sockets[i];
		const enum queue_match match =
			queue_match(owner, &origin, sender->socket);

		if (match <= found || (match == QUEUE_ANY_ADDRESS &&
				       !has_address(owner->pid, &origin.src)))
			continue;
		found = match;
		best = owner;
	}
	return best;
}

/* ---- Flows ---------------------------------------------------------------------------- */

static struct known_flow *get_flow(struct queue_owners *owners, uint32_t id)
{
	if (owners->flows.n >= FLOWS_MAX)
		slots_clear(&owners->flows);
	return slots_add(&owners->flows, &id, sizeof(id),
			 sizeof(struct known_flow));
}

static void look(struct queue_owners *owners,
		 const struct trace_programs *programs)
{
	const int64_t now_ns = clock_boot_ns();

	if (now_ns - owners->looked_ns < LOOK_NS)
		return;
	owners->looked_ns = now_ns;
	list_sockets(owners, programs);
}

void queue_owners_name(struct queue_owners *owners,
		       const struct trace_programs *programs, uint32_t id,
		       const struct queue_sender *sender,
		       struct netobs_queue_share *share)
{
	struct known_flow *flow = get_flow(owners, id);
	const struct queue_owner *owner = NULL;

	if (!flow)
		return;
	if (!flow->pid) {
		look(owners, programs);
		owner = find_owner(owners, sender);
	}
	if (owner) {
		flow->pid = owner->pid;
		memcpy(flow->command, owner->command, sizeof(flow->command));
	}
	share->pid = flow->pid;
	memcpy(share->command, flow->command, sizeof(share->command));
}

void queue_owners_free(struct queue_owners *owners)
{
	slots_free(&owners->flows);
	free(owners->sockets);
	*owners = (struct queue_owners){ 0 };
}
