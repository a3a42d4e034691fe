// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "container_files.h"

#include "base/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Where a runtime has its containers. */
struct place {
	const char *path;
	bool has_namespaces; /* which have the containers */
	const char *file; /* of a container, below its directory; NULL: none */
	container_facts_fn *read;
	const char *const *lists; /* of all containers, beside them; NULL: none */
};

/* The second is of containers that are removed when they end. */
static const char *const storage_lists[] = { "containers.json",
					     "volatile-containers.json", NULL };

/* Storage by its drivers; those of CRI-O have their file in both, and so have those of Podman. */
#define STORAGE(driver)                                                    \
	{ "run/containers/storage/" driver "-containers", false,           \
	  "userdata/config.json", container_facts_of_oci, storage_lists }, \
	{                                                                  \
		"var/lib/containers/storage/" driver "-containers", false, \
			"userdata/config.json", container_facts_of_oci,    \
			storage_lists                                      \
	}
#define TASKS(state)                                                         \
	{                                                                    \
		state "/io.containerd.runtime.v2.task", true, "config.json", \
			container_facts_of_oci, NULL                         \
	}

static const struct place places[] = {
	{ "var/lib/docker/containers", false, "config.v2.json",
	  container_facts_of_docker, NULL },
	TASKS("run/containerd"),
	TASKS("run/k3s/containerd"),
	STORAGE("overlay"),
	STORAGE("vfs"),
	STORAGE("btrfs"),
	STORAGE("zfs"),
};

static const char logs_path[] = "var/log/containers";

/* ---- Opening ------------------------------------------------------------------------------ */

