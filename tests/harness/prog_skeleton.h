/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The skeleton of the flow programs, and its maps in memory. */
#ifndef HARNESS_PROG_SKELETON_H
#define HARNESS_PROG_SKELETON_H

#include "bpf/nat.h" /* as the next ones, of a knob of the skeleton */
#include "bpf/parse/tunnel.h"
#include "bpf/store/hash.h"
#include "engine/map.h"
#include "flows.skel.h"

#include <bpf/libbpf.h>

static inline size_t prog_array_size(const struct bpf_map *map)
{
	return (size_t)bpf_map__max_entries(map) * bpf_map__value_size(map);
}

/* A map, and how many entries it is to have before it is loaded. */
struct prog_size {
	struct bpf_map *map;
	__u32 entries;
};

static inline int prog_set_sizes(const struct prog_size *sizes, size_t n)
{
	int err = 0;

	for (size_t i = 0; i < n && !err; i++)
		err = bpf_map__set_max_entries(sizes[i].map, sizes[i].entries);
	return err;
}

/* NULL: errno. */
static inline void *prog_map_array(const struct bpf_map *map)
{
	return map_mmap(bpf_map__fd(map), 0, prog_array_size(map));
}

static inline void prog_unmap_array(const void *array, const struct bpf_map *map)
{
	map_munmap(array, prog_array_size(map));
}

#endif
