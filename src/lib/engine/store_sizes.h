/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* How large the tables of a store are: by its options, the CPUs, and the memory that there is. */
#ifndef NETOBS_ENGINE_STORE_SIZES_H
#define NETOBS_ENGINE_STORE_SIZES_H

#include "store_state.h"

/**
 * Count the CPUs, and choose by them how large the maps are that are loaded.
 *
 * @return 0; < 0: the CPUs cannot be counted, which was logged
 */
int store_choose_sizes(struct store *store);

/**
 * Limit what entries and flows may take beside the maps, which are loaded.
 *
 * @return 0; -EINVAL: max_memory is too little; -ENOMEM: the memory control group leaves too little; both were
 *         logged
 */
int store_limit_memory(struct store *store);

#endif
