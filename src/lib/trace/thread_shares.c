// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "thread_shares.h"

#include "base/util.h"
#include "who/container_facts.h"

#include <bpf/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN_NS (2 * NSEC_PER_SEC)
#define MEMBERS_NS NSEC_PER_SEC

/* ---- Processes ---------------------------------------------------------------------------- */

static bool read_line(uint32_t pid, const char *name, FILE **file, char *line,
		      int size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	if (!*file)
		*file = fopen(path, "re");
	if (!*file || !fgets(line, size, *file))
		return false;
	line[strcspn(line, "\n")] = '\0';
	return true;
}

/* cgroups(7): the path is behind the second colon. */
static void read_container(uint32_t pid, char *to, size_t size)
{
	char line[4096];
	FILE *file = NULL;

	while (!*to && read_line(pid, "cgroup", &file, line, sizeof(line))) {
		const char *path = strchr(line, ':');

		path = path ? strchr(path + 1, ':') : NULL;
		if (path)
			snprintf(to, size, "%s",
				 cgroup_names_of(path + 1).container_id);
	}
	if (file)
		fclose(file);
}

const struct thread_process *thread_shares_process(struct thread_shares *shares,
						   uint32_t pid, int64_t now_ns)
{
	struct thread_process *known =
		&shares->known[pid % THREAD_PROCESSES_KNOWN];
	FILE *file = NULL;

	if (known->pid == pid && now_ns < known->until_ns)
		return known;
	*known = (struct thread_process){ .pid = pid,
					  .until_ns = now_ns + KNOWN_NS };
	read_line(pid, "comm", &file, known->command, sizeof(known->command));
	if (file)
		fclose(file);
	read_container(pid, known->container_id, sizeof(known->container_id));
	return known;
}

/* ---- Shares ------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	const struct thread_share *one = a, *other = b;

	if (one->key.whose != other->key.whose)
		return one->key.whose < other->key.whose ? -1 : 1;
	return (one->share.ns < other->share.ns) -
	       (one->share.ns > other->share.ns);
}

/* @return the index of the first one of @whose among the first @n, or of where it would be */
static uint32_t find(const struct thread_shares *shares, uint32_t n,
		     uint32_t whose)
{
	uint32_t low = 0, high = n;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (shares->items[middle].key.whose < whose)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool has(const struct thread_shares *shares, uint32_t n, uint32_t whose)
{
	const uint32_t i = find(shares, n, whose);

	return i < n && shares->items[i].key.whose == whose;
}

static bool add(struct thread_shares *shares, const struct thread_share *share)
{
	if (!array_reserve(&shares->items, shares->n, &shares->capacity,
			   sizeof(*shares->items), 64))
		return false;
	shares->items[shares->n++] = *share;
	return true;
}

/* Keep the members @before of groups that are not among the first @n. */
static void keep_members(struct thread_shares *shares, uint32_t n,
			 const struct thread_share *before, uint32_t n_before,
			 int64_t now_ns)
{
	for (uint32_t i = 0; i < n_before; i++) {
		const struct thread_share *share = &before[i];

		if (share->key.whose & SCHED_IS_GROUP &&
		    now_ns - share->at_ns < MEMBERS_NS &&
		    !has(shares, n, share->key.whose))
			add(shares, share);
	}
}

void thread_shares_read(struct thread_shares *shares, int fd, int64_t now_ns)
{
	cleanup_free struct thread_share *before = TAKE_PTR(shares->items);
	const uint32_t n_before = shares->n;
	struct thread_share share = { .at_ns = now_ns };
	uint32_t n;

	shares->n = shares->capacity = 0;
	while (shares->n < SCHED_SHARES_MAX &&
	       !bpf_map_get_next_key(fd, NULL, &share.key)) {
		if (!bpf_map_lookup_elem(fd, &share.key, &share.share))
			add(shares, &share);
		bpf_map_delete_elem(fd, &share.key);
	}
	n = shares->n;
	if (n)
		qsort(shares->items, n, sizeof(*shares->items), compare);
	keep_members(shares, n, before, n_before, now_ns);
	if (shares->n > n)
		qsort(shares->items, shares->n, sizeof(*shares->items), compare);
}

static void fill_share(struct thread_shares *shares,
		       const struct thread_share *from, int64_t now_ns,
		       struct netobs_queue_share *share)
{
	share->pid = from->key.pid;
	share->amount = from->share.ns;
	memcpy(share->command, from->share.command, sizeof(share->command));
	memcpy(share->container_id,
	       thread_shares_process(shares, share->pid, now_ns)->container_id,
	       sizeof(share->container_id));
}

void thread_shares_fill(struct thread_shares *shares, uint32_t whose,
			int64_t now_ns, struct netobs_queue *queue)
{
	for (uint32_t i = find(shares, shares->n, whose);
	     i < shares->n && shares->items[i].key.whose == whose; i++) {
		const struct thread_share *share = &shares->items[i];

		queue->amount += share->share.ns;
		if (queue->n_shares < NETOBS_QUEUE_SHARES_MAX)
			fill_share(shares, share, now_ns,
				   &queue->shares[queue->n_shares++]);
		else
			queue->rest += share->share.ns;
	}
}

void thread_shares_free(struct thread_shares *shares)
{
	free(shares->items);
	*shares = (struct thread_shares){ 0 };
}
