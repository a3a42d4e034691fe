// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "kept_memory.h"

#include "base/util.h"
#include "map.h"

#include <bpf/bpf.h>
#include <errno.h>

/* Before Linux 5.18, an element of an array may be small only. */
enum { UNIT = 4096 };

static uint32_t count_units(size_t size)
{
	return (uint32_t)((size + UNIT - 1) / UNIT);
}

static bool has_size(int fd, size_t size)
{
	struct bpf_map_info info = { 0 };
	uint32_t len = sizeof(info);

	return !bpf_obj_get_info_by_fd(fd, &info, &len) &&
	       info.type == BPF_MAP_TYPE_ARRAY && info.value_size == UNIT &&
	       info.max_entries == count_units(size) &&
	       info.map_flags & BPF_F_MMAPABLE;
}

void *kept_memory_find(const struct pinned *pinned, const char *name, size_t size)
{
	cleanup_fd int fd = pinned_get_map(pinned, name);

	return fd >= 0 && has_size(fd, size) ? map_mmap(fd, 0, size) : NULL;
}

void *kept_memory_make(const struct pinned *pinned, const char *name, size_t size)
{
	cleanup_fd int fd = map_make_array("netobs_kept", UNIT,
					   count_units(size), BPF_F_MMAPABLE);
	int err = fd < 0 ? fd : pinned_put_map(pinned, name, fd);
	void *bytes;

	if (err) {
		errno = -err;
		return NULL;
	}
	bytes = map_mmap(fd, 0, size);
	if (!bytes)
		pinned_remove_map(pinned, name);
	return bytes;
}

void kept_memory_close(void *bytes, size_t size)
{
	map_munmap(bytes, size);
}

void kept_memory_remove(const struct pinned *pinned, const char *name,
			void *bytes, size_t size)
{
	map_munmap(bytes, size);
	pinned_remove_map(pinned, name);
}
