// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "spool.h"

#include "base/hash.h"
#include "base/util.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char magic[8] = "netobsSP";

enum { VERSION = 1 };

#define CRC_START(head) ((const char *)&(head)->crc + sizeof((head)->crc))

static uint32_t crc_of_head(const struct segment_head *head)
{
	return crc32c(0, CRC_START(head),
		      sizeof(*head) - offsetof(struct segment_head, first));
}

/* The checksum covers the padding of the last word. */
static uint32_t crc_of_record(const struct record_head *head)
{
	return crc32c(0, CRC_START(head),
		      segment_cost(head->len) - offsetof(struct record_head, len));
}

/*
 * Not from the heap: a large block that comes and goes there would keep the rest of the heap from
 * shrinking, and other blocks from growing in place.
 */
static char *alloc_buffer(size_t size)
{
	void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return pages == MAP_FAILED ? NULL : pages;
}

struct segment *segment_new(struct position first, int64_t made_ms,
			    size_t capacity)
{
	struct segment *segment = calloc(1, sizeof(*segment));
	char *buf = segment ? alloc_buffer(capacity) : NULL;

	if (!buf) {
		free(segment);
		return NULL;
	}
	segment->buf = buf;
	segment->buf_size = capacity;
	segment_renew(segment, first, made_ms);
	return segment;
}

void segment_renew(struct segment *segment, struct position first, int64_t made_ms)
{
	*segment = (struct segment){
		.first = first,
		.end = first,
		.made_ms = made_ms,
		.in_file = first,
		.durable = first,
		.fd = -1,
		.buf = segment->buf,
		.buf_size = segment->buf_size,
	};
}

static int write_segment_bytes(int fd, const void *bytes, size_t len,
			       uint64_t offset)
{
	const char *p = bytes;

	while (len) {
		ssize_t n = pwrite(fd, p, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

int segment_write_head(int fd, struct position first, int64_t made_ms)
{
	struct segment_head head = {
		.version = VERSION,
		.first = first,
		.made_ms = made_ms,
	};

	memcpy(head.magic, magic, sizeof(magic));
	head.crc = crc_of_head(&head);
	return write_segment_bytes(fd, &head, sizeof(head), 0);
}

int segment_attach(struct segment *segment, int fd)
{
	int err = segment_write_head(fd, segment->first, segment->made_at_ms);

	if (!err)
		segment->fd = fd;
	return err;
}

int segment_resume(struct segment *segment)
{
	if (segment->buf)
		return 0;
	segment->buf = alloc_buffer(SEGMENT_BUFFER);
	if (!segment->buf)
		return -ENOMEM;
	segment->buf_size = SEGMENT_BUFFER;
	return 0;
}

void segment_free(struct segment *segment)
{
	if (!segment)
		return;
	close_fd(&segment->fd);
	if (segment->buf)
		munmap(segment->buf, segment->buf_size);
	free(segment);
}

void segment_free_all(struct segment *segment)
{
	while (segment) {
		struct segment *next = segment->next;

		segment_free(segment);
		segment = next;
	}
}

int segment_read_head(int fd, struct segment_head *ret_head)
{
	struct segment_head head;
	ssize_t n = pread(fd, &head, sizeof(head), 0);

	if (n < 0)
		return -errno;
	if (n < (ssize_t)sizeof(head) || head.version != VERSION ||
	    memcmp(head.magic, magic, sizeof(magic)) ||
	    head.crc != crc_of_head(&head))
		return -EBADMSG;
	*ret_head = head;
	return 0;
}

int segment_write_out(struct segment *segment)
{
	size_t len = segment->size - segment->written;
	int err;

	if (segment->fd < 0 || !len)
		return 0;
	err = write_segment_bytes(segment->fd, segment->buf, len,
				  sizeof(struct segment_head) + segment->written);
	if (err)
		return err;
	segment->written = segment->size;
	segment->in_file = segment->end;
	return 0;
}

int segment_reserve(struct segment *segment, size_t len, struct position own,
		    void **ret_record)
{
	struct record_head *head;
	int err;

	assert(len <= SEGMENT_RECORD_MAX && own.seq == 1);
	if (segment->size - segment->written + segment_cost(len) >
	    segment->buf_size) {
		if (segment->fd < 0)
			return -ENOBUFS;
		err = segment_write_out(segment);
		if (err)
			return err;
	}
	head = segment_tail(segment);
	*head = (struct record_head){
		.before = segment->end,
		.own = own,
	};
	*ret_record = head + 1;
	return 0;
}

void segment_commit(struct segment *segment, size_t len)
{
	struct record_head *head = segment_tail(segment);

	head->len = (uint32_t)len;
	memset((char *)(head + 1) + len, 0,
	       segment_cost(len) - sizeof(*head) - len);
	if (segment->has_checksums)
		head->crc = crc_of_record(head);
	segment->size += segment_cost(len);
	segment->end = position_add(segment->end, head->own);
}

/* Find the record that starts at these bytes. -EAGAIN: more are needed. -EBADMSG: none does. */
static int segment_parse(const char *bytes, size_t len,
			 const struct record_head **ret_head)
{
	const struct record_head *head = (const void *)bytes;

	if (len < sizeof(*head))
		return -EAGAIN;
	if (head->len > SEGMENT_RECORD_MAX || head->own.seq != 1)
		return -EBADMSG;
	if (len < segment_cost(head->len))
		return -EAGAIN;
	if (head->crc != crc_of_record(head))
		return -EBADMSG;
	*ret_head = head;
	return 0;
}

void segment_window_free(struct segment_window *window)
{
	free(window->buf);
	*window = (struct segment_window){ 0 };
}

/* Have the window start at @offset. */
static int move_window(const struct segment *segment,
		       struct segment_window *window, uint64_t offset)
{
	uint64_t left = segment->written - offset;
	ssize_t n;

	if (!window->buf)
		window->buf = malloc(SEGMENT_BUFFER);
	if (!window->buf)
		return -ENOMEM;
	n = pread(segment->fd, window->buf, min_u64(left, SEGMENT_BUFFER),
		  (off_t)(sizeof(struct segment_head) + offset));
	if (n < 0)
		return -errno;
	window->segment = segment;
	window->start = offset;
	window->len = (size_t)n;
	return 0;
}

int segment_read_file(const struct segment *segment,
		      struct segment_window *window, uint64_t offset,
		      const struct record_head **ret_head)
{
	bool is_inside = window->segment == segment && offset >= window->start &&
			 offset <= window->start + window->len;

	for (int attempt = 0; attempt < 2; attempt++) {
		int err;

		if (is_inside) {
			size_t at = offset - window->start;

			err = segment_parse(window->buf + at, window->len - at,
					    ret_head);
			if (err != -EAGAIN)
				return err;
		}
		err = move_window(segment, window, offset);
		if (err)
			return err;
		is_inside = true;
	}
	return -EBADMSG; /* the file has less than it had */
}
