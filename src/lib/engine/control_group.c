// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "control_group.h"

#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* ---- The root ----------------------------------------------------------------------- */

static int open_directory(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Mount it where no path leads to it, as in ip-netns(8) exec; takes CAP_SYS_ADMIN. */
static int mount_cgroup_root(void)
{
	cleanup_fd int fs = (int)syscall(SYS_fsopen, "cgroup2", FSOPEN_CLOEXEC);
	int root;

	if (fs < 0 ||
	    syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		return -errno;
	root = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
	return root < 0 ? -errno : root;
}

/* The paths are those of cgroup v2 alone, and beside v1. */
int cgroup_root_open(void)
{
	static const char *const paths[] = { "/sys/fs/cgroup",
					     "/sys/fs/cgroup/unified" };
	struct statfs fs;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		if (!statfs(paths[i], &fs) && fs.f_type == CGROUP2_SUPER_MAGIC)
			return open_directory(paths[i]);
	return mount_cgroup_root();
}

/* ---- Mounts ------------------------------------------------------------------------- */

/* @return whether a list with commas contains @word */
static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += len)
		if ((at == list || at[-1] == ',') &&
		    (!at[len] || at[len] == ',' || at[len] == '\n'))
			return true;
	return false;
}

bool cgroup_kind_has(const struct cgroup_kind *kind, const char *controllers)
{
	return kind->controller ? has_word(controllers, kind->controller) :
				  !*controllers;
}

static bool parse_mount(const char *line, const struct cgroup_kind *kind,
			struct cgroup_mount *ret_mount)
{
	const char *rest = strstr(line, " - ");
	char fs_type[32], options[CGROUP_PATH_MAX];

	if (!rest || sscanf(rest, " - %31s %*s %4095s", fs_type, options) != 2 ||
	    strcmp(fs_type, kind->fs_type))
		return false;
	if (kind->controller && !has_word(options, kind->controller))
		return false;
	return sscanf(line, "%*s %*s %*s %4095s %4095s", ret_mount->root,
		      ret_mount->point) == 2;
}

bool cgroup_mount_find(const char *root, const struct cgroup_kind *kind,
		       struct cgroup_mount *ret_mount)
{
	char path[PATH_MAX], line[2 * CGROUP_PATH_MAX];
	bool is_found = false;
	FILE *file;

	if (snprintf(path, sizeof(path), "%s/proc/self/mountinfo", root) >=
	    (int)sizeof(path))
		return false;
	file = fopen(path, "re");
	while (file && !is_found && fgets(line, sizeof(line), file))
		is_found = parse_mount(line, kind, ret_mount);
	if (file)
		fclose(file);
	return is_found;
}

/* ---- Memory ------------------------------------------------------------------------- */

enum {
	/* Programs being loaded, entries held for the next drain, and all else. */
	RESERVE = 12 << 20,
	TABLES_MIN = 1 << 20,
	PARTS = 3, /* of which one is for tables */
	LINE = 4096,
};

/* Version 1 has a number for "no limit", which depends on the page size. */
static const uint64_t unlimited = 1ULL << 60;

/* One of the two kinds of hierarchies, and its files. */
struct version {
	struct cgroup_kind kind;
	const char *limits[2];
	const char *usage;
	const char *caches[2]; /* in memory.stat */
};

static const struct version versions[] = {
	{
		.kind = { .fs_type = "cgroup2" },
		.limits = { "memory.max", "memory.high" },
		.usage = "memory.current",
		.caches = { "inactive_file", "active_file" },
	},
	{
		.kind = { .fs_type = "cgroup", .controller = "memory" },
		.limits = { "memory.limit_in_bytes" },
		.usage = "memory.usage_in_bytes",
		.caches = { "total_inactive_file", "total_active_file" },
	},
};

static void close_file(FILE **file)
{
	if (*file)
		fclose(*file);
}

#define cleanup_file __attribute__((cleanup(close_file)))

static FILE *open_in(const char *directory, const char *name)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >=
	    (int)sizeof(path))
		return NULL;
	return fopen(path, "re");
}

