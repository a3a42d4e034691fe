// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "container_search.h"

#include "base/cgroup_mount.h"
#include "base/io.h"
#include "base/util.h"
#include "host/netns.h"
#include "host/rtnl.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum {
	DEPTH_MAX = 24 /* of groups; runtimes have them in the first few levels */
};

struct container_search *container_search_new(uint32_t max)
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

void container_search_free(void *arg)
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

void container_search_add(struct container_search *search, uint16_t netns,
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

const struct cgroup_names *
container_search_find(const struct container_search *search, uint16_t netns,
		      int32_t nsid)
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

void container_search_run(void *arg)
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
