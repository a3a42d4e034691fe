/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "lib_disk.h"

#include "lib_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

/* What the linker makes of the calls: ld(1), --wrap. */
int __real_openat(int dir_fd, const char *name, int flags, ...);
ssize_t __real_write(int fd, const void *bytes, size_t len);
ssize_t __real_pwrite(int fd, const void *bytes, size_t len, off_t offset);
ssize_t __real_pread(int fd, void *bytes, size_t len, off_t offset);
int __real_ftruncate(int fd, off_t size);
int __real_renameat(int from_fd, const char *from, int to_fd, const char *to);
int __real_unlinkat(int dir_fd, const char *name, int flags);
int __wrap_openat(int dir_fd, const char *name, int flags, ...);
ssize_t __wrap_write(int fd, const void *bytes, size_t len);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t len, off_t offset);
ssize_t __wrap_pread(int fd, void *bytes, size_t len, off_t offset);
int __wrap_ftruncate(int fd, off_t size);
int __wrap_fdatasync(int fd);
int __wrap_fsync(int fd);
int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to);
int __wrap_unlinkat(int dir_fd, const char *name, int flags);

enum { FILES_MAX = 4096 };

/* Tests that use this have one thread that does. */
static struct disk_fault fault;
static bool is_armed;
static unsigned int calls, failures;
static struct disk_log *recording;
static ino_t inodes[FILES_MAX]; /* of the files in the recording */

void disk_fail(const struct disk_fault *what)
{
	fault = *what;
	is_armed = true;
	calls = failures = 0;
}

void disk_heal(void)
{
	is_armed = false;
}

unsigned int disk_failures(void)
{
	return failures;
}

static bool must_fail(enum disk_call call)
{
	unsigned int nth;

	if (!is_armed || call != fault.call)
		return false;
	nth = calls++;
	if (nth < fault.nth || nth - fault.nth >= fault.n)
		return false;
	failures++;
	return true;
}

static int refuse(void)
{
	errno = fault.err;
	return -1;
}

/* ---- Recording ------------------------------------------------------------------- */

void disk_record(struct disk_log *log)
{
	recording = log;
}

void disk_log_free(struct disk_log *log)
{
	for (size_t i = 0; i < log->n; i++)
		free(log->ops[i].bytes);
	free(log->ops);
	*log = (struct disk_log){ 0 };
}

static bool is_dir(int fd)
{
	struct stat info;

	return !fstat(fd, &info) && S_ISDIR(info.st_mode);
}

/* An inode's number is given again: it is of the file that got it last. */
static unsigned int file_of(int fd)
{
	unsigned int file = recording->n_files;
	struct stat info;

	assert_int_equal(fstat(fd, &info), 0);
	while (file-- > 0)
		if (inodes[file] == info.st_ino)
			return file;
	assert_true(recording->n_files < FILES_MAX);
	inodes[recording->n_files] = info.st_ino;
	return recording->n_files++;
}

static void forget_inode(int fd)
{
	struct stat info;

	assert_int_equal(fstat(fd, &info), 0);
	for (unsigned int file = 0; file < recording->n_files; file++)
		if (inodes[file] == info.st_ino)
			inodes[file] = 0;
}

static void record(struct disk_op op, const void *bytes)
{
	struct disk_log *log = recording;

	if (!log)
		return;
	if (!(log->n & (log->n - 1)))
		log->ops = reallocarray(log->ops, log->n * 2 + 1, sizeof(op));
	assert_non_null(log->ops);
	if (op.len && bytes) {
		op.bytes = malloc(op.len);
		memcpy(op.bytes, bytes, op.len);
	}
	log->ops[log->n++] = op;
}

static void record_name(enum disk_call call, const char *name, const char *to,
			int fd)
{
	struct disk_op op = { .call = call };

	if (!recording)
		return;
	snprintf(op.name, sizeof(op.name), "%.*s", DISK_NAME_SIZE - 1, name);
	snprintf(op.to, sizeof(op.to), "%.*s", DISK_NAME_SIZE - 1, to);
	op.file = fd >= 0 ? file_of(fd) : 0;
	record(op, NULL);
}

