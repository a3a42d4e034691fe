/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* CRC-32C (Castagnoli), as in iSCSI: RFC 3720, 12.1. */
#ifndef NETOBS_BASE_CRC32C_H
#define NETOBS_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* @return the checksum of @len bytes that follow those that gave @crc; 0: they are the first */
uint32_t crc32c(uint32_t crc, const void *data, size_t len);

#endif
