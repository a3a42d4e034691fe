/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "output.h"

#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

enum { STREAM_BUFFER = 64 * 1024 };

int stream_open_stdout(struct stream *stream)
{
	int flags = fcntl(STDOUT_FILENO, F_GETFL);

	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
		return -EBADF;
	*stream = (struct stream){ .fd = STDOUT_FILENO };
	return buffer_reserve(&stream->bytes, STREAM_BUFFER) ? 0 : -ENOMEM;
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
		stream->error = write_and_wait(stream->fd, stream->bytes.bytes,
					       stream->bytes.len);
	stream->bytes.len = 0;
}

/* @return false: the stream has failed */
static bool make_room(struct stream *stream, size_t len)
{
	struct buffer *bytes = &stream->bytes;

	if (bytes->size - bytes->len < len)
		stream_flush(stream);
	if (!stream->error && !buffer_reserve(bytes, len))
		stream->error = -ENOMEM;
	return !stream->error;
}

void stream_print(struct stream *stream, const char *format, ...)
{
	struct buffer *bytes = &stream->bytes;
	va_list args, again;
	int len;

	va_start(args, format);
	va_copy(again, args);
	len = vsnprintf(NULL, 0, format, args);
	if (len >= 0 && make_room(stream, (size_t)len + 1)) {
		vsnprintf(bytes->bytes + bytes->len, (size_t)len + 1, format,
			  again);
		bytes->len += (size_t)len;
	}
	va_end(again);
	va_end(args);
}

void stream_close(struct stream *stream)
{
	if (!stream->bytes.bytes)
		return;
	stream_flush(stream);
	buffer_free(&stream->bytes);
}
