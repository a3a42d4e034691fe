/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "file_interfaces.h"

#include "base/buffer.h"
#include "base/util.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Blocks of pcapng: draft-ietf-opsawg-pcapng, 4. */
enum {
	BLOCK_INTERFACE = 1,
	BLOCK_OLD_PACKET = 2,
	BLOCK_SIMPLE_PACKET = 3,
	BLOCK_PACKET = 6,
	BLOCK_SECTION = 0x0a0d0d0a,
	ORDER_MAGIC = 0x1a2b3c4d,
	OPTION_END = 0,
	OPTION_NAME = 2,  /* of an interface */
	OPTION_FLAGS = 2, /* of a packet */
	FLAGS_DIRECTION = 3,
	HEAD_LEN = 12, /* type, length, and the first word: all that most blocks need */
	PACKET_LEN = 28,       /* of a packet's block, before the packet */
	BLOCK_MAX = 512 << 10, /* of longer ones, no option is read */
	NAMES_MAX = 4096,
	QUEUE_START = 64,
};

struct file_interfaces {
	FILE *inner;
	bool is_other; /* no pcapng, or damaged: nothing is known from here on */
	bool has_begun, is_swapped;
	struct buffer block; /* its beginning */
	size_t want;	     /* bytes of it that are needed */
	uint64_t skip;	     /* bytes until the next block */

	char *names[NAMES_MAX]; /* of all sections; "": the interface has none */
	size_t n_names, section; /* the first one of this section */

	/* Packets that libpcap has not returned yet: a ring. */
	struct passage {
		uint32_t name; /* its index */
		enum passed passed;
	} * queue;
	size_t size, first, n;
};

static uint32_t read_word(const struct file_interfaces *in, size_t at)
{
	uint32_t word;

	memcpy(&word, in->block.bytes + at, sizeof(word));
	return in->is_swapped ? __builtin_bswap32(word) : word;
}

static uint16_t read_half(const struct file_interfaces *in, size_t at)
{
	uint16_t half;

	memcpy(&half, in->block.bytes + at, sizeof(half));
	return in->is_swapped ? __builtin_bswap16(half) : half;
}

static bool grow_queue(struct file_interfaces *in)
{
	const size_t size = in->size ? 2 * in->size : QUEUE_START;
	struct passage *queue = calloc(size, sizeof(*queue));

	if (!queue)
		return false;
	for (size_t i = 0; i < in->n; i++)
		queue[i] = in->queue[(in->first + i) % in->size];
	free(in->queue);
	in->queue = queue;
	in->size = size;
	in->first = 0;
	return true;
}

static void note_packet(struct file_interfaces *in, uint32_t id,
			enum passed passed)
{
	if (in->n == in->size && !grow_queue(in)) {
		in->is_other = true;
		return;
	}
	in->queue[(in->first + in->n++) % in->size] =
		(struct passage){ (uint32_t)in->section + id, passed };
}

/* Of the options from @at on, the value of that with @code. @return NULL: there is none */
static const char *find_option(const struct file_interfaces *in, size_t at,
			       uint16_t code, size_t *ret_len)
{
	while (at + 4 <= in->block.len) {
		const uint16_t found = read_half(in, at),
			       size = read_half(in, at + 2);

		if (found == OPTION_END || at + 4 + size > in->block.len)
			break;
		*ret_len = size;
		if (found == code)
			return in->block.bytes + at + 4;
		at += 4 + size + (-size & 3);
	}
	return NULL;
}

/* The options are behind link type and snapshot length. */
static void note_interface(struct file_interfaces *in)
{
	size_t len = 0;
	const char *name = find_option(in, HEAD_LEN + 4, OPTION_NAME, &len);

	if (in->n_names == NAMES_MAX ||
	    !(in->names[in->n_names] = name ? strndup(name, len) : strdup("")))
		in->is_other = true;
	else
		in->n_names++;
}

/* The options are behind the packet, which is filled up to words. */
static enum passed read_passed(const struct file_interfaces *in)
{
	size_t len = 0;
	const char *flags;

