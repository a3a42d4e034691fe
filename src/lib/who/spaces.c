// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "owners.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/util.h"
#include "host/host_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	SPACES_MAX = 16384, /* limit of namespaces, most of which are gone: then all are removed */
	SLICE_MS = 1, /* of a search */
	OWNERS_AT_ONCE = 16,
	/* Time between searches that find nothing, which visit all processes, each 3 us. */
	WAIT_MIN_S = 10,
	WAIT_MAX_S = 300,
};

static struct space *space_at(const struct spaces *spaces, uint32_t index)
{
	return slots_at(&spaces->table, index);
}

static void forget_all(struct spaces *spaces)
{
	for (uint32_t i = 0; i < spaces->table.n; i++)
		addresses_done(&space_at(spaces, i)->addresses);
	slots_free(&spaces->table);
}

void spaces_done(struct spaces *spaces)
{
	netns_walk_end(&spaces->walk);
	forget_all(spaces);
}

/* @return the space, until another one is added; NULL: no memory */
static struct space *ensure_space(struct spaces *spaces, uint32_t inode)
{
	const uint32_t index = slots_get(&spaces->table, &inode, sizeof(inode),
					 sizeof(struct space));

	return index == SLOT_NONE ? NULL : space_at(spaces, index);
}

void spaces_note_process(struct spaces *spaces, uint32_t inode, uint32_t pid)
{
	struct space *space = ensure_space(spaces, inode);

	if (space)
		space->pid = pid;
}

void spaces_note(const struct owner_entry *entry, void *user)
{
	if (entry->owner.by)
		spaces_note_process(user, entry->key.netns,
				    entry->owner.pid_tgid >> 32);
}

void spaces_begin_round(struct spaces *spaces)
{
	spaces->round++;
	if (spaces->table.n > SPACES_MAX)
		forget_all(spaces);
}

/* The process may have left the namespace, or another one may have its number. */
static int open_space(struct spaces *spaces, const struct space *space)
{
	cleanup_fd int fd = -1;
	char path[40];
	uint32_t inode;

	snprintf(path, sizeof(path), "/proc/%u/ns/net", space->pid);
	fd = netns_open(path);
	spaces->is_denied |= fd == -EACCES || fd == -EPERM;
	if (fd < 0)
		return fd;
	if (netns_inode(fd, &inode) || inode != space->inode)
		return -ENOENT;
	return TAKE_FD(fd);
}

/* Read the addresses while the namespace is open. */
static void learn_of(struct spaces *spaces, int fd, uint32_t inode)
{
	struct space *space;

	if (!peers_learn(spaces->host, fd, inode))
		return;
	space = ensure_space(spaces, inode);
	if (space)
		space->has_addresses |= !addresses_read(&space->addresses, fd);
}

/* @return whether there are more sockets' processes */
static bool learn_from_owners(struct spaces *spaces)
{
	const uint32_t end = (uint32_t)min_u64(spaces->cursor + OWNERS_AT_ONCE,
					       spaces->table.n);

	for (; spaces->cursor < end; spaces->cursor++) {
		const struct space *space = space_at(spaces, spaces->cursor);
		cleanup_fd int fd = open_space(spaces, space);

		if (fd >= 0)
			learn_of(spaces, fd, space->inode);
	}
	return spaces->cursor < spaces->table.n;
}

/* Most processes are in a namespace that another process has shown. */
static bool is_asked(struct spaces *spaces, uint32_t inode)
{
	uint32_t *place = &spaces->asked[inode % SPACES_ASKED];

	if (*place == inode)
		return true;
	*place = inode;
	return false;
}

/* Ask one name or process per namespace. @return whether there are more */
static bool learn_from_walk(struct spaces *spaces)
{
	cleanup_fd int fd = -1;
	uint32_t inode;

	if ((!spaces->walk.dir && netns_walk_begin(&spaces->walk)) ||
	    !netns_walk_next(&spaces->walk, &fd, &inode))
		return false;
	spaces->is_denied |= spaces->walk.is_denied;
	if (fd >= 0 && !is_asked(spaces, inode))
		learn_of(spaces, fd, inode);
	return true;
}

