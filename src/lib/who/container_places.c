// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "containers.h"

#include "base/json_reader.h"
#include "base/text.h"
#include "base/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- Opening ------------------------------------------------------------------------------ */

static int open_how(int dir_fd, const char *path, uint64_t flags, uint64_t resolve)
{
	const struct open_how how = { .flags = flags | O_CLOEXEC,
				      .resolve = resolve | RESOLVE_NO_MAGICLINKS };
	const int fd = (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

/* Open a directory of a runtime. @return it; -errno */
static int open_dir(const struct container_files *files, const char *path)
{
	return open_how(files->root_fd, path, O_RDONLY | O_DIRECTORY,
			RESOLVE_IN_ROOT);
}

/* Open a file or directory of a runtime's directory, without following links. @return it; -errno */
static int open_below(int dir_fd, const char *path, uint64_t flags)
{
	return open_how(dir_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | flags,
			RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

/* ---- Errors ------------------------------------------------------------------------------- */

bool container_error_equal(const struct container_error *a,
			   const struct container_error *b)
{
	return a->error == b->error &&
	       (a->error == -EACCES || !strcmp(a->path, b->path));
}

void container_errors_add(struct container_errors *errors, int error,
			  const char *path)
{
	struct container_error added = { .error = error };

	snprintf(added.path, sizeof(added.path), "%s", path);
	for (uint32_t i = 0; i < errors->n; i++)
		if (container_error_equal(&errors->list[i], &added))
			return;
	if (errors->n < CONTAINER_ERRORS_MAX)
		errors->list[errors->n++] = added;
}

/* A file that does not exist, or that its runtime is writing, is no error. */
static bool is_passing(int err)
{
	return err == -ENOENT || err == -ENOTDIR || err == -EAGAIN;
}

/* Note an error of @name in @dir, unless the file does not exist. */
static void note_error(struct container_files *files, int err, const char *dir,
		       const char *name)
{
	char path[sizeof(files->errors.list[0].path)];

	if (is_passing(err))
		return;
	snprintf(path, sizeof(path), "/%s%s%s", dir, *name ? "/" : "", name);
	container_errors_add(&files->errors, err, path);
}

/* ---- Files -------------------------------------------------------------------------------- */

static int check_file(int fd, size_t max, size_t *ret_size)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_uid && st.st_uid != geteuid())
		return -EPERM;
	if ((uint64_t)st.st_size > max)
		return -EFBIG;
	*ret_size = (size_t)st.st_size;
	return 0;
}

/* @return 0, with the text in new memory; or -errno: also where it has a NUL; -EAGAIN: it grows */
static int read_text(int fd, size_t max, char **ret_text)
{
	cleanup_free char *text = NULL;
	size_t len = 0, size = 0;
	ssize_t n;
	int err = check_file(fd, max, &size);

	if (err)
		return err;
	text = malloc(size + 2);
	if (!text)
		return -ENOMEM;
	while ((n = read(fd, text + len, size + 1 - len)) > 0)
		len += (size_t)n;
	if (n < 0)
		return -errno;
	text[len] = '\0';
	if (len > size)
		return -EAGAIN;
	if (strlen(text) != len)
		return -EINVAL;
	*ret_text = TAKE_PTR(text);
	return 0;
}

/*
 * Read a file.
 *
 * @dir   the path of @dir_fd
 * @path  below it
 * @max   bytes; larger files are errors
 * @return the text, which the caller frees; NULL: it cannot be read
 */
static char *read_file(struct container_files *files, int dir_fd,
		       const char *dir, const char *path, size_t max)
{
	cleanup_fd int fd = open_below(dir_fd, path, 0);
	char *text = NULL;
	const int err = fd < 0 ? fd : read_text(fd, max, &text);

	if (err)
		note_error(files, err, dir, path);
	return text;
}

/* ---- Runtimes ----------------------------------------------------------------------------- */

/* @return whether a directory of containerd is that of a namespace */
static bool is_namespace(const char *name)
{
	return *name != '.';
}

/* A directory of Docker with userns-remap: "UID.GID" */
static bool is_remapped(const char *name)
{
	return *name != '.' && !name[strspn(name, "0123456789.")];
}

/* A directory of podman's storage, which has one for each driver: "overlay-containers" */
static bool is_of_driver(const char *name)
{
	const char *end = strchr(name, '-');

	return end && !strcmp(end, "-containers");
}

/* The second list has containers that are removed when they end. */
static const char *const storage_lists[] = { "containers.json",
					     "volatile-containers.json", NULL };

static const struct container_place docker = {
	.file = "config.v2.json",
	.read = container_facts_of_docker,
};

static const struct container_place remapped_docker = {
	.is_dir = is_remapped,
	.below = "/containers",
	.file = "config.v2.json",
	.read = container_facts_of_docker,
};

static const struct container_place containerd = {
	.is_dir = is_namespace,
	.below = "",
	.file = "config.json",
	.read = container_facts_of_oci,
};

/* Containers of CRI-O have their file in both directories of a storage, and so have those of Podman. */
static const struct container_place storage = {
	.is_dir = is_of_driver,
	.below = "",
	.file = "userdata/config.json",
	.read = container_facts_of_oci,
	.lists = storage_lists,
};

static const char logs_path[] = "var/log/containers";

static void add_place(struct container_files *files,
		      const struct container_place *place, const char *root,
		      const char *below)
{
	struct container_place *added = &files->places[files->n_places];

	if (files->n_places == ARRAY_SIZE(files->places))
		return;
	*added = *place;
	if (snprintf(added->path, sizeof(added->path), "%s%s", root, below) >=
	    (int)sizeof(added->path))
		return;
	for (uint32_t i = 0; i < files->n_places; i++)
		if (!strcmp(files->places[i].path, added->path) &&
		    files->places[i].is_dir == added->is_dir)
			return;
	files->n_places++;
}

static void add_docker(struct container_files *files, const char *root)
{
	add_place(files, &docker, root, "/containers");
	add_place(files, &remapped_docker, root, "");
}

static void add_containerd(struct container_files *files, const char *state)
{
	add_place(files, &containerd, state, "/io.containerd.runtime.v2.task");
}

/* ---- Configurations ----------------------------------------------------------------------- */

enum {
	CONFIGURED_MAX = 512
}; /* bytes of a path, of which longer ones than those of places do not fit */

/* @return the text of a configuration, which the caller frees; NULL: there is none */
static char *read_configuration(struct container_files *files, const char *dir,
				const char *name)
{
	cleanup_fd int fd = open_dir(files, dir);

	return fd < 0 ? NULL :
			read_file(files, fd, dir, name, CONTAINER_FILE_MAX);
}

/* @return @path as it is below the root; NULL: it is not absolute, or is the root */
static const char *below_root(const char *path)
{
	const size_t len = strspn(path, "/");

	return len && path[len] ? path + len : NULL;
}

/* The directory that daemon.json(5) has, by its newer or its older name. */
static void add_configured_docker(struct container_files *files, const char *dir)
{
	cleanup_free char *text = read_configuration(files, dir, "daemon.json");
	const struct json_value all = json_parse(text ?: "");
	const struct json_value root = json_member(all, "data-root");
	char path[CONFIGURED_MAX];

	json_text(root.at ? root : json_member(all, "graph"), path, sizeof(path));
	if (below_root(path))
		add_docker(files, below_root(path));
}

/*
 * Find the text of KEY = "TEXT" in the section [storage] of storage.conf(5). Other forms of TOML are not read: a key in
 * front of its section, in quotes or with dots, and texts with escapes or in several lines.
 */
static bool find_setting(const char *text, const char *key, char *ret_value,
			 size_t size)
{
	bool is_in_section = false;

	for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
		size_t len;

		text += strspn(text, " \t\r");
		if (*text == '[')
			is_in_section = !strncmp(text, "[storage]", 9);
		if (!is_in_section || strncmp(text, key, strlen(key)) != 0)
			continue;
		text += strlen(key);
		text += strspn(text, " \t");
		if (*text != '=')
			continue;
		text += 1 + strspn(text + 1, " \t");
		len = *text == '"' ? strcspn(text + 1, "\"\\\n") : size;
		if (len >= size || text[1 + len] != '"')
			return false;
		snprintf(ret_value, size, "%.*s", (int)len, text + 1);
		return true;
	}
	return false;
}

static void add_configured_storage(struct container_files *files)
{
	static const char *const keys[] = { "runroot", "graphroot" };
	cleanup_free char *own =
		read_configuration(files, "etc/containers", "storage.conf");
	cleanup_free char *shipped =
		own ? NULL :
		      read_configuration(files, "usr/share/containers",
					 "storage.conf");
	const char *text = own ? own : shipped;
	char path[CONFIGURED_MAX];

	for (size_t i = 0; text && i < ARRAY_SIZE(keys); i++)
		if (find_setting(text, keys[i], path, sizeof(path)) &&
		    below_root(path))
			add_place(files, &storage, below_root(path), "");
}

/* ---- The root ----------------------------------------------------------------------------- */

static void add_places(struct container_files *files)
{
	add_configured_docker(files, "etc/docker");
	add_configured_docker(files, "var/snap/docker/current/config");
	add_configured_storage(files);
	add_docker(files, "var/lib/docker");
	add_docker(files, "var/snap/docker/common/var-lib-docker");
	add_containerd(files, "run/containerd");
	add_containerd(files, "run/k3s/containerd");
	add_containerd(files, "run/k0s/containerd");
	add_containerd(files, "var/snap/microk8s/common/run/containerd");
	add_place(files, &storage, "run/containers/storage", "");
	add_place(files, &storage, "var/lib/containers/storage", "");
}

int container_files_open(const char *root, struct container_files *ret_files)
{
	*ret_files = (struct container_files){
		.root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC)
	};
	if (ret_files->root_fd < 0)
		return -errno;
	add_places(ret_files);
	return 0;
}

