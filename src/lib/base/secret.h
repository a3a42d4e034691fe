/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Secrets for hashes, random each time. */
#ifndef NETOBS_BASE_SECRET_H
#define NETOBS_BASE_SECRET_H

#include <stddef.h>

/* Fill @secret, whose size @len is a multiple of 4, with random bytes. */
void secret_fill(void *secret, size_t len);

#endif