/* Log once why processes are unknown, unless a namespace just has no sockets or is gone. */
static void note_denial(struct spaces *spaces)
{
	const bool is_hidden = access("/proc/1", F_OK);

	if (spaces->is_denial_logged || !(is_hidden || spaces->is_denied))
		return;
	spaces->is_denial_logged = true;
	log_info(spaces->log,
		 "processes and drops of containers are not known behind some pairs of interfaces: %s",
		 is_hidden ?
			 "/proc does not show other processes (ProtectProc=, hidepid=)" :
			 "namespaces of other processes take CAP_SYS_PTRACE");
}

/* A search is due at once if more pairs are unresolved than after the last one. */
static bool is_search_due(const struct spaces *spaces, uint32_t wanted)
{
	return wanted > spaces->wanted || clock_boot_ns() - spaces->searched_ns >=
						  spaces->wait_s * NSEC_PER_SEC;
}

void spaces_begin_search(struct spaces *spaces)
{
	const uint32_t wanted = peers_wanted(spaces->host, UINT32_MAX);

	if (!wanted || !is_search_due(spaces, wanted)) {
		spaces->wanted = wanted;
		return;
	}
	if (wanted > spaces->wanted)
		spaces->wait_s = 0;
	spaces->before = wanted;
	spaces->cursor = 0;
	memset(spaces->asked, 0, sizeof(spaces->asked));
	spaces->phase = SPACES_OWNERS;
}

/* Searches that find nothing back off exponentially. */
static void end_search(struct spaces *spaces)
{
	netns_walk_end(&spaces->walk);
	spaces->phase = SPACES_AT_REST;
	spaces->searched_ns = clock_boot_ns();
	spaces->wanted = peers_wanted(spaces->host, UINT32_MAX);
	if (spaces->wanted < spaces->before) {
		spaces->wait_s = 0;
		return;
	}
	spaces->wait_s = spaces->wait_s ? (uint32_t)min_u64(spaces->wait_s * 2,
							    WAIT_MAX_S) :
					  WAIT_MIN_S;
	note_denial(spaces);
}

/* Take one step of the current phase. @return whether the phase has more */
static bool search_spaces(struct spaces *spaces)
{
	switch (spaces->phase) {
	case SPACES_OWNERS:
		return learn_from_owners(spaces);
	case SPACES_WALK:
		return learn_from_walk(spaces);
	case SPACES_AT_REST:
		break;
	}
	return false;
}

static void next_phase(struct spaces *spaces)
{
	spaces->cursor = 0;
	if (spaces->phase == SPACES_WALK || !peers_wanted(spaces->host, 1))
		end_search(spaces);
	else
		spaces->phase++;
}

bool spaces_step(struct spaces *spaces)
{
	const int64_t end_ns = clock_boot_ns() + SLICE_MS * NSEC_PER_MSEC;

	while (spaces->phase != SPACES_AT_REST && clock_boot_ns() < end_ns)
		if (!search_spaces(spaces) || !peers_wanted(spaces->host, 1))
			next_phase(spaces);
	return spaces->phase != SPACES_AT_REST;
}

/* If addresses cannot be read, the space keeps those that it had. */
static void read_addresses(struct spaces *spaces, struct space *space)
{
	const struct netns *netns =
		host_find_followed(spaces->host, space->inode, NULL);
	cleanup_fd int fd = -1;

	space->round = spaces->round;
	if (netns) {
		space->has_addresses |= !addresses_read(
			&space->addresses,
			netns->ns ? shared_fd_get(netns->ns) : -1);
		return;
	}
	fd = open_space(spaces, space);
	if (fd >= 0)
		space->has_addresses |= !addresses_read(&space->addresses, fd);
}

bool spaces_have(struct spaces *spaces, uint32_t inode, const uint8_t address[16])
{
	struct space *space = ensure_space(spaces, inode);

	if (!space)
		return false;
	if (space->round != spaces->round)
		read_addresses(spaces, space);
	return space->has_addresses && addresses_have(&space->addresses, address);
}