void container_files_close(struct container_files *files)
{
	close_fd(&files->root_fd);
}

void container_places_text(const struct container_files *files, char *to,
			   size_t size)
{
	*to = '\0';
	for (uint32_t i = 0; i < files->n_places; i++)
		if (files->places[i].is_dir != is_remapped)
			text_append(to, size, "%s/%s", *to ? ", " : "",
				    files->places[i].path);
}

/* ---- Directories -------------------------------------------------------------------------- */

/* Takes ownership of @fd. NULL: it is no directory, or there is no memory. */
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

/* ---- Directories in places ---------------------------------------------------------------- */

/* Called for each directory of containers. @dir: its path, for messages */
typedef void place_fn(struct container_files *files,
		      const struct container_place *place, const char *dir,
		      int dir_fd, void *ctx);

static void each_dir(struct container_files *files,
		     const struct container_place *place, int place_fd,
		     place_fn *visit, void *ctx)
{
	DIR *list = open_copy(place_fd);
	const char *name;
	int n = 0;

	while (n < CONTAINER_NAMESPACES_MAX && (name = next_name(list))) {
		char below[NAME_MAX + 16],
			dir[sizeof(place->path) + sizeof(below)];
		cleanup_fd int fd = -1;

		if (!place->is_dir(name))
			continue;
		snprintf(below, sizeof(below), "%s%s", name, place->below);
		fd = open_below(place_fd, below, O_DIRECTORY);
		if (fd < 0)
			continue;
		snprintf(dir, sizeof(dir), "%s/%s", place->path, below);
		visit(files, place, dir, fd, ctx);
		n++;
	}
	close_list(list);
}

