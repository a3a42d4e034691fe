/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "netns.h"

#include "base/util.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

static int open_netns(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int netns_open_own(void)
{
	return open_netns("/proc/thread-self/ns/net");
}

/* 0; -ENAMETOOLONG */
static int path_of(const char *name, char *path, size_t size)
{
	int len = snprintf(path, size, "%s%s",
			   name[0] == '/' ? "" : "/run/netns/", name);

	return len < (int)size ? 0 : -ENAMETOOLONG;
}

int netns_open(const char *name)
{
	char path[PATH_MAX];

	return path_of(name, path, sizeof(path)) ?: open_netns(path);
}

int netns_inode(int fd, uint32_t *ret_inode)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	*ret_inode = st.st_ino;
	return 0;
}

int netns_check(int fd)
{
	return ioctl(fd, NS_GET_NSTYPE) == CLONE_NEWNET ? 0 : -ENOTTY;
}

static int find_own(uint32_t *ret_inode)
{
	cleanup_fd int own = netns_open_own();

	return own < 0 ? own : netns_inode(own, ret_inode);
}

int netns_find(const char *name, uint32_t *ret_inode)
{
	char path[PATH_MAX];
	struct statfs fs;
	struct stat st;

	if (!name)
		return find_own(ret_inode);
	/* A name whose namespace is being created is a plain file for a moment. */
	if (path_of(name, path, sizeof(path)) || statfs(path, &fs) ||
	    fs.f_type != NSFS_MAGIC || stat(path, &st))
		return -ENOENT;
	*ret_inode = st.st_ino;
	return 0;
}

int netns_move(int fd)
{
	return setns(fd, CLONE_NEWNET) ? -errno : 0;
}

int netns_enter(int fd, int *ret_back)
{
	cleanup_fd int back = netns_open_own();
	int err = back < 0 ? back : netns_move(fd);

	if (err)
		return err;
	*ret_back = TAKE_FD(back);
	return 0;
}

void netns_leave(int back)
{
	/* The thread came from there a moment ago; it has the right to return. */
	int err = setns(back, CLONE_NEWNET);

	assert(!err);
	(void)err;
	close(back);
}

/* ---- All namespaces --------------------------------------------------------------------- */

/* Directories with names of namespaces, then that of processes. */
static const struct {
	const char *path, *behind;
} places[] = {
	{ "/run/netns/", "" },
	{ "/run/docker/netns/", "" },
	{ "/proc/", "/ns/net" },
};

enum { PLACES = ARRAY_SIZE(places), PROCESSES = PLACES - 1 };

/* Open the directory of a place, or of the first one behind that has one. */
static void open_place(struct netns_walk *walk)
{
	while (walk->place < PLACES &&
	       !(walk->dir = opendir(places[walk->place].path)))
		walk->place++;
}

int netns_walk_begin(struct netns_walk *walk)
{
	netns_walk_end(walk);
	open_place(walk);
	return walk->dir ? 0 : -errno;
}

void netns_walk_end(struct netns_walk *walk)
{
	if (walk->dir)
		closedir(walk->dir);
	*walk = (struct netns_walk){ 0 };
}

static const char *next_name(struct netns_walk *walk)
{
	const struct dirent *entry = NULL;

	while (walk->dir && !(entry = readdir(walk->dir))) {
		closedir(TAKE_PTR(walk->dir));
		walk->place++;
		open_place(walk);
	}
	return entry ? entry->d_name : NULL;
}

static bool is_namespace(const struct netns_walk *walk, const char *name)
{
	return walk->place < PROCESSES ? *name != '.' :
					 isdigit((unsigned char)*name);
}

bool netns_walk_next(struct netns_walk *walk, int *ret_fd, uint32_t *ret_inode)
{
	const char *name = next_name(walk);
	char path[NAME_MAX + 64];
	int fd;

	*ret_fd = -1;
	if (!name || !is_namespace(walk, name))
		return name;
	snprintf(path, sizeof(path), "%s%s%s", places[walk->place].path, name,
		 places[walk->place].behind);
	fd = netns_open(path);
	walk->is_denied |= fd == -EACCES || fd == -EPERM;
	if (fd >= 0 && netns_inode(fd, ret_inode))
		close_fd(&fd);
	*ret_fd = fd < 0 ? -1 : fd;
	return true;
}

/* ---- By inode --------------------------------------------------------------------------- */

/* @return the namespace at that path, if it has that inode; else -ENOENT */
static int open_if(const char *path, uint32_t inode)
{
	cleanup_fd int fd = netns_open(path);
	uint32_t its = 0;

	if (fd < 0 || netns_inode(fd, &its) || its != inode)
		return -ENOENT;
	return TAKE_FD(fd);
}

static int open_named(uint32_t inode)
{
	struct netns_walk walk = { 0 };
	bool is_found = false;
	uint32_t its = 0;
	int fd = -1;

	netns_walk_begin(&walk);
	while (!is_found && walk.place < PROCESSES &&
	       netns_walk_next(&walk, &fd, &its)) {
		is_found = fd >= 0 && its == inode;
		if (!is_found)
			close_fd(&fd);
	}
	netns_walk_end(&walk);
	return is_found ? fd : -ENOENT;
}

int netns_search(uint32_t inode, uint32_t pid)
{
	int fd = open_if("/proc/thread-self/ns/net", inode);
	char path[40];

	snprintf(path, sizeof(path), "/proc/%u/ns/net", pid);
	if (fd < 0 && pid)
		fd = open_if(path, inode);
	return fd < 0 ? open_named(inode) : fd;
}
