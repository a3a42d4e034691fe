/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A ring buffer of the kernel whose records can be looked at before they are taken, so that
 * those of several ring buffers can be put in order. libbpf's reader hands each over at once,
 * and writes its position with each, to memory that programs read.
 */
#ifndef NETOBS_CAPTURE_RING_H
#define NETOBS_CAPTURE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring {
	int fd; /* becomes readable when a program says so */
	size_t bytes;
	unsigned long *consumer; /* pages of the kernel's: how far it was read, and */
	const unsigned long *producer; /* written, with the data behind it, twice */
	const uint8_t *data;
	unsigned long at;  /* which the kernel knows after ring_release() */
	unsigned long end; /* of what was there at the last ring_look() */
};

/** @return 0 or -errno: nothing is open then */
int ring_open(struct ring *ring, size_t bytes);

/* A ring that is zeroed, or not open, is fine. */
void ring_close(struct ring *ring);

/* From now on, ring_peek() finds what is there now. */
void ring_look(struct ring *ring);

/** @return the next record; NULL: there is none, or a program still writes to it */
const void *ring_peek(struct ring *ring);

/* Go on behind the record that ring_peek() has found. It stays valid until ring_release(). */
void ring_skip(struct ring *ring);

/* Give the room of records that were skipped back to programs. */
void ring_release(struct ring *ring);

/** @return bytes that were not given back */
size_t ring_used(const struct ring *ring);

#endif
