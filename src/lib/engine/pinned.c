/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "pinned.h"

#include "base/io.h"
#include "base/util.h"
#include "map.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <netobs/version.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>

#define PINNED_MAGIC 0x73626f74656e3031ULL

enum {
	LOCK_TRIES = 20,
	LOCK_WAIT_MS = 50,
	COMMON_BYTES = offsetof(struct pinned_state, lanes),
};

_Static_assert(sizeof(struct cpu_state) == 3328 &&
		       sizeof(struct rule_count) == 32 &&
		       sizeof(struct flow_bucket) == 2112 &&
		       sizeof(struct overflow_page) == 1984 &&
		       sizeof(struct log_slot) == 64 &&
		       sizeof(struct tunnel_addrs) == 32 &&
		       sizeof(struct fragment_key) == 48,
	       "sizes of another layout: increase PINNED_LAYOUT");

/* ---- Files ----------------------------------------------------------------------- */

/* Uses the descriptor, since another directory may have replaced the checked one. */
static int path_of(const struct pinned *pinned, const char *folder,
		   const char *name, char path[PINNED_PATH_MAX])
{
	int len = snprintf(path, PINNED_PATH_MAX, "/proc/self/fd/%d/%s%s",
			   pinned->dir_fd, folder, name);

	return len < PINNED_PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int get_file(const struct pinned *pinned, const char *folder,
		    const char *name)
{
	char path[PINNED_PATH_MAX];
	int err = path_of(pinned, folder, name, path);
	struct stat info;

	if (err)
		return err;
	if (lstat(path, &info))
		return -errno;
	/* If others could write to the directory once, they may have pinned something. */
	return own_file_refusal(pinned->dir_fd, &info) ? -EPERM :
							 bpf_obj_get(path);
}

static int put_file(const struct pinned *pinned, const char *folder,
		    const char *name, int fd)
{
	char path[PINNED_PATH_MAX];
	int err = path_of(pinned, folder, name, path);

	if (err)
		return err;
	unlink(path);
	return bpf_obj_pin(fd, path);
}

int pinned_get_map(const struct pinned *pinned, const char *name)
{
	return get_file(pinned, "maps/", name);
}

int pinned_put_map(const struct pinned *pinned, const char *name, int fd)
{
	return put_file(pinned, "maps/", name, fd);
}

static int open_folder(const struct pinned *pinned, const char *folder)
{
	int fd = openat(pinned->dir_fd, folder,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int remove_pinned_file(int dir_fd, const char *name, int flags)
{
	return unlinkat(dir_fd, name, flags) && errno != ENOENT ? -errno : 0;
}

static int remove_files(const struct pinned *pinned, const char *folder)
{
	int err = 0, fd = open_folder(pinned, folder);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir) {
		err = fd < 0 ? fd : -errno;
		close_fd(&fd);
		return err == -ENOENT ? 0 : err;
	}
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			err = remove_pinned_file(dirfd(dir), entry->d_name, 0) ?:
				      err;
	closedir(dir);
	return err;
}

/* ---- Open and close -------------------------------------------------------------- */

static int map_value_size(int fd)
{
	struct bpf_map_info info = { 0 };
	uint32_t len = sizeof(info);
	int err = bpf_obj_get_info_by_fd(fd, &info, &len);

	return err ?: (int)info.value_size;
}

/* Map the state; if it cannot be read, pinned->state stays NULL. */
static void open_state(struct pinned *pinned)
{
	cleanup_fd int fd = get_file(pinned, "", "state");
	int size = fd < 0 ? fd : map_value_size(fd);

	if (size < (int)COMMON_BYTES)
		return;
	pinned->state_bytes = size;
	pinned->state = map_mmap(fd, 0, size);
	pinned->netns_fd = get_file(pinned, "", "namespaces");
	pinned->netifs_fd = get_file(pinned, "", "interfaces");
}

static void forget_former(struct pinned *pinned)
{
	if (pinned->former)
		map_munmap(pinned->former_cpus,
			   (size_t)pinned->former->n_cpus *
				   pinned->former->cpu_bytes);
	free(TAKE_PTR(pinned->former));
}

static void close_state(struct pinned *pinned)
{
	map_munmap(TAKE_PTR(pinned->state), pinned->state_bytes);
	close_fd(&pinned->netns_fd);
	close_fd(&pinned->netifs_fd);
}

static bool is_pinned(struct pinned *pinned, const char *path)
{
	*pinned = PINNED_NONE;
	pinned->path = strdup(path);
	pinned->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return pinned->path && pinned->dir_fd >= 0;
}

static int check_file_system(const struct pinned *pinned)
{
	struct statfs fs;

	if (fstatfs(pinned->dir_fd, &fs))
		return -errno;
	return fs.f_type == BPF_FS_MAGIC ? 0 : -ENOTSUP;
}

/*
 * Lock the folder of links, which no other user can open.
 * @return 0; -EBUSY: another process has the lock
 */
static int try_lock(struct pinned *pinned)
{
	cleanup_fd int fd = open_folder(pinned, "links");
	struct stat locked, there;

	if (fd < 0)
		return fd;
	if (flock(fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	if (fstat(fd, &locked) || fstatat(pinned->dir_fd, "links", &there, 0))
		return -errno;
	if (locked.st_ino != there.st_ino) /* removed meanwhile, and made again */
		return -EBUSY;
	pinned->lock_fd = TAKE_FD(fd);
	return 0;
}

/* Retry: the previous process may be about to end, and netobsctl check locks the set for a moment. */
static int lock_directory(struct pinned *pinned)
{
	const struct timespec wait = { .tv_nsec = LOCK_WAIT_MS * NSEC_PER_MSEC };

	for (int i = 0; i < LOCK_TRIES; i++) {
		int err = try_lock(pinned);

		if (err != -EBUSY)
			return err;
		nanosleep(&wait, NULL);
	}
	open_state(pinned);
	log_error(pinned->log, "persist: %s: process %u uses it", pinned->path,
		  pinned->state ? pinned->state->owner : 0);
	return -EBUSY;
}

static bool has_files(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	bool found = false;

	while (dir && !found && (entry = readdir(dir)))
		found = entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return found;
}

static int make_folders(const struct pinned *pinned)
{
	if (mkdirat(pinned->dir_fd, "maps", 0700) && errno != EEXIST)
		return -errno;
	if (mkdirat(pinned->dir_fd, "links", 0700) && errno != EEXIST)
		return -errno;
	/* The folder of links is locked. Only its owner can change its mode. */
	if (fchmodat(pinned->dir_fd, "links", 0700, 0) && errno != EPERM &&
	    errno != EROFS)
		return -errno;
	/* On a file system that is read-only, both may be there. */
	return faccessat(pinned->dir_fd, "links", W_OK, AT_EACCESS) ? -errno : 0;
}

/* @return whether users other than root and ours can replace files of the directory */
static bool is_open_to_others(const struct stat *st)
{
	return (st->st_uid && st->st_uid != geteuid()) ||
	       st->st_mode & (S_IWGRP | S_IWOTH);
}

/* Write the owner and mode of @what ("it", or a folder in it) to @why, and what to do about it. */
static int refuse(char why[PINNED_WHY_MAX], const char *what,
		  const struct stat *st)
{
	const bool is_of_other = st->st_uid && st->st_uid != geteuid();

	snprintf(why, PINNED_WHY_MAX, "%s belongs to user %u, mode %04o: %s",
		 what, st->st_uid, st->st_mode & 07777,
		 is_of_other ? "run as that user, or with another directory" :
			       "others can change what is in it");
	return -EPERM;
}

/* The directory above may be shared if it is sticky, as /tmp is. */
static int check_above(const struct pinned *pinned, char why[PINNED_WHY_MAX])
{
	struct stat st;

	if (fstatat(pinned->dir_fd, "..", &st, 0))
		return -errno;
	if (st.st_mode & S_ISVTX)
		st.st_mode &= ~(mode_t)(S_IWGRP | S_IWOTH);
	return is_open_to_others(&st) ? refuse(why, "the directory above", &st) :
					0;
}

static int check_folder(const struct pinned *pinned, const char *folder,
			const char *name, char why[PINNED_WHY_MAX])
{
	cleanup_fd int fd = open_folder(pinned, folder);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st))
		return -errno;
	return is_open_to_others(&st) ? refuse(why, name, &st) : 0;
}

static int open_links(struct pinned *pinned)
{
	int fd = open_folder(pinned, "links");

	if (fd < 0)
		return fd;
	pinned->had_links = has_files(fd);
	pinned->links = shared_fd_new(fd);
	return pinned->links ? 0 : -ENOMEM;
}

/* @return @err, or why the links cannot be opened; then the set is closed */
static int end_opening(struct pinned *pinned, int err)
{
	err = err ?: open_links(pinned);
	if (err)
		pinned_close(pinned);
	else
		open_state(pinned);
	return err;
}

int pinned_open(struct pinned *pinned, const char *path, const struct log *log,
		char ret_why[PINNED_WHY_MAX])
{
	int err = 0;

	if (mkdir(path, 0700) && errno != EEXIST) {
		*pinned = PINNED_NONE;
		return -errno;
	}
	if (!is_pinned(pinned, path))
		err = -errno;
	pinned->log = log;
	err = err ?: check_file_system(pinned);
	/* The files decide what this process maps, attaches and removes. */
	err = err ?: check_above(pinned, ret_why);
	err = err ?: check_folder(pinned, ".", "it", ret_why);
	err = err ?: make_folders(pinned);
	err = err ?: check_folder(pinned, "maps", "its part maps", ret_why);
	err = err ?: check_folder(pinned, "links", "its part links", ret_why);
	err = err ?: lock_directory(pinned);
	return end_opening(pinned, err);
}

int pinned_look(struct pinned *pinned, const char *path, bool *ret_is_locked)
{
	int err = is_pinned(pinned, path) ? check_file_system(pinned) : -errno;

	err = err ?: try_lock(pinned);
	*ret_is_locked = err == -EBUSY;
	return end_opening(pinned, *ret_is_locked ? 0 : err);
}

void pinned_close(struct pinned *pinned)
{
	forget_former(pinned);
	close_state(pinned);
	shared_fd_unref(pinned->links);
	free(pinned->path);
	close_fd(&pinned->lock_fd);
	close_fd(&pinned->dir_fd);
	*pinned = PINNED_NONE;
}

bool pinned_is_readable(const struct pinned *pinned)
{
	return pinned->state && pinned->state->magic == PINNED_MAGIC &&
	       pinned->state->layout == PINNED_LAYOUT &&
	       pinned->state_bytes == sizeof(*pinned->state);
}

/* ---- Maps ------------------------------------------------------------------------ */

static bool is_alike(const struct bpf_map *map, int fd)
{
	struct bpf_map_info info = { 0 };
	uint32_t len = sizeof(info);

	return !bpf_obj_get_info_by_fd(fd, &info, &len) &&
	       info.type == bpf_map__type(map) &&
	       info.key_size == bpf_map__key_size(map) &&
	       info.value_size == bpf_map__value_size(map) &&
	       info.max_entries == bpf_map__max_entries(map);
}

/* Each process measures connections anew: the maps of their table, whose size may change, are not kept. */
static bool outlives_process(const struct bpf_map *map)
{
	const char *name = bpf_map__name(map);

	return !bpf_map__is_internal(map) && strncmp(name, "conn", 4) != 0 &&
	       strncmp(name, "alert", 5) != 0;
}

int pinned_reuse_maps(const struct pinned *pinned, const struct bpf_object *object)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object) {
		cleanup_fd int fd = -1;
		int err;

		if (!outlives_process(map))
			continue;
		fd = pinned_get_map(pinned, bpf_map__name(map));
		if (fd == -ENOENT || (fd >= 0 && !is_alike(map, fd)))
			return -ESTALE;
		err = fd < 0 ? fd : bpf_map__reuse_fd(map, fd);
		if (err)
			return err;
	}
	return 0;
}

