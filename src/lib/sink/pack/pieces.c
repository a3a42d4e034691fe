// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "packer.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	CHUNK = 8 << 10,
	MAGIC = 4, /* bytes that tell them apart */
	MESSAGE_HEAD = 16,
};

/* RFC 7011, 3.1: the first bytes of an IPFIX message. */
static const char message_version[] = { 0, 10 };

const char *pieces_suffix(int fd)
{
	char head[MAGIC] = "";

	if (pread(fd, head, sizeof(head), 0) < 0)
		return "";
	if (!memcmp(head, gzip_head, sizeof(head)))
		return ".gz";
	return memcmp(head, zstd_head, sizeof(head)) ? "" : ".zst";
}

/* Like piece_len(), for an IPFIX message. */
static uint64_t message_len(const char *head)
{
	const unsigned char *at = (const unsigned char *)head;
	uint64_t len = (uint64_t)at[2] << 8 | at[3];

	if (memcmp(head, message_version, sizeof(message_version)))
		return 0;
	return len < MESSAGE_HEAD ? 0 : len;
}

int pieces_find_end(int fd, uint64_t size, uint64_t *ret_end)
{
	uint64_t len = 0;

	*ret_end = 0;
	do {
		char head[PIECE_HEAD] = { 0 };

		*ret_end += len;
		if (pread(fd, head, sizeof(head), (off_t)*ret_end) < 0)
			return -errno;
		len = piece_len(head) ?: message_len(head);
	} while (len && len <= size - *ret_end);
	return 0;
}

/* The end of the last whole line. */
static int find_end_of_lines(int fd, uint64_t size, uint64_t *ret_end)
{
	char chunk[CHUNK];
	const char *newline = NULL;
	uint64_t start = size;

	while (start && !newline) {
		uint64_t end = start;
		ssize_t n;

		start = (end - 1) / CHUNK * CHUNK;
		n = pread(fd, chunk, end - start, (off_t)start);
		if (n < 0)
			return -errno;
		newline = memrchr(chunk, '\n', (size_t)n);
	}
	*ret_end = newline ? start + (uint64_t)(newline + 1 - chunk) : 0;
	return 0;
}

int pieces_cut(int fd, uint64_t *ret_size)
{
	char head[sizeof(message_version)] = "";
	struct stat info;
	uint64_t size;
	int err;

	if (fstat(fd, &info) || pread(fd, head, sizeof(head), 0) < 0)
		return -errno;
	size = (uint64_t)info.st_size;
	if (*pieces_suffix(fd) || !memcmp(head, message_version, sizeof(head)))
		err = pieces_find_end(fd, size, ret_size);
	else
		err = find_end_of_lines(fd, size, ret_size);
	if (!err && *ret_size < size && ftruncate(fd, (off_t)*ret_size))
		err = -errno;
	return err;
}
