/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The bodies of connections (bpf/connection.h) and their alert states, allocated in parts. There is
 * one part at first; others are added as connections take bodies. The body numbers of a part are
 * offered to the programs once they see its maps and user space has mapped it.
 *
 * Steps: make the maps, put them into the programs' maps of maps in a thread, map them, offer the
 * body numbers. conn_parts_grow() does the steps that need no waiting, and the next call continues,
 * also after a failure. It is called when the programs give notice, a millisecond after a call that
 * left steps, and after each drain: a lost notice delays growth until the next drain at most.
 */
#ifndef NETOBS_ENGINE_CONN_PARTS_H
#define NETOBS_ENGINE_CONN_PARTS_H

#include "bpf/connection.h"
#include "program_set.h"

#include <stdbool.h>

/* The maps of a part. */
struct conn_part {
	int bodies; /* map of bodies; -1: no part */
	int states; /* map of alert states; -1: no part, or no rules */
};

#define CONN_PART_NONE ((struct conn_part){ -1, -1 })

/* All zeroes: connections are not measured. */
struct conn_parts {
	const struct conn_body **bodies; /* by part, each mapped */
	uint32_t bits;			 /* log2 of the bodies per part */
	uint32_t n; /* parts that the programs see and this process has mapped */
	uint32_t n_max;
	int bodies_fd; /* descriptors of the set's maps, these three */
	int states_fd; /* -1: there are no rules */
	int free_fd;
	struct conn_part next; /* the part that is being added */
	struct map_grace *showing; /* thread that puts a map of it into a map of maps; NULL: none runs */
	int showing_in; /* descriptor of that map of maps */
	uint32_t n_new; /* body numbers that were offered a first time: 1 to this one */
	uint32_t n_offered; /* all offers, also of bodies that were used before */
};

/**
 * @param places   a power of two
 * @param at_once  make one part for all places
 * @return conn_parts.bits
 */
uint32_t conn_parts_bits(uint32_t places, bool at_once);

/** @return 0, or -errno */
int conn_part_make(uint32_t bits, bool has_states, struct conn_part *ret_part);

void conn_part_close(struct conn_part *part);

/**
 * Open the parts of a table, and add the first one.
 *
 * @param maps    loaded, with inner maps like those of @first
 * @param first   the first part; taken over, and set to CONN_PART_NONE
 * @param places  of the table
 * @return 0, or -errno
 */
int conn_parts_open(struct conn_parts *parts, const struct program_set *maps,
		    struct conn_part *first, uint32_t bits, uint32_t places);

void conn_parts_close(struct conn_parts *parts);

/**
 * Add a part if few bodies are free. It does not wait, so adding a part takes two or three calls.
 *
 * @param used  bodies in use
 * @return 0: enough are free; -EAGAIN: call again in a millisecond; other -errno: the next call
 *         tries again
 */
int conn_parts_grow(struct conn_parts *parts, uint64_t used);

/** @return bodies of all parts that the programs have */
static inline uint64_t conn_parts_count(const struct conn_parts *parts)
{
	return (uint64_t)parts->n << parts->bits;
}

/* Offer the number of an unused body to the programs. @return 0, or -errno */
int conn_parts_offer(struct conn_parts *parts, uint32_t body);

/** @return memory in bytes: of the parts that exist; of all parts that may be added */
uint64_t conn_parts_bytes(const struct conn_parts *parts);
uint64_t conn_parts_bytes_most(const struct conn_parts *parts);

/** @return the body of number @body, from 1 on; NULL: no part has that number */
static inline const struct conn_body *
conn_parts_body(const struct conn_parts *parts, uint32_t body)
{
	const uint32_t number = body - 1, part = number >> parts->bits;

	return body && part < parts->n ?
		       &parts->bodies[part][number & ((1U << parts->bits) - 1)] :
		       NULL;
}

#endif