/* ---- Places ------------------------------------------------------------------------------- */

static void watch_dir(int inotify_fd, int dir_fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", dir_fd);
	inotify_add_watch(inotify_fd, path, CONTAINER_WATCH_EVENTS | IN_ONLYDIR);
}

/*
 * Open a directory that did not exist, and watch all directories above it. Each is watched before the next one is
 * opened in it, so a directory that is made meanwhile is either opened or reported by inotify.
 *
 * @return its descriptor; -errno
 */
static int await_dir(const struct container_files *files, int inotify_fd,
		     const char *path)
{
	int fd = open_dir(files, ".");

	for (size_t len = 0; fd >= 0 && path[len];) {
		char part[sizeof(files->places[0].path)];

		watch_dir(inotify_fd, fd);
		close(fd);
		len += path[len] == '/';
		len += strcspn(path + len, "/");
		snprintf(part, sizeof(part), "%.*s", (int)len, path);
		fd = open_dir(files, part);
	}
	return fd;
}

/* @inotify_fd: watches the places; -1: they are not watched */
static void each_place(struct container_files *files, int inotify_fd,
		       place_fn *visit, void *ctx)
{
	for (uint32_t i = 0; i < files->n_places; i++) {
		const struct container_place *place = &files->places[i];
		cleanup_fd int fd = open_dir(files, place->path);

		if (fd == -ENOENT && inotify_fd >= 0)
			fd = await_dir(files, inotify_fd, place->path);
		if (fd < 0) {
			note_error(files, fd, place->path, "");
			continue;
		}
		if (inotify_fd >= 0 && place->is_dir)
			watch_dir(inotify_fd, fd);
		if (place->is_dir)
			each_dir(files, place, fd, visit, ctx);
		else
			visit(files, place, place->path, fd, ctx);
	}
}

/* ---- Names of containers ------------------------------------------------------------------ */

struct queries {
	struct container_query *list;
	uint32_t n;
};

