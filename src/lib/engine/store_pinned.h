/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A store whose maps outlive the process: takes over the maps of an earlier process, and notes for
 * the next one what was drained. See pinned.h.
 */
#ifndef NETOBS_ENGINE_STORE_PINNED_H
#define NETOBS_ENGINE_STORE_PINNED_H

#include "store_state.h"

struct conn_part;

/**
 * Load the maps of an earlier process, and new maps for connections with inner maps like @first.
 *
 * @return false: there are none, or they cannot be read and were discarded, which is logged
 */
bool store_adopt(struct store *store, const struct conn_part *first);

/* Set store.kept to the earlier process's options that stay in use, and log a warning. */
void store_note_kept(struct store *store);

/* Pin the maps. A failure is logged, and the context goes on without pinning. */
void store_publish(struct store *store);

/*
 * Note in the pinned state that @counted of a generation was drained, of which @unreported is in no
 * record yet. The change is atomic: if the process is killed, the next one finds all of it, or nothing.
 */
void store_note_drained(const struct store *store, uint32_t generation,
			const struct counters *counted,
			const struct count *unreported);

#endif
