/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Program sets: BPF programs that are loaded, attached and unloaded together, and
 * their maps. The first reference loads a set, the last one unloads it: a feature
 * that is not in use has no programs, no maps and no links.
 *
 * A set may share the maps of another one, its base, which it references while it is
 * loaded. While a base is loaded, sets of several threads may share it. Programs of interfaces
 * have no attach point here: src/lib/attach attaches them.
 */
#ifndef NETOBS_ENGINE_PROGRAM_SET_H
#define NETOBS_ENGINE_PROGRAM_SET_H

#include "catalogue/direction.h"
#include "base/log.h"
#include "filter/filter.h"
#include "filter/code.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_link;
struct bpf_object;
struct bpf_program;

enum attach_kind {
	ATTACH_SECTION, /* where its section says: a tracepoint, a function */
	ATTACH_CGROUP,	/* sock_ops, cgroup_skb and others of a cgroup */
	ATTACH_CGROUP_FIRST, /* before all programs of groups below, Linux 6.17 */
	ATTACH_ITERATOR,     /* see program_set_open_iterator() */
};

struct attach_point {
	const char *program;
	enum attach_kind kind;
	const char *map; /* ATTACH_ITERATOR: the map whose elements it visits; or NULL */
	int cgroup_fd; /* ATTACH_CGROUP, ATTACH_CGROUP_FIRST; stays the caller's */
};

enum { PROGRAM_SET_POINTS_MAX = 24 };

struct program_set {
	/* The owner sets these before the first reference, and then leaves them. */
	const char *name;		      /* of the object */
	const void *(*elf)(size_t *ret_size); /* NAME__elf_bytes of its skeleton */
	const char *doing; /* for the log: "load BPF programs" */
	const struct log *log;
	struct program_set *base; /* or NULL */
	const struct attach_point *points;
	size_t n_points;
	bool points_only; /* load no other programs */
	/*
	 * Called between open and load: sets knobs and the sizes of maps, puts generated code in
	 * place, leaves out programs (bpf_program__set_autoload) and maps (bpf_map__set_autocreate)
	 * of features that are off. May be NULL.
	 */
	int (*prepare)(struct bpf_object *object, void *ctx);
	void *ctx;

	/* The programs to load, by enum direction; both NULL: all. */
	const char *names[2];
	struct filter_template *templates; /* templates of the filter: these programs are only copied */
	size_t n_templates;

	bool is_idle; /* do not attach it when it is loaded: program_set_attach() does */

	unsigned int refs;
	struct bpf_object *object; /* NULL: not loaded */
	struct bpf_link *links[PROGRAM_SET_POINTS_MAX];
	int link_fds[PROGRAM_SET_POINTS_MAX]; /* links that libbpf does not support */
};

/**
 * Load and attach the set, unless it is loaded. An error is logged, and leaves
 * nothing loaded or attached.
 *
 * @return 0, or -errno
 */
int program_set_ref(struct program_set *set);

/** Detach and unload the set with its last reference; without any, do nothing. */
void program_set_unref(struct program_set *set);

/** Attach all points that are not attached. @return 0; -errno, which is logged: nothing is attached */
int program_set_attach(struct program_set *set);

/** Detach all programs, which stay loaded. They may still run on another CPU. */
void program_set_detach_all(struct program_set *set);

/** Detach the program of that name, which stays loaded. It may still run on another CPU. */
void program_set_detach(struct program_set *set, const char *program);

/** @return a file descriptor that the set owns, or -ENOENT */
int program_set_map_fd(const struct program_set *set, const char *map);

/** @return the first @size bytes of the map, for map_munmap(); or NULL with errno set */
void *program_set_mmap(const struct program_set *set, const char *map,
		       size_t size);

/**
 * Start an iterator. Reading the descriptor runs the program for each object.
 *
 * @return a file descriptor that the caller closes, or -errno
 */
int program_set_open_iterator(const struct program_set *set, const char *program);

/** @return how often the kernel skipped the program because it was already running on that CPU */
uint64_t program_misses(const struct bpf_program *program);

/** @return memory of the set's maps in bytes, estimated, without maps of its base */
uint64_t program_set_bytes(const struct program_set *set);

/* Programs for interfaces, one per observed direction; all of them are loaded, or none. */
struct programs {
	int fds[2]; /* indexed by enum direction; -1: none */
};

/**
 * Load the programs @names of @set, to which there are no references. They and the maps that they
 * use stay loaded, while libbpf's copies are freed.
 *
 * @param names   indexed by enum direction
 * @param direction  load only the program of this direction, or both
 * @param filter  for packets whose link headers @frames describes; NULL: the programs do not call
 *                judge()
 * @return 0, or -errno, which is logged; -EINVAL: the filter does not fit these frames
 */
int programs_load(struct program_set *set, const char *const names[2],
		  enum netobs_direction direction, const struct filter *filter,
		  const struct filter_frames *frames,
		  struct programs *ret_programs);

/** @return @err; -EPERM: verifiers of old kernels refuse functions as invalid without CAP_PERFMON */
int program_error(int err);

/* Follows a logged error of loading: the missing privilege, or which program was refused; or "". */
struct program_hint {
	char text[LOG_REFUSED_MAX + 128];
};

struct program_hint program_hint(int err);

static inline bool programs_are_loaded(const struct programs *programs)
{
	return programs->fds[INGRESS] >= 0 || programs->fds[EGRESS] >= 0;
}

void programs_close(struct programs *programs);

/**
 * For `prepare`: find the object's `const volatile` variables.
 *
 * @param size  of the skeleton's struct for them
 * @return NULL: it has none, or their size differs
 */
void *program_set_knobs(const struct bpf_object *object, size_t size);

#endif