int container_query_compare(const void *a, const void *b)
{
	return strcmp(((const struct container_query *)a)->id,
		      ((const struct container_query *)b)->id);
}

/* NULL: the container is not wanted, or has been found. */
static struct container_query *find_query(const struct queries *queries,
					  const char *id)
{
	struct container_query key, *query;

	if (!queries->n)
		return NULL;
	snprintf(key.id, sizeof(key.id), "%s", id);
	query = bsearch(&key, queries->list, queries->n, sizeof(key),
			container_query_compare);
	return query && !query->is_found ? query : NULL;
}

static bool has_all(const struct queries *queries)
{
	for (uint32_t i = 0; i < queries->n; i++)
		if (!queries->list[i].is_found)
			return false;
	return true;
}

static void find_own(struct container_files *files,
		     const struct container_place *place, const char *dir,
		     int dir_fd, struct container_query *query)
{
	char path[CONTAINER_ID_SIZE + 32];
	cleanup_free char *text = NULL;

	snprintf(path, sizeof(path), "%s/%s", query->id, place->file);
	text = read_file(files, dir_fd, dir, path, CONTAINER_FILE_MAX);
	query->is_found = text && place->read(text, query->id, &query->facts);
}

static void take_listed(const char *id, const struct container_facts *facts,
			void *ctx)
{
	struct container_query *query = find_query(ctx, id);

	if (!query)
		return;
	query->facts = *facts;
	query->is_found = true;
}

/* A container has the name of its own file, if that has one. */
static void find_in_place(struct container_files *files,
			  const struct container_place *place, const char *dir,
			  int dir_fd, void *ctx)
{
	struct queries *queries = ctx;

	for (uint32_t i = 0; i < queries->n; i++)
		if (!queries->list[i].is_found)
			find_own(files, place, dir, dir_fd, &queries->list[i]);
	for (size_t i = 0; place->lists && place->lists[i]; i++) {
		cleanup_free char *text = NULL;

		if (has_all(queries))
			return;
		text = read_file(files, dir_fd, dir, place->lists[i],
				 CONTAINER_LIST_MAX);
		if (text)
			container_facts_each(text, take_listed, queries);
	}
}

/* The ID is in front of ".log". */
static void find_log(const struct queries *queries, const char *name)
{
	const size_t end = strlen(".log"), id_len = CONTAINER_ID_SIZE - 1;
	const size_t len = strlen(name);
	struct container_query *query;
	char id[CONTAINER_ID_SIZE];

	if (len < end + id_len)
		return;
	snprintf(id, sizeof(id), "%s", name + len - end - id_len);
	query = find_query(queries, id);
	if (query)
		query->is_found = container_facts_of_log(name, id, &query->facts);
}

/* The directory has links to logs, which are not read: their names suffice. */
static void find_logs(const struct container_files *files,
		      const struct queries *queries)
{
	DIR *dir = open_list(open_dir(files, logs_path));
	const char *name;

	while ((name = next_name(dir)))
		find_log(queries, name);
	close_list(dir);
}

void container_places_find(struct container_files *files,
			   struct container_query *list, uint32_t n)
{
	struct queries queries = { list, n };

	if (!n)
		return;
	each_place(files, -1, find_in_place, &queries);
	if (!has_all(&queries))
		find_logs(files, &queries);
}

/* ---- All containers ----------------------------------------------------------------------- */

struct listing {
	int inotify_fd;
	void (*take)(const char *id, void *ctx);
	void *ctx;
};

static bool is_id(const char *name)
{
	return strspn(name, "0123456789abcdef") == CONTAINER_ID_SIZE - 1 &&
	       !name[CONTAINER_ID_SIZE - 1];
}

static void list_place(struct container_files *files,
		       const struct container_place *place, const char *path,
		       int dir_fd, void *ctx)
{
	const struct listing *listing = ctx;
	DIR *dir = open_copy(dir_fd);
	const char *name;

	(void)files;
	(void)place;
	(void)path;
	/* Watch first: a container that comes meanwhile is either listed or reported. */
	if (listing->inotify_fd >= 0)
		watch_dir(listing->inotify_fd, dir_fd);
	while ((name = next_name(dir)))
		if (is_id(name))
			listing->take(name, listing->ctx);
	close_list(dir);
}

void container_places_list(struct container_files *files, int inotify_fd,
			   void (*take)(const char *id, void *ctx), void *ctx)
{
	struct listing listing = { inotify_fd, take, ctx };

	each_place(files, inotify_fd, list_place, &listing);
}
