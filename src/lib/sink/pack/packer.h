/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Compresses records that are text, if a compressor is chosen. */
#ifndef NETOBS_SINK_PACK_PACKER_H
#define NETOBS_SINK_PACK_PACKER_H

#include "base/spec.h"
#include "compressor.h"

#include <stdint.h>

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
