/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Where lines of text go: standard output, a file, or a unix socket. Nothing here
 * waits. Standard output fails for good; the others are tried again.
 */
#ifndef NETOBS_LIB_SINK_LINE_OUT_H
#define NETOBS_LIB_SINK_LINE_OUT_H

#include "fault.h"
#include "module.h"
#include "out_state.h"
#include "packer.h"
#include "roll.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What the target of a socket starts with. */
#define LINE_OUT_UNIX "unix:"

enum line_out_kind { LINE_OUT_STDOUT, LINE_OUT_FILE, LINE_OUT_SOCKET };

struct line_out {
	struct sink_host *host;
	enum line_out_kind kind;
	char *path; /* NULL: standard output */
	int fd;
	bool owned;	/* close the descriptor at the end */
	bool is_socket; /* also standard output may be one */
	bool is_pipe;	/* or a terminal */
	bool can_wait;	/* epoll takes it */
	struct fault fault;
	struct roll *roll; /* NULL: it is not rotated */

	struct packer packer; /* if it is */
	const char *piece;    /* that the roll has not taken yet */
	size_t piece_len;
};

/*
 * @spec: its target: none: standard output; unix:PATH: the socket, which need not be
 * there yet; else a file, which is made, or emptied, or rotated as the options say.
 * Errors: -EINVAL, or as open(2); they are logged.
 */
int line_out_open(struct line_out *out, struct spec *spec,
		  struct sink_host *host);

void line_out_close(struct line_out *out);

enum out_state line_out_prepare(struct line_out *out);

/*
 * @bytes: whole lines, or the rest of them. Bytes that were taken; -EAGAIN: none, and the
 * sink is called again; others: what failed for good.
 */
ssize_t line_out_write(struct line_out *out, const char *bytes, size_t len);

/* All lines of records before @end are written: acknowledge them, in time. */
void line_out_written(struct line_out *out, struct mark end);

/* There is nothing to be written now. 0, or what failed for good meanwhile. */
int line_out_rest(struct line_out *out);

void line_out_counters(const struct line_out *out, sink_counter_fn *take,
		       void *ctx);

#endif
