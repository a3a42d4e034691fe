// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "containers.h"

#include "base/clock.h"
#include "base/util.h"
#include "base/worker.h"
#include "container_search.h"

enum {
	/* A container's first process may start after its interface was created. */
	WAIT_MIN_MS = 1000,
	WAIT_MAX_MS = 300000,
};

/* An interface with a container at its other end. */
struct contained {
	uint16_t netns;
	uint32_t ifindex;
	int32_t nsid;
	struct cgroup_names names;
};

int containers_init(struct containers *containers, const struct host *host)
{
	int err = worker_new(container_search_run, container_search_free,
			     &containers->worker);

	if (!err)
		containers->host = host;
	return err;
}

void containers_done(struct containers *containers)
{
	worker_free(containers->worker);
	free(containers->list);
	*containers = (struct containers){ 0 };
}

int containers_fd(const struct containers *containers)
{
	return containers->host ? worker_fd(containers->worker) : -1;
}

/* ---- When to search ----------------------------------------------------------------------- */

static bool is_asked_for(const struct netif *netif)
{
	return netif->type == LINK_TYPE_PAIR && netif->link &&
	       netif->link_nsid != NSID_SAME && !netif->gone_ns;
}

/* FNV-1a, of words. */
static uint64_t mix_hash(uint64_t hash, uint64_t word)
{
	return (hash ^ word) * 0x100000001b3;
}

/* @return a hash of the namespace's pairs; 0: it has none */
static uint64_t pairs_of(const struct netns *netns)
{
	uint64_t hash = 0;

	for (uint32_t i = 0; netns->rtnl_fd >= 0 && i < netns->netifs.count; i++) {
		const struct netif *netif = &netns->netifs.items[i];

		if (is_asked_for(netif))
			hash = mix_hash(mix_hash(hash + 1, netif->ifindex),
					(uint32_t)netif->link_nsid);
	}
	return hash;
}

static uint64_t all_pairs(const struct host *host)
{
	uint64_t hash = 0;

	for (uint32_t i = 0; i < host->n_netns; i++)
		hash = mix_hash(hash, pairs_of(&host->netns[i]));
	return hash;
}

/* If pairs come and go all the time, a search is due once in WAIT_MIN_MS. */
static bool is_due(struct containers *containers)
{
	const int64_t passed_ns = clock_boot_ns() - containers->searched_ns;
	uint64_t pairs;

	if (passed_ns < WAIT_MIN_MS * NSEC_PER_MSEC)
		return false;
	pairs = all_pairs(containers->host);
	if (pairs != containers->pairs)
		containers->wait_ns = 0;
	containers->pairs = pairs;
	return pairs && passed_ns >= containers->wait_ns;
}

static struct container_search *make_search(const struct host *host)
{
	struct container_search *search = container_search_new(host->n_netns);

	for (uint32_t i = 0; search && i < host->n_netns; i++)
		if (pairs_of(&host->netns[i]))
			container_search_add(search, host->netns[i].index,
					     host->netns[i].ns);
	return search;
}

void containers_look(struct containers *containers)
{
	struct container_search *search;

	if (!containers->host)
		return;
	containers_collect(containers);
	if (worker_is_busy(containers->worker) || !is_due(containers))
		return;
	search = make_search(containers->host);
	if (!search)
		return;
	containers->searched_ns = clock_boot_ns();
	containers->wait_ns =
		(int64_t)min_u64(max_u64(2 * (uint64_t)containers->wait_ns,
					 WAIT_MIN_MS * NSEC_PER_MSEC),
				 WAIT_MAX_MS * NSEC_PER_MSEC);
	if (worker_start(containers->worker, search))
		container_search_free(search);
}

/* ---- What was found ------------------------------------------------------------------------- */

static uint32_t count_pairs(const struct host *host)
{
	struct netns *netns;
	uint32_t n = 0;

	host_for_each_netif(host, netns, netif)
		n += is_asked_for(netif);
	return n;
}

static void list_found(struct containers *containers,
		       const struct container_search *search)
{
	struct netns *netns;

	host_for_each_netif(containers->host, netns, netif) {
		const struct cgroup_names *names = NULL;

		if (is_asked_for(netif))
			names = container_search_find(search, netns->index,
						      netif->link_nsid);
		if (names)
			containers->list[containers->n++] =
				(struct contained){ netns->index, netif->ifindex,
						    netif->link_nsid, *names };
	}
}

void containers_collect(struct containers *containers)
{
	struct container_search *search = worker_take(containers->worker);

	if (!search)
		return;
	free(containers->list);
	containers->n = 0;
	containers->list = calloc(count_pairs(containers->host) ?: 1,
				  sizeof(*containers->list));
	if (containers->list)
		list_found(containers, search);
	container_search_free(search);
}

/* The list is sorted by namespace and interface, as these are. */
const struct cgroup_names *containers_find(const struct containers *containers,
					   const struct netns *netns,
					   const struct netif *netif)
{
	uint32_t low = 0, high = containers->n;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		const struct contained *one = &containers->list[middle];

		if (one->netns < netns->index ||
		    (one->netns == netns->index && one->ifindex < netif->ifindex))
			low = middle + 1;
		else
			high = middle;
	}
	if (low == containers->n || containers->list[low].netns != netns->index ||
	    containers->list[low].ifindex != netif->ifindex ||
	    containers->list[low].nsid != netif->link_nsid)
		return NULL;
	return &containers->list[low].names;
}
