// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "program_set.h"

#include "base/privilege.h"
#include "base/util.h"
#include "map.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

enum {
	HASH_OVERHEAD = 64, /* bytes, of an entry, about */
	/* Constants of Linux 6.17's include/uapi/linux/bpf.h, for links of control groups. */
	FLAG_BEFORE = 1 << 3,
	FLAG_PREORDER = 1 << 6,
};

/* BPF_LINK_CREATE's part of union bpf_attr. */
struct any_link {
	uint32_t prog_fd;
	uint32_t target_fd;
	uint32_t attach_type;
	uint32_t flags;
};

/* @return negative: the map was not created. libbpf 1.4 and newer have a descriptor for it even so. */
static int created_fd(const struct bpf_map *map)
{
	return bpf_map__autocreate(map) ? bpf_map__fd(map) : -ENOENT;
}

/* @return the base's map of that name; NULL: the set has its own */
static const struct bpf_map *shared_map(const struct program_set *set,
					const struct bpf_map *map)
{
	const struct bpf_map *shared;

	/* The maps of knobs are not shared. */
	if (!set->base || bpf_map__is_internal(map))
		return NULL;
	shared = bpf_object__find_map_by_name(set->base->object,
					      bpf_map__name(map));
	return shared && created_fd(shared) >= 0 ? shared : NULL;
}

static int share_maps(const struct program_set *set)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, set->object) {
		const struct bpf_map *shared = shared_map(set, map);
		int err = shared ? bpf_map__reuse_fd(map, bpf_map__fd(shared)) :
				   0;

		if (err)
			return err;
	}
	return 0;
}

static int check_points(const struct program_set *set)
{
	for (size_t i = 0; i < set->n_points; i++)
		if (!bpf_object__find_program_by_name(set->object,
						      set->points[i].program))
			return -ENOENT;
	return 0;
}

static bool is_named(const struct program_set *set,
		     const struct bpf_program *program)
{
	for (int d = INGRESS; d <= EGRESS; d++)
		if (set->names[d] &&
		    !strcmp(bpf_program__name(program), set->names[d]))
			return true;
	return false;
}

static bool has_point(const struct program_set *set,
		      const struct bpf_program *program)
{
	for (size_t i = 0; i < set->n_points; i++)
		if (!strcmp(bpf_program__name(program), set->points[i].program))
			return true;
	return false;
}

static void leave_out_others(const struct program_set *set)
{
	struct bpf_program *program;

	if (!set->names[INGRESS] && !set->names[EGRESS] && !set->points_only)
		return;
	bpf_object__for_each_program(program, set->object)
		bpf_program__set_autoload(
			program, set->points_only ? has_point(set, program) :
						    is_named(set, program));
}

static int init_templates(const struct program_set *set)
{
	int err = 0;

	for (size_t i = 0; !err && i < set->n_templates; i++)
		if (set->templates[i].name)
			err = filter_template_init(&set->templates[i],
						   set->object);
	return err;
}

int program_error(int err)
{
	return err == -EINVAL && privilege_missing(-EPERM, 1ULL << CAP_PERFMON) ?
		       -EPERM :
		       err;
}

struct program_hint program_hint(int err)
{
	const struct privilege_hint privileges =
		privilege_hint(err, PRIVILEGE_PROGRAMS);
	const char *refusal = log_refused_program();
	struct program_hint hint = { "" };

	if (*privileges.text || !*refusal)
		snprintf(hint.text, sizeof(hint.text), "%s", privileges.text);
	else
		snprintf(hint.text, sizeof(hint.text),
			 ": the kernel refused %s (compiled by clang " NETOBS_BPF_CLANG_VERSION
			 "; 'netobsctl check -v' prints the verifier's log)",
			 refusal);
	return hint;
}

static int load_set(struct program_set *set)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = set->name);
	size_t size;
	const void *elf = set->elf(&size);
	int err;

	set->object = bpf_object__open_mem(elf, size, &opts);
	if (!set->object) /* libelf refuses an object of ours only for want of memory */
		return errno == LIBBPF_ERRNO__LIBELF ? -ENOMEM : -errno;
	err = share_maps(set);
	err = err ?: check_points(set);
	if (!err && set->prepare)
		err = set->prepare(set->object, set->ctx);
	leave_out_others(set);
	err = err ?: init_templates(set);
	return err ?: program_error(bpf_object__load(set->object));
}

/*
 * Attach a program that runs first in its group, and before programs of groups below, which usually
 * run first. libbpf before 1.6 does not support it.
 */
