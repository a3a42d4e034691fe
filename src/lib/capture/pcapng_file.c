/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "capture_file.h"

#include "base/util.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
	BLOCK_INTERFACE = 1,
	BLOCK_OLD_PACKET = 2,
	BLOCK_SIMPLE_PACKET = 3,
	BLOCK_PACKET = 6,
	BLOCK_SECTION = 0x0a0d0d0a, /* the same in both byte orders */
	ORDER_MAGIC = 0x1a2b3c4d,
	VERSION = 1,
	OPTION_END = 0,
	OPTION_NAME = 2,  /* of an interface */
	OPTION_FLAGS = 2, /* of a packet */
	OPTION_RESOLUTION = 9,
	OPTION_OFFSET = 14,
	FLAGS_DIRECTION = 3,
	BLOCK_MIN = 12, /* type, and the length twice */
	NAME_SIZE = 256,
	INTERFACES_MAX = 1 << 16,
};

struct interface {
	int link;
	uint32_t snap;	/* 0: no limit */
	uint64_t units; /* units of time in a second */
	int64_t offset_s;
	char *name; /* NULL: it has none */
};

struct pcapng_file {
	FILE *stream;
	bool has_begun, is_swapped;
	uint32_t left; /* bytes of the block that were not read yet, without its second length */
	struct interface *interfaces;  /* interfaces of all sections */
	uint32_t n, capacity, section; /* the first one of this section */
	char reason[160];
	uint8_t bytes[PCAPNG_KEPT];
};

__attribute__((format(printf, 2, 3))) static int refuse(struct pcapng_file *file,
							const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(file->reason, sizeof(file->reason), format, args);
	va_end(args);
	return -EBADMSG;
}

const char *pcapng_reason(const struct pcapng_file *file)
{
	return file->reason;
}

int pcapng_link(const struct pcapng_file *file, uint32_t i)
{
	return i < file->n ? file->interfaces[i].link : -ENOENT;
}

/* ---- Bytes -------------------------------------------------------------------------- */

static int read_bytes(struct pcapng_file *file, void *to, size_t n)
{
	if (fread(to, 1, n, file->stream) == n)
		return 0;
	return ferror(file->stream) ?
		       refuse(file, "%s", strerror(errno)) :
		       refuse(file, "truncated pcapng file: it ends in a block");
}

/* Take bytes of the block. */
static int take(struct pcapng_file *file, void *to, uint32_t n)
{
	if (n > file->left)
		return refuse(file,
			      "a pcapng block is shorter than its contents");
	file->left -= n;
	return read_bytes(file, to, n);
}

static int skip(struct pcapng_file *file, uint32_t n)
{
	uint8_t unused[4096];
	int err = 0;

	while (!err && n) {
		const uint32_t part = min_u64(n, sizeof(unused));

		err = take(file, unused, part);
		n -= part;
	}
	return err;
}

static uint16_t half(const struct pcapng_file *file, uint16_t value)
{
	return file->is_swapped ? __builtin_bswap16(value) : value;
}

static uint32_t word(const struct pcapng_file *file, uint32_t value)
{
	return file->is_swapped ? __builtin_bswap32(value) : value;
}

static int take_words(struct pcapng_file *file, uint32_t *to, uint32_t n)
{
	int err = take(file, to, n * sizeof(*to));

	for (uint32_t i = 0; !err && i < n; i++)
		to[i] = word(file, to[i]);
	return err;
}

/*
 * The next option of the block: its code, its length and the first @size bytes of its value.
 * @return 1; 0: there is none; or an error
 */
static int next_option(struct pcapng_file *file, uint16_t *ret_code, void *to,
		       uint16_t size, uint16_t *ret_len)
{
	uint16_t head[2] = { 0 };
	uint32_t padded, part;
	int err;

	if (file->left < sizeof(head))
		return 0;
	err = take(file, head, sizeof(head));
	if (err)
		return err;
	*ret_code = half(file, head[0]);
	*ret_len = half(file, head[1]);
	padded = (*ret_len + 3U) / 4 * 4;
	if (*ret_code == OPTION_END || padded > file->left)
		return 0;
	part = min_u64(*ret_len, size);
	memset(to, 0, size);
	return take(file, to, part) ?: skip(file, padded - part) ?: 1;
}

/* ---- Sections and interfaces -------------------------------------------------------- */

