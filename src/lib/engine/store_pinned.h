/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A store of which the maps outlive the process: what it takes over of an earlier one, and what it notes for
 * the next. See pinned.h.
 */
#ifndef NETOBS_ENGINE_STORE_PINNED_H
#define NETOBS_ENGINE_STORE_PINNED_H

#include "store_state.h"

struct conn_part;

/**
 * Load the maps of an earlier process, with @first for those of connections.
 *
 * @return whether there were any; if they cannot be read, they are discarded, which is logged, and none are
 *         loaded
 */
bool store_adopt(struct store *store, const struct conn_part *first);

/* Find the options of the earlier process that stay in use: store.kept, and a warning that names them. */
void store_note_kept(struct store *store);

/* Pin the maps. If that fails, which is logged, the context goes on without it. */
void store_publish(struct store *store);

/*
 * Note where the maps are pinned that @counted of a generation has been drained, of which
 * @unreported is in no record yet, in one moment: of a process that is killed, the next one finds all of it,
 * or nothing.
 */
void store_note_drained(const struct store *store, uint32_t generation,
			const struct counters *counted,
			const struct count *unreported);

#endif