static void record_file(int dir_fd, const char *name)
{
	int fd = __real_openat(dir_fd, name, O_RDONLY);
	struct stat info = { 0 };
	char *bytes;

	assert_true(fd >= 0 && !fstat(fd, &info));
	bytes = malloc((size_t)info.st_size + 1);
	assert_int_equal(read(fd, bytes, (size_t)info.st_size), info.st_size);
	record_name(DISK_OPEN, name, "", fd);
	record((struct disk_op){ .call = DISK_WRITE,
				 .file = file_of(fd),
				 .len = (size_t)info.st_size },
	       bytes);
	record((struct disk_op){ .call = DISK_SYNC, .file = file_of(fd) }, NULL);
	free(bytes);
	close(fd);
}

void disk_record_dir(const char *path)
{
	DIR *dir = opendir(path);

	assert_non_null(dir);
	for (struct dirent *entry; (entry = readdir(dir));)
		if (entry->d_name[0] != '.')
			record_file(dirfd(dir), entry->d_name);
	closedir(dir);
	record((struct disk_op){ .call = DISK_SYNC_DIR }, NULL);
	recording->start = recording->n;
}

/* ---- Calls ----------------------------------------------------------------------- */

int __wrap_openat(int dir_fd, const char *name, int flags, ...)
{
	bool is_new;
	va_list args;
	mode_t mode;
	int fd;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	if ((flags & O_ACCMODE) == O_RDONLY)
		return __real_openat(dir_fd, name, flags, mode);
	if (must_fail(DISK_OPEN))
		return refuse();
	is_new = faccessat(dir_fd, name, F_OK, 0) != 0;
	fd = __real_openat(dir_fd, name, flags, mode);
	if (fd < 0 || !recording)
		return fd;
	if (is_new) {
		forget_inode(fd);
		record_name(DISK_OPEN, name, "", fd);
	} else if (flags & O_TRUNC) {
		record((struct disk_op){ .call = DISK_TRUNCATE,
					 .file = file_of(fd) },
		       NULL);
	}
	return fd;
}

static ssize_t write_at(int fd, const void *bytes, size_t len, off_t offset)
{
	if (must_fail(DISK_WRITE)) {
		if (!fault.partly || failures > 1)
			return refuse();
		len = fault.partly < len ? fault.partly : len;
	}
	if (recording)
		record((struct disk_op){ .call = DISK_WRITE,
					 .file = file_of(fd),
					 .offset = (uint64_t)offset,
					 .len = len },
		       bytes);
	return __real_pwrite(fd, bytes, len, offset);
}

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t len, off_t offset)
{
	return write_at(fd, bytes, len, offset);
}

ssize_t __wrap_write(int fd, const void *bytes, size_t len)
{
	off_t offset = lseek(fd, 0, SEEK_CUR);
	ssize_t n;

	if (offset < 0 || is_dir(fd)) /* a pipe, the terminal */
		return __real_write(fd, bytes, len);
	n = write_at(fd, bytes, len, offset);
	if (n > 0)
		lseek(fd, n, SEEK_CUR);
	return n;
}

ssize_t __wrap_pread(int fd, void *bytes, size_t len, off_t offset)
{
	return must_fail(DISK_READ) ? refuse() :
				      __real_pread(fd, bytes, len, offset);
}

int __wrap_ftruncate(int fd, off_t size)
{
	if (must_fail(DISK_TRUNCATE))
		return refuse();
	if (recording)
		record((struct disk_op){ .call = DISK_TRUNCATE,
					 .file = file_of(fd),
					 .offset = (uint64_t)size },
		       NULL);
	return __real_ftruncate(fd, size);
}

static int sync_it(int fd)
{
	enum disk_call call = is_dir(fd) ? DISK_SYNC_DIR : DISK_SYNC;
	bool has_failed = must_fail(call);

	if (recording)
		record((struct disk_op){ .call = call,
					 .has_failed = has_failed,
					 .file = call == DISK_SYNC ? file_of(fd) :
								     0 },
		       NULL);
	return has_failed ? refuse() : 0;
}

int __wrap_fdatasync(int fd)
{
	return sync_it(fd);
}

int __wrap_fsync(int fd)
{
	return sync_it(fd);
}

int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	int err;

	if (must_fail(DISK_RENAME))
		return refuse();
	err = __real_renameat(from_fd, from, to_fd, to);
	if (!err && recording) {
		int fd = __real_openat(to_fd, to, O_RDONLY);

		record_name(DISK_RENAME, from, to, fd);
		close(fd);
	}
	return err;
}

int __wrap_unlinkat(int dir_fd, const char *name, int flags)
{
	int err;

	if (must_fail(DISK_UNLINK))
		return refuse();
	err = __real_unlinkat(dir_fd, name, flags);
	if (!err)
		record_name(DISK_UNLINK, name, "", -1);
	return err;
}
