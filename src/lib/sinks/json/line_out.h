/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Writes lines of text to standard output, a file, a named pipe or a unix socket. Nothing
 * here waits. A failure of standard output is permanent; the others are retried.
 *
 * Lines are delivered once the kernel has them for a file, or for the reader of a pipe or a
 * socket. When a reader goes away, the next one gets the lines from the first that was not
 * written whole.
 */
#ifndef NETOBS_SINKS_JSON_LINE_OUT_H
#define NETOBS_SINKS_JSON_LINE_OUT_H

#include "base/outage.h"
#include "sink/module.h"
#include "sink/pack/packer.h"
#include "sink/file/rotate.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Prefix of targets that are sockets. */
#define LINE_OUT_UNIX "unix:"

enum line_out_kind {
	LINE_OUT_STDOUT,
	LINE_OUT_FILE,
	LINE_OUT_SOCKET,
	LINE_OUT_FIFO,
};

struct line_out {
	struct sink_host *host;
	enum line_out_kind kind;
	char *path; /* NULL: standard output */
	int fd;
	bool owned;	/* close the descriptor at the end */
	bool is_socket; /* also standard output may be one */
	bool is_pipe;	/* or a terminal */
	bool can_wait;	/* epoll takes it */
	struct outage outage;

	/* Of files. */
	mode_t mode;
	dev_t dev;
	ino_t ino;
	bool is_regular;
	bool is_midway;	   /* a line is written in part */
	int64_t looked_ms; /* whether it still has its name */

	/* Of pipes and sockets. */
	int64_t found_ms;     /* the reader that is there */
	struct backoff retry; /* after readers that went away */

	struct rotated *rotated; /* NULL: it is not rotated */

	struct packer packer; /* if it is */
	const char *piece;    /* that the rotated has not taken yet */
	size_t piece_len;
};

/*
 * @spec: its target: none: standard output; unix:PATH: the socket, which need not be
 * there yet; else a file, which is made, and appended to, or rotated as the options say.
 * Errors: -EINVAL, or as open(2); they are logged. To be closed in any case.
 */
int line_out_open(struct line_out *out, struct spec *spec,
		  struct sink_host *host);

void line_out_close(struct line_out *out);

enum peer_state line_out_prepare(struct line_out *out);

/**
 * @param bytes  whole lines, or the rest of them
 * @return bytes that were written; -EAGAIN: none, the sink is called again; others: a
 *         permanent failure
 */
ssize_t line_out_write(struct line_out *out, const char *bytes, size_t len);

/** Call if there is nothing to write now. @return 0, or a permanent failure since the last call */
int line_out_rest(struct line_out *out);

/* The next line_out_prepare() looks whether the file still has its name. */
void line_out_look(struct line_out *out);

/** @return whether the file that has its name gets nothing until a line in another is whole */
bool line_out_is_behind(const struct line_out *out);

void line_out_counters(const struct line_out *out, sink_counter_fn *take,
		       void *ctx);

#endif