	if (in->block.len < PACKET_LEN)
		return PASSED_EITHER;
	flags = find_option(in,
			    PACKET_LEN + ((size_t)read_word(in, 20) + 3) / 4 * 4,
			    OPTION_FLAGS, &len);
	return flags && len == sizeof(uint32_t) ?
		       read_word(in, flags - in->block.bytes) & FLAGS_DIRECTION :
		       PASSED_EITHER;
}

static void end_block(struct file_interfaces *in)
{
	const uint32_t type = read_word(in, 0);

	if (type == BLOCK_INTERFACE)
		note_interface(in);
	else if (type == BLOCK_PACKET)
		note_packet(in, read_word(in, 8), read_passed(in));
	else if (type == BLOCK_OLD_PACKET)
		note_packet(in, read_half(in, 8), PASSED_EITHER);
	else if (type == BLOCK_SIMPLE_PACKET)
		note_packet(in, 0, PASSED_EITHER);
	in->skip = (read_word(in, 4) + 3) / 4 * 4 - in->block.len;
	in->block.len = 0;
	in->want = HEAD_LEN;
}

/* All of the first HEAD_LEN bytes are there. A file begins with a section. */
static void read_head(struct file_interfaces *in)
{
	const uint32_t type = read_word(in, 0);
	uint32_t total;

	if (type == BLOCK_SECTION) { /* the same in both byte orders */
		in->is_swapped = false;
		in->is_swapped = read_word(in, 8) != ORDER_MAGIC;
		in->section = in->n_names;
	}
	in->is_other = (!in->has_begun && type != BLOCK_SECTION) ||
		       (type == BLOCK_SECTION && read_word(in, 8) != ORDER_MAGIC);
	in->has_begun = true;
	total = read_word(in, 4);
	if (total < HEAD_LEN)
		in->is_other = true;
	else if ((type == BLOCK_INTERFACE || type == BLOCK_PACKET) &&
		 total <= BLOCK_MAX)
		in->want = total;
}

static void take_bytes(struct file_interfaces *in, const char *bytes, size_t len)
{
	while (len && !in->is_other) {
		size_t n = min_u64(len, in->skip ?: in->want - in->block.len);

		if (in->skip) {
			in->skip -= n;
		} else if (!buffer_add(&in->block, bytes, n)) {
			in->is_other = true;
		} else if (in->block.len == HEAD_LEN && in->want == HEAD_LEN) {
			read_head(in);
			if (!in->is_other && in->want == HEAD_LEN)
				end_block(in);
		} else if (in->block.len == in->want) {
			end_block(in);
		}
		bytes += n;
		len -= n;
	}
}

static ssize_t read_through(void *cookie, char *bytes, size_t size)
{
	struct file_interfaces *in = cookie;
	const size_t n = fread(bytes, 1, size, in->inner);

	if (!n && ferror(in->inner))
		return -1;
	take_bytes(in, bytes, n);
	return (ssize_t)n;
}

static int close_through(void *cookie)
{
	const struct file_interfaces *in = cookie;

	return in->inner == stdin ? 0 : fclose(in->inner);
}

int file_interfaces_open(FILE *inner, struct file_interfaces **ret_interfaces,
			 FILE **ret_outer)
{
	static const cookie_io_functions_t functions = { .read = read_through,
							 .close = close_through };
	struct file_interfaces *in = calloc(1, sizeof(*in));
	FILE *outer;

	if (!in)
		return -ENOMEM;
	in->inner = inner;
	in->want = HEAD_LEN;
	outer = fopencookie(in, "r", functions);
	if (!outer) {
		free(in);
		return -ENOMEM;
	}
	*ret_interfaces = in;
	*ret_outer = outer;
	return 0;
}

void file_interfaces_free(struct file_interfaces *in)
{
	if (!in)
		return;
	for (size_t i = 0; i < in->n_names; i++)
		free(in->names[i]);
	buffer_free(&in->block);
	free(in->queue);
	free(in);
}

const char *file_interfaces_next(struct file_interfaces *in,
				 enum passed *ret_passed)
{
	struct passage next;

	*ret_passed = PASSED_EITHER;
	if (!in->n)
		return NULL;
	next = in->queue[in->first];
	in->first = (in->first + 1) % in->size;
	in->n--;
	*ret_passed = next.passed;
	return next.name < in->n_names && *in->names[next.name] ?
		       in->names[next.name] :
		       NULL;
}
