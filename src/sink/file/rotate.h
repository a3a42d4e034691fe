/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A file that is rotated by size and time. It is written in pieces: lines, what a
 * compressor made of some, or messages. A file is rotated only between pieces, and none is
 * without records; what has to wait for the disk, a worker does. rotate_part.h has the
 * names.
 */
#ifndef NETOBS_SINK_FILE_ROTATE_H
#define NETOBS_SINK_FILE_ROTATE_H

#include "sink/module.h"
#include "sink/peer_state.h"

#include <sys/types.h>

/* Who talked with whom is not for everybody. */
#define ROTATE_MODE 0640

struct rotate_options {
	uint64_t max_bytes;   /* 0: any number */
	uint64_t interval_ms; /* 0: any time */
	uint32_t keep;	      /* files; 0: all */
	uint64_t sync_ms;     /* 0: when a file is complete */
	unsigned int mode;    /* of new files, less the umask; 0: ROTATE_MODE */
	const char *suffix;   /* ".gz", ".zst"; NULL: none */
};

/*
 * Whether @spec wants it, by rotate.*, and mode; what is wrong with those is logged. @least: what
 * max_bytes may be.
 */
bool rotate_parse(struct spec *spec, uint64_t least,
		  struct rotate_options *ret_options);

struct rotated;

/* Errors: as open(2); -EBUSY: another process has it. They are logged. */
int rotate_open(const char *path, const struct rotate_options *options,
		struct sink_host *host, struct rotated **ret_rotated);

/* The file that is being written gets its final name. NULL is fine. */
void rotate_close(struct rotated *rotated);

/* PEER_NEW: what was not acknowledged is to be written again. */
enum peer_state rotate_prepare(struct rotated *rotated);

/* Turns, if it must to take @len more bytes. -EAGAIN: it could not. */
int rotate_make_room(struct rotated *rotated, size_t len);

/*
 * A piece, all or nothing. -EAGAIN: it did not take all, and wants the same piece again.
 */
int rotate_write(struct rotated *rotated, const void *piece, size_t len);

/* All records before @end, of which there are more than before, are written. */
void rotate_written(struct rotated *rotated, struct position end);

/* How many files were begun: when one more was, it is empty. */
uint64_t rotate_begun(const struct rotated *rotated);

/* When rotate_prepare() has something to do anyway, as wake_in() has it. */
int rotate_wait_ms(const struct rotated *rotated);

void rotate_counters(const struct rotated *rotated, sink_counter_fn *take,
		     void *ctx);

#endif
