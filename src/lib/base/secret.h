/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A secret for the hashes, random each time. */
#ifndef NETOBS_BASE_SECRET_H
#define NETOBS_BASE_SECRET_H

#include "bpf/store/hash.h"

void secret_init(struct hash_secret *secret);

#endif
