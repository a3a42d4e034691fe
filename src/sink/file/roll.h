/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A file that is rotated by size and time. It is written in pieces: lines, what a
 * compressor made of some, or messages. A file turns only between pieces, and none is
 * without records; what has to wait for the disk, a worker does. roll_names.h has the
 * names.
 */
#ifndef NETOBS_SINK_FILE_ROLL_H
#define NETOBS_SINK_FILE_ROLL_H

#include "sink/module.h"
#include "sink/peer_state.h"

#include <sys/types.h>

/* Who talked with whom is not for everybody. */
#define ROLL_MODE 0640

struct roll_options {
	uint64_t max_bytes;   /* 0: any number */
	uint64_t interval_ms; /* 0: any time */
	uint32_t keep;	      /* files; 0: all */
	uint64_t sync_ms;     /* 0: when a file is complete */
	unsigned int mode;    /* of new files, less the umask; 0: ROLL_MODE */
	const char *suffix;   /* ".gz", ".zst"; NULL: none */
};

/*
 * Whether @spec wants it, by rotate.*, and mode; what is wrong with those is logged. @least: what
 * max_bytes may be.
 */
bool roll_parse(struct spec *spec, uint64_t least,
		struct roll_options *ret_options);

struct roll;

/* Errors: as open(2); -EBUSY: another process has it. They are logged. */
int roll_open(const char *path, const struct roll_options *options,
	      struct sink_host *host, struct roll **ret_roll);

/* The file that is being written gets its final name. NULL is fine. */
void roll_close(struct roll *roll);

/* PEER_NEW: what was not acknowledged is to be written again. */
enum peer_state roll_prepare(struct roll *roll);

/* Turns, if it must to take @len more bytes. -EAGAIN: it could not. */
int roll_make_room(struct roll *roll, size_t len);

/*
 * A piece, all or nothing. -EAGAIN: it did not take all, and wants the same piece again.
 */
int roll_write(struct roll *roll, const void *piece, size_t len);

/* All records before @end, of which there are more than before, are written. */
void roll_written(struct roll *roll, struct mark end);

/* How many files were begun: when one more was, it is empty. */
uint64_t roll_begun(const struct roll *roll);

/* When roll_prepare() has something to do anyway, as wake_in() has it. */
int roll_wait_ms(const struct roll *roll);

void roll_counters(const struct roll *roll, sink_counter_fn *take, void *ctx);

#endif