/* Read a section header; the magic number gives the byte order, and so the length. */
static int read_section(struct pcapng_file *file, uint32_t *length)
{
	uint32_t magic = 0;
	uint16_t version[2] = { 0 };
	int err = read_bytes(file, &magic, sizeof(magic));

	if (err)
		return err;
	file->is_swapped = magic == __builtin_bswap32(ORDER_MAGIC);
	*length = word(file, *length);
	if (word(file, magic) != ORDER_MAGIC || *length < BLOCK_MIN + 16 ||
	    *length % 4)
		return refuse(file, "unknown file format");
	file->left = *length - BLOCK_MIN - sizeof(magic);
	file->section = file->n;
	err = take(file, version, sizeof(version));
	if (!err && half(file, version[0]) != VERSION)
		err = refuse(file, "pcapng of version %u is not supported",
			     half(file, version[0]));
	return err;
}

/* if_tsresol: a power of 10 or, with the high bit, of 2. @return units in a second; 0: too many */
static uint64_t read_resolution(uint8_t value)
{
	uint64_t units = 1;

	if (value & 0x80)
		return (value & 0x7f) < 64 ? UINT64_C(1) << (value & 0x7f) : 0;
	if (value > 19)
		return 0;
	while (value--)
		units *= 10;
	return units;
}

static int read_interface_options(struct pcapng_file *file,
				  struct interface *interface)
{
	char value[NAME_SIZE] = "";
	uint16_t code = 0, len = 0;
	int ret;

	while ((ret = next_option(file, &code, value, sizeof(value) - 1, &len)) ==
	       1) {
		uint64_t offset;

		value[min_u64(len, sizeof(value) - 1)] = '\0';
		memcpy(&offset, value, sizeof(offset));
		if (code == OPTION_NAME && *value && !interface->name) {
			interface->name = strdup(value);
			if (!interface->name)
				return -ENOMEM;
		} else if (code == OPTION_RESOLUTION && len) {
			interface->units = read_resolution((uint8_t)*value);
		} else if (code == OPTION_OFFSET && len == sizeof(offset)) {
			interface->offset_s =
				(int64_t)(file->is_swapped ?
						  __builtin_bswap64(offset) :
						  offset);
		}
	}
	if (!ret && !interface->units)
		return refuse(
			file,
			"the unit of an interface's time stamps is not supported");
	return ret;
}

static int read_interface(struct pcapng_file *file)
{
	struct interface interface = { .units = 1000000 };
	uint16_t link[2] = { 0 };
	int err;

	if (file->n == INTERFACES_MAX)
		return refuse(file, "it has more than %d interfaces",
			      INTERFACES_MAX);
	if (!array_reserve(&file->interfaces, file->n, &file->capacity,
			   sizeof(*file->interfaces), 4))
		return -ENOMEM;
	err = take(file, link, sizeof(link));
	err = err ?: take_words(file, &interface.snap, 1);
	interface.link = err ? 0 : half(file, link[0]);
	err = err ?: read_interface_options(file, &interface);
	file->interfaces[file->n++] = interface; /* its name is freed with it */
	return err;
}

/* ---- Packets ------------------------------------------------------------------------ */

/* Bounded at the year 2255, which leaves room for sums; no file has packets before 1970. */
static int64_t time_of(const struct interface *interface, uint64_t stamp)
{
	const int64_t seconds_max = 9000000000;
	const unsigned __int128 rest = stamp % interface->units;
	const int64_t offset = interface->offset_s;
	int64_t seconds = (int64_t)min_u64(stamp / interface->units,
					   (uint64_t)seconds_max);

	if (offset > seconds_max || offset < -seconds_max ||
	    seconds + offset < 0 || seconds + offset > seconds_max)
		seconds = seconds_max;
	else
		seconds += offset;
	return seconds * NSEC_PER_SEC +
	       (int64_t)(rest * NSEC_PER_SEC / interface->units);
}

/* The bytes of a packet, which are filled up to words in the file. */
static int take_packet(struct pcapng_file *file, uint32_t id, uint64_t stamp,
		       struct file_packet *packet)
{
	const struct interface *interface;
	const uint32_t kept = min_u64(packet->len, PCAPNG_KEPT);

	if (id >= file->n - file->section)
		return refuse(file,
			      "a packet is of interface %u, which is not described",
			      id);
	interface = &file->interfaces[file->section + id];
	packet->link = interface->link;
	packet->interface = interface->name;
	packet->ns = time_of(interface, stamp);
	packet->bytes = file->bytes;
	if (packet->len > file->left)
		return refuse(file,
			      "a packet of %u bytes is longer than its block",
			      packet->len);
	return take(file, file->bytes, kept) ?:
		       skip(file, min_u64((packet->len + UINT64_C(3)) / 4 * 4,
					  file->left + (uint64_t)kept) -
					  kept);
}

