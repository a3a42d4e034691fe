// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "thread_groups.h"

#include "base/util.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const struct cgroup_kind kinds[] = {
	{ .fs_type = "cgroup", .controller = "cpu" },
	{ .fs_type = "cgroup2" },
};

void thread_groups_open(struct thread_groups *groups,
			struct sched_control *control, int fd)
{
	*groups = (struct thread_groups){ .control = control, .fd = fd };
	for (size_t i = 0; i < ARRAY_SIZE(kinds) && !groups->kind; i++)
		if (cgroup_mount_find("", &kinds[i], &groups->mount))
			groups->kind = &kinds[i];
}

/* ---- Counters ----------------------------------------------------------------------------- */

static void read_quota(struct thread_group *group)
{
	char text[1024], *line, *rest = text;
	const ssize_t n = pread(group->fd, text, sizeof(text) - 1, 0);
	uint64_t value;

	text[n > 0 ? n : 0] = '\0';
	while ((line = strsep(&rest, "\n")))
		if (sscanf(line, "nr_periods %" SCNu64, &value) == 1)
			group->periods = value;
		else if (sscanf(line, "nr_throttled %" SCNu64, &value) == 1)
			group->throttled = value;
}

/* The programs look for the groups of all threads: so only for those that have a quota. */
static void report_quota(struct thread_groups *groups, struct thread_group *group)
{
	if (group->is_known || !group->periods)
		return;
	group->is_known = !bpf_map_update_elem(groups->fd, &group->id,
					       &group->number, BPF_ANY);
	if (group->is_known)
		groups->control->has_groups = true;
}

static void forget_group(struct thread_groups *groups, struct thread_group *group)
{
	const uint64_t id = group->id;

	bpf_map_delete_elem(groups->fd, &id);
	close_fd(&group->fd);
	slots_remove(&groups->groups, &id);
}

static struct thread_group *find_group(const struct thread_groups *groups,
				       uint64_t id)
{
	const uint32_t i = id ? slots_find(&groups->groups, &id) : SLOT_NONE;

	return i == SLOT_NONE ? NULL : slots_at(&groups->groups, i);
}

void thread_groups_use(struct thread_groups *groups,
		       const struct thread_member members[THREAD_GROUPS],
		       int64_t now_ns)
{
	for (int i = 0; i < THREAD_GROUPS; i++) {
		struct thread_group *group = find_group(groups, members[i].id);

		if (group)
			group->used_ns = now_ns;
	}
}

void thread_groups_read(struct thread_groups *groups, int64_t before_ns)
{
	bool has_groups = false;

	for (uint32_t i = groups->groups.n; i--;) {
		struct thread_group *group = slots_at(&groups->groups, i);

		if (group->used_ns < before_ns) {
			forget_group(groups, group);
			continue;
		}
		read_quota(group);
		report_quota(groups, group);
		has_groups |= group->is_known;
	}
	groups->control->has_groups = has_groups;
}

const struct thread_group *
thread_groups_throttled(const struct thread_groups *groups,
			struct thread_member members[THREAD_GROUPS],
			uint64_t *ret_times)
{
	const struct thread_group *most = NULL;

	*ret_times = 0;
	for (int i = 0; i < THREAD_GROUPS; i++) {
		const struct thread_group *group =
			find_group(groups, members[i].id);
		const uint64_t times =
			group ? group->throttled - members[i].throttled : 0;

		if (!group)
			continue;
		members[i].throttled = group->throttled;
		if (times > *ret_times) {
			*ret_times = times;
			most = group;
		}
	}
	return most;
}

/* ---- The groups of a thread --------------------------------------------------------------- */

static struct thread_group *add_group(struct thread_groups *groups, uint64_t id,
				      const char *path, int directory)
{
	cleanup_fd int fd = openat(directory, "cpu.stat", O_RDONLY | O_CLOEXEC);
	const size_t len = strlen(path);
	struct thread_group *group;
	uint32_t i;

	if (fd < 0 || groups->groups.n == SCHED_GROUPS_MAX)
		return NULL;
	i = slots_get(&groups->groups, &id, sizeof(id), sizeof(*group));
	if (i == SLOT_NONE)
		return NULL;
	group = slots_at(&groups->groups, i);
	group->number = ++groups->last_number & ~SCHED_IS_GROUP;
	group->fd = TAKE_FD(fd);
	snprintf(group->path, sizeof(group->path), "%s",
		 len < sizeof(group->path) ?
			 path :
			 path + len - (sizeof(group->path) - 1));
	read_quota(group);
	report_quota(groups, group);
	return group;
}

/* @path: below the mount. @return NULL: it has no counters, or there are too many groups */
static struct thread_group *take_group(struct thread_groups *groups,
				       const char *path, int64_t now_ns)
{
	char name[2 * CGROUP_PATH_MAX];
	struct thread_group *group;
	cleanup_fd int directory = -1;
	struct stat stat;

	snprintf(name, sizeof(name), "%s%s", groups->mount.point, path);
	directory = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0 || fstat(directory, &stat))
		return NULL;
	group = find_group(groups, stat.st_ino) ?:
			add_group(groups, stat.st_ino, path, directory);
	if (group)
		group->used_ns = now_ns;
	return group;
}

/* cgroups(7): ID:controllers:path. @return whether the line is of the hierarchy; then it has the path */
static bool read_line(const struct thread_groups *groups, char *line,
		      char **ret_path)
{
	char *rest = line, *controllers;

	strsep(&rest, ":");
	controllers = strsep(&rest, ":");
	if (!rest || !cgroup_kind_has(groups->kind, controllers))
		return false;
	rest[strcspn(rest, "\n")] = '\0';
	*ret_path = rest;
	return true;
}

/* @return the path below the mount; NULL: it is not seen there */
static char *below_mount(const struct thread_groups *groups, char *path)
{
	const char *root = groups->mount.root;
	const size_t len = strcmp(root, "/") ? strlen(root) : 0;

	return strncmp(path, root, len) || strstr(path, "/..") ? NULL :
								 path + len;
}

static void join(struct thread_member *member, const struct thread_group *group)
{
	if (!group)
		*member = (struct thread_member){ 0 };
	else if (member->id != group->id)
		*member = (struct thread_member){ .id = group->id,
						  .throttled = group->throttled };
}

void thread_groups_find(struct thread_groups *groups, uint32_t tid,
			int64_t now_ns,
			struct thread_member members[THREAD_GROUPS])
{
	char name[64], line[CGROUP_PATH_MAX], *path = NULL, *slash;
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%u/cgroup", tid);
	file = groups->kind ? fopen(name, "re") : NULL;
	while (file && fgets(line, sizeof(line), file) &&
	       !read_line(groups, line, &path))
		;
	if (file)
		fclose(file);
	path = path ? below_mount(groups, path) : NULL;
	for (int i = 0; i < THREAD_GROUPS; i++) {
		slash = path ? strrchr(path, '/') : NULL;
		if (!slash || !slash[1]) {
			join(&members[i], NULL); /* the root has no quota */
			continue;
		}
		join(&members[i], take_group(groups, path, now_ns));
		*slash = '\0';
	}
}

void thread_groups_close(struct thread_groups *groups)
{
	while (groups->groups.n)
		forget_group(groups, slots_at(&groups->groups, 0));
	slots_free(&groups->groups);
}
