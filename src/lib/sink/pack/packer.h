/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Compresses records that are text, if a compressor is chosen. */
#ifndef NETOBS_SINK_PACK_PACKER_H
#define NETOBS_SINK_PACK_PACKER_H

#include "base/spec.h"

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

/*
 * Compression, in pieces that can each be decompressed alone. A file of such pieces
 * is what gzip(1) or zstd(1) takes, and so is any number of whole pieces from its
 * beginning: a file that a crash has torn is cut there. So each piece has a head
 * that has its length, in a place that decompressors skip: numbers are
 * little-endian.
 *
 *   gzip  a member with an extra field "NO" of 4 bytes: the member's length
 *         (RFC 1952, 2.3.1.1)
 *   zstd  a skippable frame of 4 bytes: the length of the frame that follows
 *         (RFC 8878, 3.1.2)
 */

struct compressor {
	const char *version; /* NETOBS_VERSION */
	/* Bytes that a piece of @len bytes takes at most. */
	size_t (*room)(size_t len);
	int (*open)(void **ret_state);
	/* Make one piece; its length, or -errno. @to has room for it. */
	ssize_t (*pack)(void *state, const char *from, size_t len, char *to);
	void (*close)(void *state);
};

/* The symbol that each shared object exports. */
#define COMPRESSOR_SYMBOL "netobs_compressor"
extern const struct compressor netobs_compressor;

enum {
	GZIP_HEAD = 20,
	GZIP_PLAIN_HEAD = 10, /* without an extra field */
	ZSTD_HEAD = 12,
	PIECE_HEAD = GZIP_HEAD, /* the longest */
};

static const unsigned char gzip_head[GZIP_HEAD - 4] = {
	0x1f, 0x8b, 8,	 4,	      /* magic, deflate, FEXTRA */
	0,    0,    0,	 0,   0, 255, /* no time, no flags, no system */
	8,    0,    'N', 'O', 4, 0,   /* the extra field */
};
static const unsigned char zstd_head[ZSTD_HEAD - 4] = { 0x50, 0x2a, 0x4d, 0x18,
							4,    0,    0,	  0 };

static inline void put_le32(char *to, uint32_t value)
{
	value = htole32(value);
	memcpy(to, &value, sizeof(value));
}

static inline uint32_t get_le32(const char *from)
{
	uint32_t value;

	memcpy(&value, from, sizeof(value));
	return le32toh(value);
}

/* The length of the piece that starts with these PIECE_HEAD bytes; 0: none does. */
static inline uint64_t piece_len(const char *head)
{
	if (!memcmp(head, gzip_head, sizeof(gzip_head)))
		return get_le32(head + sizeof(gzip_head));
	if (!memcmp(head, zstd_head, sizeof(zstd_head)))
		return ZSTD_HEAD + (uint64_t)get_le32(head + sizeof(zstd_head));
	return 0;
}

/*
 * Remove the head of a piece, since not all readers of a body skip extra fields: Netty 4.1, and so
 * OpenSearch, decodes extra fields as compressed data (JdkZlibDecoder).
 *
 * @return bytes in front that are no longer part of the piece
 */
static inline size_t piece_behead(char *piece)
{
	static const char plain[GZIP_PLAIN_HEAD] = { 0x1f, (char)0x8b,
						     8, [9] = (char)255 };

	if (memcmp(piece, gzip_head, sizeof(gzip_head)))
		return ZSTD_HEAD;
	memcpy(piece + GZIP_HEAD - sizeof(plain), plain, sizeof(plain));
	return GZIP_HEAD - sizeof(plain);
}

struct packer_options {
	const char *kind;   /* kind of the sink, for messages; the spec's */
	const char *name;   /* name of the compressor; NULL: no compression */
	const char *suffix; /* suffix of compressed files */
};

struct packer {
	const struct compressor *compressor; /* NULL: no compression */
	void *state;
	char *buf;
	size_t room;
};

/** @return whether @spec asks for compression */
bool packer_parse(struct spec *spec, struct packer_options *ret_options);

/**
 * @return 0; -ENOENT: it cannot be loaded, which is logged; -ENOMEM
 */
int packer_open(struct packer *packer, const struct packer_options *options,
		const struct log *log);
void packer_close(struct packer *packer);

/**
 * Compress @lines.
 *
 * @param ret_bytes  to be written; valid until the next call
 * @return their number, or -errno
 */
ssize_t packer_pack(struct packer *packer, const char *lines, size_t len,
		    const char **ret_bytes);

/** Compress @text to one plain member or frame; the protocol states its length. @return as packer_pack() */
ssize_t packer_pack_body(struct packer *packer, const char *text, size_t len,
			 const char **ret_bytes);

/* Files of lines, of compressed pieces of them, or of IPFIX messages. */

/* The suffix of a file's compression, found from its contents: ".gz", ".zst" or "". */
const char *pieces_suffix(int fd);

/* The end of the last whole piece of @size bytes, of pieces that begin with their length. */
int pieces_find_end(int fd, uint64_t size, uint64_t *ret_end);

/* Cut off a torn piece at the end, which a crash has left. Errors: as pread(2), ftruncate(2). */
int pieces_cut(int fd, uint64_t *ret_size);

#endif
