// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "containers.h"

#include "engine/control_group.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/util.h"
#include "base/worker.h"
#include "host/netns.h"
#include "host/rtnl.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum {
	/* A container's first process may start after its interface was created. */
	WAIT_MIN_MS = 1000,
	WAIT_MAX_MS = 300000,
	DEPTH_MAX = 24, /* of groups; runtimes have them in the first few levels */
};

/* An interface with a container at its other end. */
struct contained {
	uint16_t netns;
	uint32_t ifindex;
	int32_t nsid;
	struct cgroup_names names;
};

/* A namespace with links, and a socket in it to ask for ids. */
struct container_asked {
	uint16_t netns;	      /* the caller's index */
	struct shared_fd *ns; /* NULL: the thread's own */
	int fd;
	int32_t own_nsid; /* the id that it has for the thread's namespace; < 0: none */
};

/* A namespace of containers, by the id that @netns has for it. */
struct container_found {
	uint16_t netns;
	int32_t nsid;
	struct cgroup_names names; /* of a pod: without the container; empty: there are several */
};

/* A search owns all data that it needs, and runs on a thread. */
struct container_search {
	struct container_asked *asked;
	uint32_t n_asked;
	struct container_found *found;
	uint32_t n_found, capacity;
};

/* ---- A search ----------------------------------------------------------------------------- */

/* Make a search with room for @max namespaces. NULL: no memory */
static struct container_search *new_search(uint32_t max)
{
	struct container_search *search = calloc(1, sizeof(*search));

	if (!search)
		return NULL;
	search->asked = calloc(max, sizeof(*search->asked));
	if (search->asked)
		return search;
	free(search);
	return NULL;
}

static void free_search(void *arg)
{
	struct container_search *search = arg;

	if (!search)
		return;
	for (uint32_t i = 0; i < search->n_asked; i++) {
		shared_fd_unref(search->asked[i].ns);
		close_fd(&search->asked[i].fd);
	}
	free(search->asked);
	free(search->found);
	free(search);
}

/* Add a namespace that is to be asked. */
static void add_asked(struct container_search *search, uint16_t netns,
		      struct shared_fd *ns)
{
	search->asked[search->n_asked++] = (struct container_asked){
		.netns = netns,
		.ns = shared_fd_ref(ns),
		.fd = -1,
		.own_nsid = -1,
	};
}

/* ---- What is found -------------------------------------------------------------------- */

static struct container_found *find_found(const struct container_search *search,
					  uint16_t netns, int32_t nsid)
{
	for (uint32_t i = 0; i < search->n_found; i++)
		if (search->found[i].netns == netns &&
		    search->found[i].nsid == nsid)
			return &search->found[i];
	return NULL;
}

/* NULL without memory. */
static struct container_found *add_found(struct container_search *search)
{
	if (!array_reserve(&search->found, search->n_found, &search->capacity,
			   sizeof(*search->found), 64))
		return NULL;
	return &search->found[search->n_found++];
}

/* Only containers of one pod share a namespace; with others in it, no container is known. */
static void note_netns(struct container_search *search, uint16_t netns,
		       int32_t nsid, const struct cgroup_names *names)
{
	struct container_found *found = find_found(search, netns, nsid);
	struct cgroup_names noted = *names;

	if (*noted.pod_uid)
		*noted.container_id = '\0';
	if (!found) {
		found = add_found(search);
		if (found)
			*found = (struct container_found){ netns, nsid, noted };
		return;
	}
	if (strcmp(found->names.container_id, noted.container_id) ||
	    strcmp(found->names.pod_uid, noted.pod_uid))
		found->names = (struct cgroup_names){ 0 };
}

/* @return NULL: there is no container, or several */
static const struct cgroup_names *
find_container(const struct container_search *search, uint16_t netns, int32_t nsid)
{
	const struct container_found *found = find_found(search, netns, nsid);

	return found && (*found->names.container_id || *found->names.pod_uid) ?
		       &found->names :
		       NULL;
}

/* ---- Control groups --------------------------------------------------------------------- */

