/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Faces of translations that packets had, and that found no room in the table. The table may have other
 * translations with such a face, so the translation of these packets is not known. This is a set of hashes: a
 * face that was not lost may be taken for a lost one, but not the other way round.
 */
#ifndef NETOBS_FLOWS_LOST_FACES_H
#define NETOBS_FLOWS_LOST_FACES_H

#include <stdbool.h>
#include <stdint.h>

/* The generation that programs write to, and the one before, which is read. */
enum { LOST_GENERATIONS = 2 };

struct lost_faces {
	uint64_t *sets[LOST_GENERATIONS]; /* take memory as they are used */
	bool is_used[LOST_GENERATIONS];
	uint32_t current;
};

/** @return 0; -ENOMEM */
int lost_faces_init(struct lost_faces *lost);

void lost_faces_done(struct lost_faces *lost);

/* Another generation begins: what was lost before the last one is over. */
void lost_faces_begin(struct lost_faces *lost);

void lost_faces_add(struct lost_faces *lost, uint64_t hash);

bool lost_faces_has(const struct lost_faces *lost, uint64_t hash);

#endif
