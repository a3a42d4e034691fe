/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A file that is rotated by size and time. It is written in pieces: lines, compressed
 * lines, or messages. A file is rotated only between pieces, and only if it has records; a
 * worker does what has to wait for the disk. rotate_disk.h has the names.
 */
#ifndef NETOBS_SINK_FILE_ROTATE_H
#define NETOBS_SINK_FILE_ROTATE_H

#include "sink/module.h"

#include <sys/types.h>

/* Flows are confidential. */
#define ROTATE_MODE 0640

struct rotate_options {
	uint64_t max_bytes;   /* 0: any number */
	uint64_t interval_ms; /* 0: any time */
	uint32_t keep;	      /* files; 0: all */
	uint64_t sync_ms;     /* 0: when a file is complete */
	unsigned int mode;    /* of new files, less the umask; 0: ROTATE_MODE */
	const char *suffix;   /* ".gz", ".zst"; NULL: none */
};

/**
 * Read the options rotate.*, and mode; errors are logged.
 *
 * @param least  of max_bytes
 * @return whether the file is to be rotated
 */
bool rotate_parse(struct spec *spec, uint64_t least,
		  struct rotate_options *ret_options);

struct rotated;

/*
 * @path: stays in its place until rotate_close(). Its outages are those of @host. Errors:
 * as open(2); -EBUSY: another process has it. They are logged.
 */
int rotate_open(const char *path, const struct rotate_options *options,
		struct sink_host *host, struct rotated **ret_rotated);

/* Give the file that is written its final name. NULL is fine. */
void rotate_close(struct rotated *rotated);

/** @return PEER_NEW: records that are not acknowledged are to be written again */
enum peer_state rotate_prepare(struct rotated *rotated);

/** Rotate if @len more bytes need that. @return 0; -EAGAIN: not now */
int rotate_make_room(struct rotated *rotated, size_t len);

/**
 * Write a piece.
 *
 * @return 0; -EAGAIN: it was not written whole: call again with the same piece
 */
int rotate_write(struct rotated *rotated, const void *piece, size_t len);

/* All records before @end are written. */
void rotate_written(struct rotated *rotated, struct position end);

/** @return how many files were begun; the last one is empty when this has grown */
uint64_t rotate_begun(const struct rotated *rotated);

/** @return when rotate_prepare() has to be called at the latest, as for wake_in() */
int rotate_wait_ms(const struct rotated *rotated);

void rotate_counters(const struct rotated *rotated, sink_counter_fn *take,
		     void *ctx);

#endif