int pinned_put_maps(const struct pinned *pinned, const struct bpf_object *object)
{
	struct bpf_map *map;
	int err = 0;

	bpf_object__for_each_map(map, object)
		if (!err && outlives_process(map))
			err = pinned_put_map(pinned, bpf_map__name(map),
					     bpf_map__fd(map));
	return err;
}

static int put_list(const struct pinned *pinned, const char *name,
		    uint32_t key_size, uint32_t value_size, uint32_t max,
		    int *ret_fd)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_NO_PREALLOC);
	int fd = bpf_map_create(BPF_MAP_TYPE_HASH, "netobs_list", key_size,
				value_size, max, &opts);

	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return put_file(pinned, "", name, fd);
}

int pinned_publish(struct pinned *pinned, const struct pinned_state *state)
{
	cleanup_fd int fd = map_make_array("netobs_state", sizeof(*state), 1,
					   BPF_F_MMAPABLE);
	int err;

	if (fd < 0)
		return fd;
	close_state(pinned);
	pinned->state_bytes = sizeof(*state);
	pinned->state = map_mmap(fd, 0, sizeof(*state));
	if (!pinned->state)
		return -errno;
	*pinned->state = *state;
	pinned->state->magic = PINNED_MAGIC;
	pinned->state->layout = PINNED_LAYOUT;
	pinned->state->owner = getpid();
	snprintf(pinned->state->version, sizeof(pinned->state->version), "%s",
		 netobs_version());
	pinned->state->cpu_bytes = sizeof(struct cpu_state);
	for (uint32_t g = 0; g < GENERATIONS; g++)
		pinned->state->seen_at[g] = offsetof(struct cpu_state, counters) +
					    g * sizeof(struct counters) +
					    offsetof(struct counters, seen);
	err = put_list(pinned, "namespaces", sizeof(uint32_t),
		       sizeof(struct pinned_netns), PINNED_NETNS_MAX,
		       &pinned->netns_fd);
	if (!err)
		err = put_list(pinned, "interfaces",
			       sizeof(struct pinned_netif_key),
			       sizeof(struct pinned_netif), PINNED_NETIFS_MAX,
			       &pinned->netifs_fd);
	return err ?: put_file(pinned, "", "state", fd);
}

