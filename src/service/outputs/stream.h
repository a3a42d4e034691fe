/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Buffered output that is written at line ends only, so that a reader never sees half a line.
 * The first error sticks.
 */
#ifndef NETOBS_SERVICE_OUTPUTS_STREAM_H
#define NETOBS_SERVICE_OUTPUTS_STREAM_H

#include <stdbool.h>
#include <stddef.h>

struct stream {
	int fd;
	int error; /* 0, or the negated errno of the first failure */
	char *buf;
	size_t used, size;
};

/* Standard output: -EBADF when it cannot be written to. */
int stream_open_stdout(struct stream *stream);

/* Room for @len bytes and where it is, or NULL when the stream has failed. */
char *stream_room(struct stream *stream, size_t len);

/* Take over @len bytes that were written where stream_room() said. */
void stream_advance(struct stream *stream, size_t len);

__attribute__((format(printf, 2, 3))) void stream_print(struct stream *stream,
							const char *format, ...);

void stream_flush(struct stream *stream);

/* Flushes and frees; the error remains to be read. */
void stream_close(struct stream *stream);

#endif
