/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A file that is rotated by size and time. It is written in pieces: lines, compressed
 * lines, or messages. A file is rotated only between pieces, and only if it has records.
 * What is written to DIR/flows.json goes to
 *
 *   flows.json.part                        while it is written
 *   flows-20261121T164500Z.json            once it is complete
 *   flows-20261121T164500Z_001.json        if there is one of that name
 *
 * with .gz or .zst at the end. The time is that of its first record's writing, UTC. In
 * alphabetical order the names are in order of time.
 */
#ifndef NETOBS_SINK_FILE_ROTATE_H
#define NETOBS_SINK_FILE_ROTATE_H

#include "sink/module.h"

/* Flows are confidential. */
#define ROTATE_MODE 0640

struct rotate_options {
	uint64_t max_bytes;   /* 0: any number */
	uint64_t interval_ms; /* 0: any time */
	uint32_t keep;	      /* files; 0: all */
	unsigned int mode; /* mode of new files, less the umask; 0: ROTATE_MODE */
	const char *suffix; /* ".gz", ".zst"; NULL: none */
};

/** Read the options. @least: the smallest max_bytes. @return true if the file rotates */
bool rotate_parse(struct spec *spec, uint64_t least,
		  struct rotate_options *ret_options);

struct rotated;

/* @path: not copied, so it must stay valid. Errors, as of open(2), are logged. */
int rotate_open(const char *path, const struct rotate_options *options,
		struct sink_host *host, struct rotated **ret_rotated);

/* Give the file that is written its final name. NULL is fine. */
void rotate_close(struct rotated *rotated);

/*
 * Begin a new file if it is time, or if less than @room bytes are left in this one. PEER_NEW: it
 * is new: write again a piece that was not written whole.
 */
enum peer_state rotate_prepare(struct rotated *rotated, size_t room);

/*
 * Write a piece, to a new file if this one has no room for it. -EAGAIN: it was not written whole:
 * call again with the same piece.
 */
int rotate_write(struct rotated *rotated, const void *piece, size_t len,
		 bool has_records);

/** @return when rotate_prepare() has to be called at the latest, as for wake_in() */
int rotate_wait_ms(const struct rotated *rotated);

void rotate_counters(const struct rotated *rotated, sink_counter_fn *take,
		     void *ctx);

#endif
