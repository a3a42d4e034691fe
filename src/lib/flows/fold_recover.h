/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Goes on with the part of a fold that an earlier process has left (fold_kept.h): checks it,
 * undoes the addition that the process was killed in, takes the chunks, and makes the indexes.
 */
#ifndef NETOBS_FLOWS_FOLD_RECOVER_H
#define NETOBS_FLOWS_FOLD_RECOVER_H

#include "fold_state.h"

static inline size_t fold_kept_bytes(uint32_t n_sources)
{
	return sizeof(struct fold_kept) + n_sources * sizeof(uint64_t);
}

/**
 * Keep a fold, which is empty, in memory that outlives the process, and take over the entries
 * that an earlier process has left there.
 *
 * @param kept    of fold_kept_bytes(); zeroes: there was no earlier process
 * @param memory  stays the caller's
 * @return 0; -ESTALE: another version wrote it, or it is damaged, and the fold is empty;
 *         -ENOMEM: nothing has changed
 */
int fold_keep(struct fold *fold, struct fold_kept *kept, uint32_t n_sources,
	      const struct fold_memory *memory);

#endif
