/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "output.h"

#include "base/io.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { STREAM_BUFFER = 64 * 1024 };

int stream_open_stdout(struct stream *stream)
{
	int flags = fcntl(STDOUT_FILENO, F_GETFL);
	char *buf;

	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
		return -EBADF;
	buf = malloc(STREAM_BUFFER);
	if (!buf)
		return -ENOMEM;
	*stream = (struct stream){ .fd = STDOUT_FILENO,
				   .buf = buf,
				   .size = STREAM_BUFFER };
	return 0;
}

/* Write all bytes; other processes may have made the descriptor non-blocking. */
static int write_and_wait(int fd, const char *bytes, size_t len)
{
	size_t at = 0;
	int err;

	while ((err = io_write(fd, bytes, len, &at)) == -EAGAIN)
		poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, -1);
	return err;
}

void stream_flush(struct stream *stream)
{
	if (!stream->error)
		stream->error =
			write_and_wait(stream->fd, stream->buf, stream->used);
	stream->used = 0;
}

static int grow_stream(struct stream *stream, size_t len)
{
	size_t size = stream->size;
	char *buf;

	while (size < len)
		size *= 2;
	buf = realloc(stream->buf, size);
	if (!buf)
		return -ENOMEM;
	stream->buf = buf;
	stream->size = size;
	return 0;
}

char *stream_room(struct stream *stream, size_t len)
{
	if (stream->size - stream->used < len)
		stream_flush(stream);
	if (!stream->error && stream->size < len)
		stream->error = grow_stream(stream, len);
	return stream->error ? NULL : stream->buf + stream->used;
}

void stream_advance(struct stream *stream, size_t len)
{
	assert(len <= stream->size - stream->used);
	stream->used += len;
}

void stream_print(struct stream *stream, const char *format, ...)
{
	va_list args, again;
	char *text;
	int len;

	va_start(args, format);
	va_copy(again, args);
	len = vsnprintf(NULL, 0, format, args);
	text = len < 0 ? NULL : stream_room(stream, (size_t)len + 1);
	if (text) {
		vsnprintf(text, (size_t)len + 1, format, again);
		stream_advance(stream, (size_t)len);
	}
	va_end(again);
	va_end(args);
}

void stream_close(struct stream *stream)
{
	if (!stream->buf)
		return;
	stream_flush(stream);
	free(stream->buf);
	stream->buf = NULL;
}
