/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Chooses the sizes of a store's tables by its options, the CPUs, and the available memory. */
#ifndef NETOBS_ENGINE_STORE_SIZES_H
#define NETOBS_ENGINE_STORE_SIZES_H

#include "store_state.h"

/**
 * Count the CPUs, and choose the sizes of the maps to be loaded.
 *
 * @return 0; < 0: the CPUs cannot be counted, which was logged
 */
int store_choose_sizes(struct store *store);

/**
 * Once the maps are loaded: limit the memory of entries and flows.
 *
 * @return 0; -EINVAL: max_memory is too little; -ENOMEM: the memory control group leaves too little; both were
 *         logged
 */
int store_limit_memory(struct store *store);

#endif