static int attach_cgroup_first(const struct bpf_program *program, int cgroup_fd)
{
	const struct any_link attr = {
		.prog_fd = (uint32_t)bpf_program__fd(program),
		.target_fd = (uint32_t)cgroup_fd,
		.attach_type = bpf_program__expected_attach_type(program),
		.flags = FLAG_PREORDER | FLAG_BEFORE,
	};
	int fd = (int)syscall(__NR_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : fd;
}

static struct bpf_link *attach_iterator(const struct program_set *set,
					const struct bpf_program *program,
					const char *map)
{
	union bpf_iter_link_info info = { 0 };
	LIBBPF_OPTS(bpf_iter_attach_opts, opts);

	if (map) {
		info.map.map_fd = program_set_map_fd(set, map);
		opts.link_info = &info;
		opts.link_info_len = sizeof(info);
	}
	return bpf_program__attach_iter(program, &opts);
}

static int attach_point(struct program_set *set, size_t i)
{
	const struct attach_point *point = &set->points[i];
	const struct bpf_program *program =
		bpf_object__find_program_by_name(set->object, point->program);

	switch (point->kind) {
	case ATTACH_CGROUP:
		set->links[i] =
			bpf_program__attach_cgroup(program, point->cgroup_fd);
		break;
	case ATTACH_CGROUP_FIRST:
		set->link_fds[i] = attach_cgroup_first(program, point->cgroup_fd);
		return set->link_fds[i] < 0 ? set->link_fds[i] : 0;
	case ATTACH_ITERATOR:
		set->links[i] = attach_iterator(set, program, point->map);
		break;
	case ATTACH_SECTION:
		set->links[i] = bpf_program__attach(program);
	}
	return set->links[i] ? 0 : -errno;
}

static bool is_attached(const struct program_set *set, size_t i)
{
	return set->links[i] || set->link_fds[i] >= 0;
}

static int attach_points(struct program_set *set)
{
	for (size_t i = 0; i < set->n_points; i++) {
		int err = is_attached(set, i) ? 0 : attach_point(set, i);

		if (!err)
			continue;
		log_error(set->log, "cannot attach %s: %s",
			  set->points[i].program, strerror(-err));
		return err;
	}
	return 0;
}

static void detach_point(struct program_set *set, size_t i)
{
	bpf_link__destroy(TAKE_PTR(set->links[i]));
	close_fd(&set->link_fds[i]);
}

void program_set_detach_all(struct program_set *set)
{
	for (size_t i = set->n_points; i--;)
		detach_point(set, i);
}

int program_set_attach(struct program_set *set)
{
	int err;

	log_borrow_libbpf(set->log);
	err = attach_points(set);
	log_return_libbpf();
	if (err)
		program_set_detach_all(set);
	return err;
}

static void unload_set(struct program_set *set)
{
	program_set_detach_all(set);
	bpf_object__close(TAKE_PTR(set->object));
}

static int load_and_attach(struct program_set *set)
{
	int err = load_set(set);

	if (!err)
		return set->is_idle ? 0 : attach_points(set);
	log_error(set->log, "cannot %s: %s%s", set->doing, strerror(-err),
		  program_hint(err).text);
	return err;
}

int program_set_ref(struct program_set *set)
{
	int err;

	assert(set->n_points <= PROGRAM_SET_POINTS_MAX);
	if (__atomic_load_n(&set->refs, __ATOMIC_RELAXED)) {
		__atomic_add_fetch(&set->refs, 1, __ATOMIC_RELAXED);
		return 0;
	}
	err = set->base ? program_set_ref(set->base) : 0;
	if (err)
		return err;
	memset(set->link_fds, -1, sizeof(set->link_fds));
	log_borrow_libbpf(set->log);
	err = load_and_attach(set);
	log_return_libbpf();
	set->refs = 1;
	if (err)
		program_set_unref(set);
	return err;
}

void program_set_unref(struct program_set *set)
{
	if (!__atomic_load_n(&set->refs, __ATOMIC_RELAXED) ||
	    __atomic_sub_fetch(&set->refs, 1, __ATOMIC_ACQ_REL))
		return;
	unload_set(set);
	if (set->base)
		program_set_unref(set->base);
}

void program_set_detach(struct program_set *set, const char *program)
{
	for (size_t i = 0; i < set->n_points; i++)
		if (!strcmp(set->points[i].program, program))
			detach_point(set, i);
}

int program_set_map_fd(const struct program_set *set, const char *map)
{
	const struct bpf_map *found =
		set->object ? bpf_object__find_map_by_name(set->object, map) :
			      NULL;

	return found ? created_fd(found) : -ENOENT;
}

void *program_set_mmap(const struct program_set *set, const char *map, size_t size)
{
	int fd = program_set_map_fd(set, map);

	if (fd >= 0)
		return map_mmap(fd, 0, size);
	errno = -fd;
	return NULL;
}

int program_set_open_iterator(const struct program_set *set, const char *program)
{
	for (size_t i = 0; i < set->n_points; i++)
		if (set->points[i].kind == ATTACH_ITERATOR &&
		    !strcmp(set->points[i].program, program))
			return bpf_iter_create(bpf_link__fd(set->links[i]));
	return -ENOENT;
}

/* @return a descriptor of the program, or -errno */
static int take_program(const struct program_set *set, const char *name)
{
	const struct bpf_program *program =
		bpf_object__find_program_by_name(set->object, name);
	int fd = fcntl(bpf_program__fd(program), F_DUPFD_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

/* Take the loaded programs, or with a filter copies of them that contain it. */
static int take_programs(const struct program_set *set,
			 const struct filter *filter,
			 const struct filter_frames *frames,
			 struct programs *ret_programs)
{
	struct programs programs = { { -1, -1 } };

	for (int d = INGRESS; d <= EGRESS; d++) {
		int fd;

		if (!set->names[d])
			continue;
		fd = filter ? filter_load(filter, &set->templates[d], frames,
					  set->log) :
			      take_program(set, set->names[d]);
		if (fd < 0) {
			programs_close(&programs);
			return fd;
		}
		programs.fds[d] = fd;
	}
	*ret_programs = programs;
	return 0;
}

int programs_load(struct program_set *set, const char *const names[2],
		  enum netobs_direction direction, const struct filter *filter,
		  const struct filter_frames *frames,
		  struct programs *ret_programs)
{
	struct filter_template templates[2] = { 0 };
	int err =
		!filter ?
			0 :
			filter_check(filter, frames->link,
				     frames->link == LINK_ETHERNET ?
					     "on links with an Ethernet header" :
					     "on links without Ethernet header",
				     set->log);

	for (int d = INGRESS; d <= EGRESS; d++)
		if (direction == NETOBS_BOTH ||
		    direction == direction_of_index(d))
			set->names[d] = templates[d].name = names[d];
	if (filter) {
		set->templates = templates;
		set->n_templates = ARRAY_SIZE(templates);
	}
	err = err ?: program_set_ref(set);
	if (err)
		return err;
	err = program_error(take_programs(set, filter, frames, ret_programs));
	program_set_unref(set);
	set->n_templates = 0;
	if (err && !(filter && err == -E2BIG)) /* which has been logged */
		log_error(set->log, "cannot load BPF programs%s: %s%s",
			  filter && !privilege_missing(err, PRIVILEGE_PROGRAMS) ?
				  " with this filter or these rules" :
				  "",
			  strerror(-err), program_hint(err).text);
	return err;
}

void programs_close(struct programs *programs)
{
	close_fd(&programs->fds[INGRESS]);
	close_fd(&programs->fds[EGRESS]);
}

static uint64_t map_bytes(const struct bpf_map *map)
{
	uint64_t size = bpf_map__value_size(map);

	if (bpf_map__type(map) == BPF_MAP_TYPE_LRU_HASH)
		size += bpf_map__key_size(map) + HASH_OVERHEAD;
	if (bpf_map__type(map) == BPF_MAP_TYPE_RINGBUF)
		size = 1;
	return size * bpf_map__max_entries(map);
}

uint64_t program_misses(const struct bpf_program *program)
{
	struct bpf_prog_info info = { 0 };
	uint32_t size = sizeof(info);
	int fd = bpf_program__fd(program);

	return fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &size) ?
		       info.recursion_misses :
		       0;
}

uint64_t program_set_bytes(const struct program_set *set)
{
	const struct bpf_map *map;
	uint64_t sum = 0;

	if (!set->object)
		return 0;
	bpf_object__for_each_map(map, set->object)
		if (created_fd(map) >= 0 && !shared_map(set, map))
			sum += map_bytes(map);
	return sum;
}

void *program_set_knobs(const struct bpf_object *object, size_t size)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, ".rodata");
	size_t real = 0;
	/* libbpf 1.1 has it const, though it is there to be set. */
	void *knobs = map ? (void *)bpf_map__initial_value(map, &real) : NULL;

	/* The struct may end with padding, the section does not. */
	return real <= size && size < real + sizeof(uint64_t) ? knobs : NULL;
}
