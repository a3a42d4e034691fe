// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "rotate_cut.h"

#include "compressor.h"
#include "base/util.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	CHUNK = 8 << 10,
	MESSAGE_HEAD = 16,
};

/* RFC 7011, 3.1: what a message of IPFIX begins with. */
static const char message_version[] = { 0, 10 };

enum content { LINES, GZIP_PIECES, ZSTD_PIECES, MESSAGES };

static enum content content_of(int fd)
{
	char head[4] = "";

	if (pread(fd, head, sizeof(head), 0) < 0)
		return LINES;
	if (!memcmp(head, gzip_head, sizeof(head)))
		return GZIP_PIECES;
	if (!memcmp(head, zstd_head, sizeof(head)))
		return ZSTD_PIECES;
	return memcmp(head, message_version, sizeof(message_version)) ? LINES :
									MESSAGES;
}

const char *rotate_suffix(int fd)
{
	static const char *const suffixes[] = {
		[LINES] = "", [GZIP_PIECES] = ".gz", [ZSTD_PIECES] = ".zst", [MESSAGES] = ""
	};

	return suffixes[content_of(fd)];
}

/* The same as piece_len(), for a message. */
static uint64_t message_len(const char *head)
{
	const unsigned char *at = (const unsigned char *)head;
	uint64_t len = (uint64_t)at[2] << 8 | at[3];

	if (memcmp(head, message_version, sizeof(message_version)))
		return 0;
	return len < MESSAGE_HEAD ? 0 : len;
}

/* The end of the last whole piece, of those that begin with their length. */
static int end_of_pieces(int fd, uint64_t size, uint64_t *ret_end)
{
	uint64_t at = 0;

	for (;;) {
		char head[PIECE_HEAD] = { 0 };
		uint64_t len;

		if (pread(fd, head, sizeof(head), (off_t)at) < 0)
			return -errno;
		len = piece_len(head) ?: message_len(head);
		if (!len || len > size - at)
			break;
		at += len;
	}
	*ret_end = at;
	return 0;
}

/* The end of the last whole line. */
static int end_of_lines(int fd, uint64_t size, uint64_t *ret_end)
{
	char chunk[CHUNK];

	for (uint64_t end = size; end;) {
		uint64_t start = (end - 1) / CHUNK * CHUNK;
		ssize_t n = pread(fd, chunk, end - start, (off_t)start);
		const char *newline;

		if (n < 0)
			return -errno;
		newline = memrchr(chunk, '\n', (size_t)n);
		if (newline) {
			*ret_end = start + (uint64_t)(newline + 1 - chunk);
			return 0;
		}
		end = start;
	}
	*ret_end = 0;
	return 0;
}

int rotate_cut(int fd, uint64_t *ret_size)
{
	struct stat info;
	uint64_t size, end;
	int err;

	if (fstat(fd, &info))
		return -errno;
	size = (uint64_t)info.st_size;
	err = content_of(fd) == LINES ? end_of_lines(fd, size, &end) :
					end_of_pieces(fd, size, &end);
	if (err)
		return err;
	if (end < size && ftruncate(fd, (off_t)end))
		return -errno;
	*ret_size = end;
	return 0;
}