static int remove_maps(struct pinned *pinned)
{
	int err = remove_pinned_file(pinned->dir_fd, "state", 0);

	if (!err)
		err = remove_pinned_file(pinned->dir_fd, "interfaces", 0);
	return err ?: remove_files(pinned, "maps");
}

/* Keep the counters mapped: programs count there until they are replaced. */
static void keep_former(struct pinned *pinned)
{
	struct pinned_state *state = pinned->state;
	cleanup_fd int fd = pinned_get_map(pinned, "cpu_states");

	if (!state || state->magic != PINNED_MAGIC || fd < 0)
		return;
	if (map_value_size(fd) != (int)state->cpu_bytes ||
	    state->seen_at[0] + sizeof(struct count) > state->cpu_bytes ||
	    state->seen_at[1] + sizeof(struct count) > state->cpu_bytes)
		return;
	pinned->former = calloc(1, sizeof(*pinned->former));
	if (!pinned->former)
		return;
	memcpy(pinned->former, state, COMMON_BYTES);
	pinned->former_cpus =
		map_mmap(fd, 0, (size_t)state->n_cpus * state->cpu_bytes);
}

void pinned_discard(struct pinned *pinned)
{
	keep_former(pinned);
	remove_maps(pinned);
	map_munmap(TAKE_PTR(pinned->state), pinned->state_bytes);
	close_fd(&pinned->netifs_fd);
}

