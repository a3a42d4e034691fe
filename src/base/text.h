/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Addresses as text. */
#ifndef NETOBS_BASE_TEXT_H
#define NETOBS_BASE_TEXT_H

#include <stdint.h>

/*
 * Write @ip, in which IPv4 is ::ffff:a.b.c.d, to @to, which has room for
 * NETOBS_ADDR_STR_MAX bytes; no NUL. Returns the end.
 */
char *addr_put(char *to, const uint8_t ip[16]);

#endif