static int read_passed(struct pcapng_file *file, enum passed *ret_passed)
{
	uint16_t code = 0, len = 0;
	uint32_t flags = 0;
	int ret;

	while ((ret = next_option(file, &code, &flags, sizeof(flags), &len)) == 1)
		if (code == OPTION_FLAGS && len == sizeof(flags))
			*ret_passed = word(file, flags) & FLAGS_DIRECTION;
	return ret;
}

static int read_packet(struct pcapng_file *file, bool is_old,
		       struct file_packet *packet)
{
	uint32_t words[5] = { 0 }; /* interface, time (2), lengths (2) */
	uint16_t id[2] = { 0 };
	int err = is_old ? take(file, id, sizeof(id)) :
			   take_words(file, words, 1);

	if (is_old && !err)
		words[0] = half(file, id[0]); /* the rest counts drops */
	err = err ?: take_words(file, words + 1, 4);
	if (err)
		return err;
	packet->len = words[3];
	packet->wire_len = words[4];
	return take_packet(file, words[0], (uint64_t)words[1] << 32 | words[2], packet) ?:
		       read_passed(file, &packet->passed);
}

/* It has no time, interface and length: as much is there as the snapshot length permits. */
static int read_simple_packet(struct pcapng_file *file, struct file_packet *packet)
{
	int err = take_words(file, &packet->wire_len, 1);
	uint32_t snap = file->n > file->section ?
				file->interfaces[file->section].snap :
				0;

	if (err)
		return err;
	packet->len = min_u64(packet->wire_len, snap ?: UINT32_MAX);
	err = take_packet(file, 0, 0, packet);
	packet->ns = 0;
	return err;
}

/* ---- Blocks ------------------------------------------------------------------------- */

/* @return 1: it has a packet; 0: not; or an error */
static int read_block(struct pcapng_file *file, uint32_t type,
		      struct file_packet *packet)
{
	switch (type) {
	case BLOCK_INTERFACE:
		return read_interface(file);
	case BLOCK_OLD_PACKET:
	case BLOCK_PACKET:
		return read_packet(file, type == BLOCK_OLD_PACKET, packet) ?: 1;
	case BLOCK_SIMPLE_PACKET:
		return read_simple_packet(file, packet) ?: 1;
	default:
		return 0;
	}
}

static int end_block(struct pcapng_file *file, uint32_t length)
{
	uint32_t again = 0;
	int err = skip(file, file->left) ?:
			  read_bytes(file, &again, sizeof(again));

	if (!err && word(file, again) != length)
		err = refuse(file,
			     "the two lengths of a pcapng block differ: %u, %u",
			     length, word(file, again));
	return err;
}

int pcapng_next(struct pcapng_file *file, struct file_packet *ret_packet)
{
	int ret = 0;

	while (!ret) {
		uint32_t head[2] = { 0 }; /* type, length */
		const size_t n = fread(head, 1, sizeof(head), file->stream);
		int err = 0;

		if (!n && feof(file->stream))
			return 0;
		if (n < sizeof(head))
			return read_bytes(file, head, sizeof(head));
		*ret_packet = (struct file_packet){ 0 };
		if (!file->has_begun && head[0] != BLOCK_SECTION)
			return refuse(file, "unknown file format");
		file->has_begun = true;
		if (head[0] == BLOCK_SECTION) {
			err = read_section(file, &head[1]);
		} else {
			head[0] = word(file, head[0]);
			head[1] = word(file, head[1]);
			if (head[1] < BLOCK_MIN || head[1] % 4)
				return refuse(file,
					      "a pcapng block has a length of %u",
					      head[1]);
			file->left = head[1] - BLOCK_MIN;
			ret = read_block(file, head[0], ret_packet);
		}
		if (!err)
			err = ret < 0 ? ret : end_block(file, head[1]);
		if (err)
			return err;
	}
	return ret;
}

struct pcapng_file *pcapng_open(FILE *stream)
{
	struct pcapng_file *file = calloc(1, sizeof(*file));

	if (file)
		file->stream = stream;
	return file;
}

void pcapng_close(struct pcapng_file *file)
{
	if (!file)
		return;
	for (uint32_t i = 0; i < file->n; i++)
		free(file->interfaces[i].name);
	free(file->interfaces);
	free(file);
}
