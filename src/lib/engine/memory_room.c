// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "control_group.h"

#include "base/cgroup_mount.h"
#include "base/util.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

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

/* cgroups(7): ID:controllers:path, of version 2 without controllers. */
static bool parse_group(char *line, const struct version *version,
			const char **ret_path)
{
	char *controllers = strchr(line, ':'), *path;

	path = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!path)
		return false;
	*controllers++ = '\0';
	*path++ = '\0';
	if (!cgroup_kind_has(&version->kind, controllers))
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
	const char *path;
	int top;

	if (!cgroup_mount_find(root, &version->kind, &mount))
		return UINT64_MAX;
	top = snprintf(NULL, 0, "%s%s", root, mount.point);
	while (file && fgets(line, sizeof(line), file)) {
		if (!parse_group(line, version, &path))
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
