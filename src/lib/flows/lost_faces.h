/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Faces of translations that found no room in the table. The table may have other translations
 * with such a face, so for packets that have it, the translation is unknown. This is a set of
 * hashes: a face may be taken for a lost one by mistake, but no lost face is missed.
 */
#ifndef NETOBS_FLOWS_LOST_FACES_H
#define NETOBS_FLOWS_LOST_FACES_H

#include <stdbool.h>
#include <stdint.h>

/* The generation that programs write to, and the previous one, which is being read. */
enum { LOST_GENERATIONS = 2 };

struct lost_faces {
	uint64_t *sets[LOST_GENERATIONS]; /* take memory as they are used */
	bool is_used[LOST_GENERATIONS];
	uint32_t current;
};

/** @return 0; -ENOMEM */
int lost_faces_init(struct lost_faces *lost);

void lost_faces_done(struct lost_faces *lost);

/* Another generation begins: faces that were lost before the previous one are removed. */
void lost_faces_begin(struct lost_faces *lost);

void lost_faces_add(struct lost_faces *lost, uint64_t hash);

bool lost_faces_has(const struct lost_faces *lost, uint64_t hash);

#endif
