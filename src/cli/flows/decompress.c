/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "flows_request.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "base/util.h"

struct program {
	const char *magic, *name, *package;
};

struct decompressed {
	const struct program *program; /* NULL: it is not compressed */
	const char *file;
	char pipe[24]; /* name of the pipe */
	int fd;	       /* it */
	int messages;  /* messages of the program */
	pid_t pid;     /* 0: it does not run */
};

static const struct program *find_program(int fd)
{
	static const struct program programs[] = {
		{ "\x1f\x8b", "gzip", "gzip" },
		{ "\x28\xb5\x2f\xfd", "zstd", "zstd" },
		{ "\xfd"
		  "7zXZ",
		  "xz", "xz-utils" },
	};
	char first[8] = "";

	if (pread(fd, first, sizeof(first), 0) < 0)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		if (!memcmp(first, programs[i].magic, strlen(programs[i].magic)))
			return &programs[i];
	return NULL;
}

/* A pipe that nobody reads any more ends it, as in a shell. @return 0 or -errno */
static int spawn(struct decompressed *one, int in, int out)
{
	const char *argv[] = { one->program->name, "-dc", NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, defaults;
	int err = posix_spawn_file_actions_init(&actions);

	if (err)
		return -err;
	err = posix_spawnattr_init(&attributes);
	if (err) {
		posix_spawn_file_actions_destroy(&actions);
		return -err;
	}
	sigemptyset(&none);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &defaults);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK |
						      POSIX_SPAWN_SETSIGDEF);
	err = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO) ?:
		      posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO) ?:
		      posix_spawn_file_actions_adddup2(&actions, one->messages, STDERR_FILENO) ?:
		      posix_spawnp(&one->pid, one->program->name, &actions,
				   &attributes, (char *const *)argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	if (err)
		one->pid = 0;
	return -err;
}

static int start_program(struct decompressed *one, int in)
{
	int fds[2], err;

	one->messages = memfd_create("messages", MFD_CLOEXEC);
	if (one->messages < 0 || pipe2(fds, O_CLOEXEC))
		return -errno;
	one->fd = fds[0];
	snprintf(one->pipe, sizeof(one->pipe), "/dev/fd/%d", fds[0]);
	err = spawn(one, in, fds[1]);
	close(fds[1]);
	return err;
}

/* Open a regular file: opening a pipe twice would lose its content. @return -1: none, or an error */
static int open_file(const char *file)
{
	struct stat status;

	if (!strcmp(file, "-"))
		return fstat(STDIN_FILENO, &status) || !S_ISREG(status.st_mode) ?
			       -1 :
			       dup(STDIN_FILENO);
	return stat(file, &status) || !S_ISREG(status.st_mode) ?
		       -1 :
		       open(file, O_RDONLY | O_CLOEXEC);
}

/* Files that cannot be opened are left to the reader, which reports them. */
static int open_one(struct decompressed *one, const char *file, const char *verb)
{
	const int in = open_file(file);
	int err = 0;

	*one = (struct decompressed){ .file = file, .fd = -1, .messages = -1 };
	if (in < 0)
		return 0;
	one->program = find_program(in);
	if (one->program)
		err = start_program(one, in);
	close(in);
	if (err == -ENOENT)
		fprintf(stderr,
			"netobsctl %s: %s: %s, which decompresses it, is not installed (Debian: apt-get install %s)\n",
			verb, file, one->program->name, one->program->package);
	else if (err)
		fprintf(stderr, "netobsctl %s: %s: cannot run %s: %s\n", verb,
			file, one->program->name, strerror(-err));
	return err;
}

int decompress_open(const struct args_list *files, const char *verb,
		    struct decompress *ret_decompress)
{
	struct decompress *all = ret_decompress;
	int err = 0;

	*all = (struct decompress){
		.paths = calloc(files->n + 1, sizeof(*all->paths)),
		.list = calloc(files->n + 1, sizeof(*all->list)),
	};
	if (!all->paths || !all->list) {
		fprintf(stderr, "netobsctl %s: %s\n", verb, strerror(ENOMEM));
		return -ENOMEM;
	}
	for (; !err && all->n < files->n; all->n++) {
		struct decompressed *one = &all->list[all->n];

		err = open_one(one, files->items[all->n], verb);
		all->paths[all->n] = one->program ? one->pipe : one->file;
	}
	return err;
}

void decompress_place(const struct decompress *decompress, char *text, size_t size)
{
	char rest[512];

	for (size_t i = 0; i < decompress->n; i++) {
		const struct decompressed *one = &decompress->list[i];
		const size_t len = strlen(one->pipe);

		if (!len || strncmp(text, one->pipe, len) ||
		    (text[len] != ':' && text[len] != ' '))
			continue;
		snprintf(rest, sizeof(rest), "%s", text + len);
		snprintf(text, size, "%s%s", one->file, rest);
		return;
	}
}

/* Read the first line of the program's messages, if any. */
static void read_message(const struct decompressed *one, char *text, size_t size)
{
	const ssize_t n = pread(one->messages, text, size - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	safe_cell(text);
}

static bool end_program(const struct decompressed *one, const char *verb,
			bool is_cancelled)
{
	char message[256];
	int status = 0;

	if (!one->pid)
		return true;
	while (waitpid(one->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!status || is_cancelled ||
	    (WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE))
		return true;
	read_message(one, message, sizeof(message));
	fprintf(stderr,
		"netobsctl %s: %s: %s has failed%s%s: only packets up to there are counted\n",
		verb, one->file, one->program->name, *message ? ": " : "",
		message);
	return false;
}

bool decompress_close(struct decompress *decompress, const char *verb,
		      bool is_cancelled)
{
	bool is_complete = true;

	for (size_t i = 0; i < decompress->n; i++) {
		struct decompressed *one = &decompress->list[i];

		if (one->fd >= 0)
			close(one->fd);
		is_complete &= end_program(one, verb, is_cancelled);
		if (one->messages >= 0)
			close(one->messages);
	}
	free(decompress->paths);
	free(decompress->list);
	*decompress = (struct decompress){ 0 };
	return is_complete;
}
