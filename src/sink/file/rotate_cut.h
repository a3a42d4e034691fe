/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What is whole of a file of lines, of compressed pieces of them, or of IPFIX messages. */
#ifndef NETOBS_SINK_FILE_ROTATE_CUT_H
#define NETOBS_SINK_FILE_ROTATE_CUT_H

#include <stdint.h>

/* How it is compressed: ".gz", ".zst" or "". */
const char *rotate_suffix(int fd);

/* Cut off what a crash has torn at its end. Errors: as pread(2), ftruncate(2). */
int rotate_cut(int fd, uint64_t *ret_size);

#endif