static int open_how(int dir_fd, const char *path, uint64_t flags, uint64_t resolve)
{
	const struct open_how how = { .flags = flags | O_CLOEXEC,
				      .resolve = resolve | RESOLVE_NO_MAGICLINKS };
	const int fd = (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

static int open_dir(int root_fd, const char *path)
{
	return open_how(root_fd, path, O_RDONLY | O_DIRECTORY, RESOLVE_IN_ROOT);
}

/* Of what a directory of runtimes has: without links. */
static int open_below(int dir_fd, const char *path, uint64_t flags)
{
	return open_how(dir_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | flags,
			RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

static bool is_absent(int err)
{
	return err == -ENOENT || err == -ENOTDIR;
}

static void note_error(struct container_files *files, int err, const char *dir,
		       const char *name)
{
	if (is_absent(err) || files->error)
		return;
	files->error = err;
	snprintf(files->path, sizeof(files->path), "/%s%s%s", dir,
		 *name ? "/" : "", name);
}

static int check_file(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_uid && st.st_uid != geteuid())
		return -EPERM;
	return st.st_size > CONTAINER_FILE_MAX ? -EFBIG : 0;
}

/* @return 0, with the text in new memory; or -errno: also where it has a NUL */
static int read_text(int fd, char **ret_text)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	ssize_t n;
	int err = check_file(fd);

	if (err)
		return err;
	text = malloc(CONTAINER_FILE_MAX + 2);
	if (!text)
		return -ENOMEM;
	while ((n = read(fd, text + len, CONTAINER_FILE_MAX + 1 - len)) > 0)
		len += (size_t)n;
	if (n < 0)
		return -errno;
	text[len] = '\0';
	if (len > CONTAINER_FILE_MAX)
		return -EFBIG;
	if (strlen(text) != len)
		return -EINVAL;
	*ret_text = TAKE_PTR(text);
	return 0;
}

static bool read_file(struct container_files *files, int dir_fd, const char *dir,
		      const char *path, const char *id, container_facts_fn *read,
		      struct container_facts *ret_facts)
{
	cleanup_fd int fd = open_below(dir_fd, path, 0);
	cleanup_free char *text = NULL;
	const int err = fd < 0 ? fd : read_text(fd, &text);

	if (!err)
		return read(text, id, ret_facts);
	note_error(files, err, dir, path);
	return false;
}

int container_files_open(const char *root, struct container_files *ret_files)
{
	struct container_files files = {
		.root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC)
	};

	if (files.root_fd < 0)
		return -errno;
	*ret_files = files;
	return 0;
}

void container_files_close(struct container_files *files)
{
	close_fd(&files->root_fd);
}

/* ---- Directories -------------------------------------------------------------------------- */

/* Takes @fd over; NULL: it is none, or there is no memory. */
static DIR *open_list(int fd)
{
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

static DIR *open_copy(int dir_fd)
{
	return open_list(fcntl(dir_fd, F_DUPFD_CLOEXEC, 0));
}

static const char *next_name(DIR *dir)
{
	const struct dirent *entry = dir ? readdir(dir) : NULL;

	return entry ? entry->d_name : NULL;
}

static void close_list(DIR *dir)
{
	if (dir)
		closedir(dir);
}

/* ---- Namespaces of containerd ------------------------------------------------------------- */

/* Those that have containers are directories; the place itself, where it has no namespaces. */
typedef bool place_fn(struct container_files *files, const struct place *place,
		      int dir_fd, void *ctx);

static bool each_namespace(struct container_files *files,
			   const struct place *place, int place_fd,
			   place_fn *visit, void *ctx)
{
	DIR *dir = open_copy(place_fd);
	bool goes_on = true;
	const char *name;
	int n = 0;

	while (goes_on && n < CONTAINER_NAMESPACES_MAX &&
	       (name = next_name(dir))) {
		cleanup_fd int fd = -1;

		if (*name != '.')
			fd = open_below(place_fd, name, O_DIRECTORY);
		if (fd < 0)
			continue;
		goes_on = visit(files, place, fd, ctx);
		n++;
	}
	close_list(dir);
	return goes_on;
}

static void watch_dir(int inotify_fd, int dir_fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", dir_fd);
	inotify_add_watch(inotify_fd, path, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
}

/* Until one returns false. @inotify_fd: watches the places; -1: not */
static void each_place(struct container_files *files, int inotify_fd,
		       place_fn *visit, void *ctx)
{
	bool goes_on = true;

	for (size_t i = 0; goes_on && i < ARRAY_SIZE(places); i++) {
		const struct place *place = &places[i];
		cleanup_fd int fd = open_dir(files->root_fd, place->path);

		if (fd < 0) {
			note_error(files, fd, place->path, "");
			continue;
		}
		if (inotify_fd >= 0 && place->has_namespaces)
			watch_dir(inotify_fd, fd);
		goes_on = place->has_namespaces ?
				  each_namespace(files, place, fd, visit, ctx) :
				  visit(files, place, fd, ctx);
	}
}

/* ---- One container ------------------------------------------------------------------------ */

struct wanted {
	const char *id;
	struct container_facts *ret_facts;
	bool is_found;
};

static bool find_in_place(struct container_files *files,
			  const struct place *place, int dir_fd, void *ctx)
{
	struct wanted *wanted = ctx;
	char path[CONTAINER_ID_SIZE + 32];

	snprintf(path, sizeof(path), "%s/%s", wanted->id, place->file);
	wanted->is_found = read_file(files, dir_fd, place->path, path,
				     wanted->id, place->read, wanted->ret_facts);
	for (size_t i = 0; !wanted->is_found && place->lists && place->lists[i];
	     i++)
		wanted->is_found = read_file(files, dir_fd, place->path,
					     place->lists[i], wanted->id,
					     container_facts_of_list,
					     wanted->ret_facts);
	return !wanted->is_found;
}

/* Links there lead to the logs: their names are read, and not they. */
static bool find_log(const struct container_files *files, const char *id,
		     struct container_facts *ret_facts)
{
	DIR *dir = open_list(open_dir(files->root_fd, logs_path));
	bool is_found = false;
	const char *name;

	while (!is_found && (name = next_name(dir)))
		is_found = container_facts_of_log(name, id, ret_facts);
	close_list(dir);
	return is_found;
}

bool container_files_find(struct container_files *files, const char *id,
			  struct container_facts *ret_facts)
{
	struct wanted wanted = { .id = id, .ret_facts = ret_facts };

	each_place(files, -1, find_in_place, &wanted);
	return wanted.is_found || find_log(files, id, ret_facts);
}

/* ---- All containers ----------------------------------------------------------------------- */

struct listing {
	int inotify_fd;
	bool (*take)(const char *id, void *ctx);
	void *ctx;
};

static bool is_id(const char *name)
{
	return strspn(name, "0123456789abcdef") == CONTAINER_ID_SIZE - 1 &&
	       !name[CONTAINER_ID_SIZE - 1];
}

static bool list_place(struct container_files *files, const struct place *place,
		       int dir_fd, void *ctx)
{
	const struct listing *listing = ctx;
	DIR *dir = open_copy(dir_fd);
	bool goes_on = true;
	const char *name;

	(void)files;
	(void)place;
	/* First, so that one which comes meanwhile is in the list, or gives notice. */
	if (listing->inotify_fd >= 0)
		watch_dir(listing->inotify_fd, dir_fd);
	while (goes_on && (name = next_name(dir)))
		if (is_id(name))
			goes_on = listing->take(name, listing->ctx);
	close_list(dir);
	return goes_on;
}

void container_files_list(struct container_files *files, int inotify_fd,
			  bool (*take)(const char *id, void *ctx), void *ctx)
{
	struct listing listing = { inotify_fd, take, ctx };

	each_place(files, inotify_fd, list_place, &listing);
}
