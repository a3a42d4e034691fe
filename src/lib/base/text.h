/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Numbers and addresses as text. Each function writes to @to, without a NUL, and returns
 * the end of the text. It may write TEXT_SPARE bytes more: stores of constant size are
 * what makes it fast.
 */
#ifndef NETOBS_BASE_TEXT_H
#define NETOBS_BASE_TEXT_H

#include <stdint.h>

enum {
	TEXT_SPARE = 8,
	TEXT_U64_MAX = 20,
	TEXT_MAC_MAX = 17,
	TEXT_HASH_MAX = 16,
};

/* For values from 10 on. */
char *text_large(char *to, uint64_t value);

static inline char *text_u64(char *to, uint64_t value)
{
	if (value >= 10)
		return text_large(to, value);
	*to = (char)('0' + value);
	return to + 1;
}

/* "00c0ffee00000001" */
char *text_hash(char *to, uint64_t hash);

/* "02:00:00:00:00:01" */
char *text_mac(char *to, const uint8_t mac[6]);

/* @ip, in which IPv4 is ::ffff:a.b.c.d; less than NETOBS_ADDR_STR_MAX bytes. */
char *text_ip(char *to, const uint8_t ip[16]);

#endif
