/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The bodies of connections (bpf/connection.h), and what rules know about these, in parts. There is
 * one part at first; others follow while connections take bodies. The programs get the numbers of its
 * bodies once they see a part and it is mapped.
 *
 * A part is made, put into the maps of the programs by a thread, taken as a part, and its bodies are
 * offered. conn_parts_grow() does what is possible of this, and the next call goes on with the
 * rest, whatever failed. It is called when the programs give notice, a millisecond after a call with
 * something left to do, and after each drain: so a notice that is lost delays growth until then, no longer.
 */
#ifndef NETOBS_ENGINE_CONN_PARTS_H
#define NETOBS_ENGINE_CONN_PARTS_H

#include "bpf/connection.h"
#include "program_set.h"

#include <stdbool.h>

/* The maps of a part. */
struct conn_part {
	int bodies; /* -1: there is none */
	int states; /* -1: nor are there rules */
};

#define CONN_PART_NONE ((struct conn_part){ -1, -1 })

/* Zeroes: there is no table. */
struct conn_parts {
	const struct conn_body **bodies; /* by part, each mapped */
	uint32_t bits;			 /* a part has 1 << so many bodies */
	uint32_t n; /* parts that the programs have the numbers of */
	uint32_t n_max;
	int bodies_fd; /* maps of the set, these three */
	int states_fd; /* -1: there are no rules */
	int free_fd;
	struct conn_part next; /* that is being added */
	struct map_grace *showing; /* to the programs, a map of it; NULL: not begun */
	int showing_in;		   /* which map of maps */
	uint32_t n_new; /* bodies that were offered a first time, from 1 on */
	uint32_t n_offered; /* including those that were used before */
};

/**
 * @param places   a power of two
 * @param at_once  there is one part, of all places
 * @return conn_parts.bits
 */
uint32_t conn_parts_bits(uint32_t places, bool at_once);

/** @return 0, or -errno */
int conn_part_make(uint32_t bits, bool has_states, struct conn_part *ret_part);

void conn_part_close(struct conn_part *part);

/**
 * Open the parts of a table, and add the first one.
 *
 * @param maps    loaded for parts like @first
 * @param first   is taken over, and CONN_PART_NONE then
 * @param places  of the table
 * @return 0, or -errno
 */
int conn_parts_open(struct conn_parts *parts, const struct program_set *maps,
		    struct conn_part *first, uint32_t bits, uint32_t places);

void conn_parts_close(struct conn_parts *parts);

/**
 * Add a part if few bodies are free. Does not wait, so this takes two or three calls.
 *
 * @param used  bodies that places have
 * @return 0: enough are free; -EAGAIN: call again in a millisecond; other -errno: the next call
 *         tries again
 */
int conn_parts_grow(struct conn_parts *parts, uint64_t used);

/** @return bodies of all parts that the programs have */
static inline uint64_t conn_parts_count(const struct conn_parts *parts)
{
	return (uint64_t)parts->n << parts->bits;
}

/* Give the number of a body to the programs. Nothing uses it. @return 0, or -errno */
int conn_parts_offer(struct conn_parts *parts, uint32_t body);

/** @return memory of the parts, in bytes: those that there are, or all that there may be */
uint64_t conn_parts_bytes(const struct conn_parts *parts);
uint64_t conn_parts_bytes_most(const struct conn_parts *parts);

/** @return the body of that number, from 1 on; NULL: there is none */
static inline const struct conn_body *
conn_parts_body(const struct conn_parts *parts, uint32_t body)
{
	const uint32_t number = body - 1, part = number >> parts->bits;

	return body && part < parts->n ?
		       &parts->bodies[part][number & ((1U << parts->bits) - 1)] :
		       NULL;
}

#endif
