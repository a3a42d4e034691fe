// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "rotate_part.h"

#include "base/util.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- Names ----------------------------------------------------------------------- */

/* Each 0 stands for a digit. */
static const char stamp_form[] = "00000000T000000Z";
enum { STAMP = sizeof(stamp_form) - 1, LONGEST_TAIL = 32 };

static int find_dir(const char *path, int len, char *ret_dir)
{
	char cwd[PATH_MAX] = "";
	int n;

	if (*path != '/' && !getcwd(cwd, sizeof(cwd)))
		return -errno;
	n = snprintf(ret_dir, PATH_MAX, "%s%s%.*s", cwd,
		     *path == '/' ? "" : "/", len, path);
	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int rotate_names_init(struct rotate_names *names, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');
	size_t len = strlen(name);

	if (!dot || dot == name)
		dot = name + len;
	if (!len || !strcmp(name, ".") || !strcmp(name, ".."))
		return -EISDIR;
	if (len + STAMP + LONGEST_TAIL > NAME_MAX)
		return -ENAMETOOLONG;
	snprintf(names->stem, sizeof(names->stem), "%.*s", (int)(dot - name),
		 name);
	snprintf(names->extension, sizeof(names->extension), "%s", dot);
	snprintf(names->part, sizeof(names->part), "%.*s" ROTATE_PART,
		 NAME_MAX - LONGEST_TAIL, name);
	/* With its slash: of /flows.json, that is the directory. */
	return find_dir(path, (int)(name - path), names->dir);
}

void rotate_names_make(const struct rotate_names *names, time_t start,
		       const char *suffix, rotate_name ret_name)
{
	struct tm tm;
	char *to;

	gmtime_r(&start, &tm);
	/* rotate_names_init() saw to it that there is room. */
	to = stpcpy(ret_name, names->stem);
	to += strftime(to, STAMP + 2, "-%Y%m%dT%H%M%SZ", &tm);
	stpcpy(stpcpy(to, names->extension), suffix);
}

/* What follows the stamp; NULL: it has none. */
static const char *behind_stamp(const struct rotate_names *names, const char *name)
{
	size_t len = strlen(names->stem);

	if (strncmp(name, names->stem, len) || name[len] != '-')
		return NULL;
	name += len + 1;
	for (int i = 0; i < STAMP; i++) {
		if (stamp_form[i] == '0' ? !isdigit((unsigned char)name[i]) :
					   name[i] != stamp_form[i])
			return NULL;
	}
	return name + STAMP;
}

static const char *behind_number(const char *at)
{
	size_t digits;

	if (*at != '_')
		return at;
	digits = strspn(at + 1, "0123456789");
	return digits ? at + 1 + digits : at;
}

void rotate_names_number(const struct rotate_names *names, const char *name,
			 unsigned int number, rotate_name ret_name)
{
	const char *at = behind_stamp(names, name);
	const char *rest = behind_number(at);
	char text[16] = "";

	if (number)
		snprintf(text, sizeof(text), "_%03u", number);
	snprintf(ret_name, sizeof(rotate_name), "%.*s%s%.180s",
		 (int)(at - name), name, text, rest);
}

bool rotate_names_match(const struct rotate_names *names, const char *name,
			const char *tail)
{
	const char *at = behind_stamp(names, name);
	size_t len = strlen(names->extension);

	if (at)
		at = behind_number(at);
	if (!at || strncmp(at, names->extension, len))
		return false;
	at += len;
	if (!strncmp(at, ".gz", 3))
		at += 3;
	else if (!strncmp(at, ".zst", 4))
		at += 4;
	return !strcmp(at, tail);
}

/* ---- The part --------------------------------------------------------------- */

enum { NUMBERS = 100000 };

static int open_dir(const struct rotate_names *names)
{
	int fd = open(names->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int rotate_move(int dir_fd, const char *from, const char *to)
{
	if (!syscall(SYS_renameat2, dir_fd, from, dir_fd, to, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	/* Not every file system can. */
	if (!faccessat(dir_fd, to, F_OK, AT_SYMLINK_NOFOLLOW))
		return -EEXIST;
	return renameat(dir_fd, from, dir_fd, to) ? -errno : 0;
}

/* Not to be taken for another's: neither by its name nor by what it becomes. */
static int try_name(int dir_fd, const char *part, const char *final)
{
	rotate_name waiting;

	if (!faccessat(dir_fd, final, F_OK, AT_SYMLINK_NOFOLLOW))
		return -EEXIST;
	snprintf(waiting, sizeof(waiting), "%.*s" ROTATE_PART,
		 (int)(sizeof(waiting) - sizeof(ROTATE_PART)), final);
	return rotate_move(dir_fd, part, waiting);
}

int rotate_part_rename(const struct rotate_names *names, time_t start,
		       const char *suffix, struct rotate_last *last,
		       rotate_name ret_name)
{
	cleanup_fd int dir_fd = open_dir(names);
	unsigned int n = last->start == start ? last->number + 1 : 0;
	rotate_name first, name;
	int err = -EEXIST;

	if (dir_fd < 0)
		return dir_fd;
	rotate_names_make(names, start, suffix, first);
	for (; err == -EEXIST && n < NUMBERS; n++) {
		rotate_names_number(names, first, n, name);
		err = try_name(dir_fd, names->part, name);
	}
	if (err)
		return err;
	*last = (struct rotate_last){ start, n - 1 };
	memcpy(ret_name, name, sizeof(rotate_name));
	return 0;
}

/* When it was made, where the file system knows; else when it was written last. */
static time_t start_of(int fd, const struct stat *info)
{
	time_t start;

	return rotate_birth_time(fd, &start) ? info->st_mtime : start;
}

/* -EAGAIN: it is out of the way, try again. */
static int take_over(int fd, const struct rotate_names *names)
{
	struct rotate_last none = { .start = -1 };
	struct stat info;
	rotate_name name;
	int err;

	if (flock(fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	if (fstat(fd, &info))
		return -errno;
	if (!S_ISREG(info.st_mode))
		return -EEXIST;
	if (!info.st_size)
		return 0;
	err = rotate_part_rename(names, start_of(fd, &info), rotate_suffix(fd),
				 &none, name);
	return err ?: -EAGAIN;
}

static int try_open(const struct rotate_names *names, mode_t mode, int *ret_fd)
{
	cleanup_fd int dir_fd = open_dir(names);
	cleanup_fd int fd = -1;
	int err;

	if (dir_fd < 0)
		return dir_fd;
	fd = openat(dir_fd, names->part,
		    O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK |
			    O_NOCTTY | O_CLOEXEC,
		    mode);
	if (fd < 0)
		return -errno;
	err = take_over(fd, names);
	if (!err)
		*ret_fd = TAKE_FD(fd);
	return err;
}

int rotate_part_open(const struct rotate_names *names, mode_t mode, int *ret_fd)
{
	int err = try_open(names, mode, ret_fd);

	return err == -EAGAIN ? try_open(names, mode, ret_fd) : err;
}

static bool is_part_in(int dir_fd, int fd, const struct rotate_names *names)
{
	struct stat own, found;

	return !fstat(fd, &own) &&
	       !fstatat(dir_fd, names->part, &found, AT_SYMLINK_NOFOLLOW) &&
	       found.st_dev == own.st_dev && found.st_ino == own.st_ino;
}

bool rotate_part_is_there(int fd, const struct rotate_names *names)
{
	cleanup_fd int dir_fd = open_dir(names);

	return dir_fd >= 0 && is_part_in(dir_fd, fd, names);
}

void rotate_part_remove(int fd, const struct rotate_names *names)
{
	cleanup_fd int dir_fd = open_dir(names);

	if (dir_fd >= 0 && is_part_in(dir_fd, fd, names))
		unlinkat(dir_fd, names->part, 0);
}
