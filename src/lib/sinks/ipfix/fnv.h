/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* FNV-1a, 32 bits: a number that is always the same for the same bytes. */
#ifndef NETOBS_SINKS_IPFIX_FNV_H
#define NETOBS_SINKS_IPFIX_FNV_H

#include <stddef.h>
#include <stdint.h>

#define FNV_START 2166136261U

static inline uint32_t fnv_mix(uint32_t hash, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	while (len--)
		hash = (hash ^ *at++) * 16777619;
	return hash;
}

#endif
