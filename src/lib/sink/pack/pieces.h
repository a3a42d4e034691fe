/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Files of lines, of compressed pieces of them, or of IPFIX messages. */
#ifndef NETOBS_SINK_PACK_PIECES_H
#define NETOBS_SINK_PACK_PIECES_H

#include <stdint.h>

/* The suffix of a file's compression, found from its contents: ".gz", ".zst" or "". */
const char *pieces_suffix(int fd);

/* Cut off a torn piece at the end, which a crash has left. Errors: as pread(2), ftruncate(2). */
int pieces_cut(int fd, uint64_t *ret_size);

#endif