/* @return the first process of a group; 0: it has none, or none that is visible here */
static uint32_t first_process(int group_fd)
{
	int fd = openat(group_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	char text[32];
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	close_fd(&fd);
	text[len > 0 ? len : 0] = '\0';
	return (uint32_t)strtoul(text, NULL, 10);
}

/* The process may have ended meanwhile, and another one may have its number. */
static void ask_group(struct container_search *search, int group_fd,
		      const struct cgroup_names *names)
{
	const uint32_t pid = first_process(group_fd);

	for (uint32_t i = 0; pid && i < search->n_asked; i++) {
		const struct container_asked *asked = &search->asked[i];
		int nsid = asked->fd < 0 ? -1 :
					   rtnl_nsid_of_process(asked->fd, pid);

		if (nsid >= 0 && nsid != asked->own_nsid &&
		    first_process(group_fd) == pid)
			note_netns(search, asked->netns, nsid, names);
	}
}

/* Takes @group_fd over. @path: of the group, @len of CGROUP_PATH_MAX bytes */
static void walk_groups(struct container_search *search, int group_fd,
			char *path, size_t len, int depth)
{
	const struct cgroup_names names = cgroup_names_of(path);
	DIR *dir = fdopendir(group_fd);
	const struct dirent *entry;

	if (!dir) {
		close(group_fd);
		return;
	}
	if (*names.container_id || *names.pod_uid)
		ask_group(search, group_fd, &names);
	while (depth < DEPTH_MAX && (entry = readdir(dir))) {
		size_t used = strlen(entry->d_name) + 1;
		int fd;

		if (entry->d_type != DT_DIR || *entry->d_name == '.' ||
		    len + used >= CGROUP_PATH_MAX)
			continue;
		fd = openat(group_fd, entry->d_name,
			    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			continue;
		snprintf(path + len, CGROUP_PATH_MAX - len, "/%s", entry->d_name);
		walk_groups(search, fd, path, len + used, depth + 1);
		path[len] = '\0';
	}
	closedir(dir);
}

/* Remove "/..": a control group above the root of this namespace. */
static void cut_root(char *root)
{
	char *rest = root;

	while (!strncmp(rest, "/..", 3) && (!rest[3] || rest[3] == '/'))
		rest += 3;
	if (!strcmp(rest, "/"))
		rest++;
	memmove(root, rest, strlen(rest) + 1);
}

static void walk_hierarchy(struct container_search *search,
			   const struct cgroup_kind *kind)
{
	struct cgroup_mount mount;
	int fd;

	if (!cgroup_mount_find("", kind, &mount))
		return;
	fd = open(mount.point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	cut_root(mount.root);
	walk_groups(search, fd, mount.root, strlen(mount.root), 0);
}

/* Note the id of this process's namespace: a link to it leads to the host, not to a container. */
static void open_asked(struct container_asked *asked)
{
	cleanup_fd int own = asked->ns ? netns_open_own() : -1;

	asked->fd = rtnl_open_in(shared_fd_get(asked->ns), 0);
	if (asked->fd >= 0 && own >= 0)
		asked->own_nsid = rtnl_nsid(asked->fd, own);
}

/* Look at all control groups. Moves the calling thread into these namespaces, and back. */
static void run_search(void *arg)
{
	/* Runtimes create groups in all hierarchies, or in that of version 2. */
	static const struct cgroup_kind kinds[] = { { "cgroup2", NULL },
						    { "cgroup", "memory" } };
	struct container_search *search = arg;

	for (uint32_t i = 0; i < search->n_asked; i++)
		open_asked(&search->asked[i]);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		walk_hierarchy(search, &kinds[i]);
}

/* ---- Life --------------------------------------------------------------------------------- */

int containers_init(struct containers *containers, const struct host *host)
{
	int err = worker_new(run_search, free_search, &containers->worker);

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
	struct container_search *search = new_search(host->n_netns);

	for (uint32_t i = 0; search && i < host->n_netns; i++)
		if (pairs_of(&host->netns[i]))
			add_asked(search, host->netns[i].index,
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
		free_search(search);
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
			names = find_container(search, netns->index,
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
	free_search(search);
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