/* Read a file with one number. @return @otherwise if it says "max", or is not there */
static uint64_t read_group_number(const char *directory, const char *name,
				  uint64_t otherwise)
{
	cleanup_file FILE *file = open_in(directory, name);
	uint64_t number;

	return file && fscanf(file, "%" SCNu64, &number) == 1 ? number :
								otherwise;
}

/* @return the page cache, which the kernel reclaims before the group is full */
static uint64_t read_caches(const char *directory, const struct version *version)
{
	cleanup_file FILE *file = open_in(directory, "memory.stat");
	uint64_t sum = 0, number;
	char name[64];

	while (file && fscanf(file, "%63s %" SCNu64, name, &number) == 2)
		for (size_t i = 0; i < ARRAY_SIZE(version->caches); i++)
			if (!strcmp(name, version->caches[i]))
				sum += number;
	return sum;
}

static uint64_t room_of_group(const char *directory, const struct version *version)
{
	uint64_t limit = UINT64_MAX, used;

	for (size_t i = 0; i < ARRAY_SIZE(version->limits); i++)
		if (version->limits[i])
			limit = min_u64(limit,
					read_group_number(directory,
							  version->limits[i],
							  UINT64_MAX));
	if (limit >= unlimited)
		return UINT64_MAX;
	used = read_group_number(directory, version->usage, 0);
	used -= min_u64(used, read_caches(directory, version));
	return limit - min_u64(limit, used);
}

bool cgroup_parse_line(char *line, const char **ret_controllers, char **ret_path)
{
	char *path = line;

	strsep(&path, ":");
	*ret_controllers = strsep(&path, ":");
	if (!path)
		return false;
	path[strcspn(path, "\n")] = '\0';
	*ret_path = path;
	return true;
}

/* @return the path of the group below the mount; "": only the group of the mount itself is seen */
static const char *relative_to(const char *path, const struct cgroup_mount *mount)
{
	size_t len = strcmp(mount->root, "/") ? strlen(mount->root) : 0;

	if (strncmp(path, mount->root, len) || strstr(path, "/.."))
		return "";
	return strcmp(path + len, "/") ? path + len : "";
}

/* @return the least room of the group at @directory and its ancestors, down to @top bytes */
static uint64_t room_upwards(char *directory, size_t top,
			     const struct version *version)
{
	uint64_t room = UINT64_MAX;

	for (;;) {
		room = min_u64(room, room_of_group(directory, version));
		if (strlen(directory) <= top)
			return room;
		*strrchr(directory, '/') = '\0';
	}
}

static uint64_t room_of_version(const char *root, const struct version *version)
{
	cleanup_file FILE *file = open_in(root, "proc/self/cgroup");
	char line[LINE], directory[PATH_MAX];
	struct cgroup_mount mount;
	const char *controllers;
	char *path;
	int top;

	if (!cgroup_mount_find(root, &version->kind, &mount))
		return UINT64_MAX;
	top = snprintf(NULL, 0, "%s%s", root, mount.point);
	while (file && fgets(line, sizeof(line), file)) {
		if (!cgroup_parse_line(line, &controllers, &path) ||
		    !cgroup_kind_has(&version->kind, controllers))
			continue;
		if (snprintf(directory, sizeof(directory), "%s%s%s", root,
			     mount.point, relative_to(path, &mount)) >=
		    (int)sizeof(directory))
			return UINT64_MAX;
		return room_upwards(directory, top, version);
	}
	return UINT64_MAX;
}

uint64_t memory_room(const char *root)
{
	uint64_t room = UINT64_MAX;

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
		room = min_u64(room, room_of_version(root, &versions[i]));
	return room;
}

uint64_t memory_room_least(void)
{
	return RESERVE + (uint64_t)PARTS * TABLES_MIN;
}

struct memory_plan memory_plan(uint64_t room)
{
	uint64_t part;

	if (room < memory_room_least())
		return (struct memory_plan){ 0 };
	part = (room - RESERVE) / PARTS;
	return (struct memory_plan){
		.entry_bytes = part,
		.process_bytes = (PARTS - 1) * part,
	};
}