int pinned_remove(struct pinned *pinned)
{
	int err = remove_maps(pinned);

	err = err ?: remove_pinned_file(pinned->dir_fd, "namespaces", 0);
	close_state(pinned);
	err = err ?: remove_pinned_file(pinned->dir_fd, "maps", AT_REMOVEDIR);
	return err ?: remove_pinned_file(pinned->dir_fd, "links", AT_REMOVEDIR);
}

static struct count count_seen(const struct pinned_state *state, const void *cpus)
{
	struct count sum = { 0 };

	for (uint32_t i = 0; i < state->n_cpus * GENERATIONS; i++) {
		const char *cpu = (const char *)cpus +
				  (size_t)(i / GENERATIONS) * state->cpu_bytes;
		const struct count *seen =
			(const void *)(cpu + state->seen_at[i % GENERATIONS]);

		counters_add(&sum, seen, sizeof(sum));
	}
	counters_subtract(&sum, &state->seen_drained, sizeof(sum));
	return sum;
}

struct count pinned_count_former(const struct pinned *pinned)
{
	return pinned->former_cpus ?
		       count_seen(pinned->former, pinned->former_cpus) :
		       (struct count){ 0 };
}

struct count pinned_count_waiting(const struct pinned *pinned)
{
	struct pinned copy = PINNED_NONE;
	struct count count;

	copy.state = pinned->state;
	copy.path = pinned->path;
	copy.dir_fd = pinned->dir_fd;
	keep_former(&copy);
	count = pinned_count_former(&copy);
	forget_former(&copy);
	return count;
}

bool pinned_get_netns(const struct pinned *pinned, __u32 index,
		      struct pinned_netns *ret_netns)
{
	return pinned->netns_fd >= 0 &&
	       !bpf_map_lookup_elem(pinned->netns_fd, &index, ret_netns);
}
