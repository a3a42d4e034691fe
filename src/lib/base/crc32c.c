// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "hash.h"

#include <string.h>

/*
 * A nibble at a time, on machines without an instruction for it: the remainder
 * of each, for the polynomial 0x1edc6f41 with its bits in reverse.
 */
static const uint32_t nibbles[16] = {
	0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
	0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
	0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

static uint32_t update_slowly(uint32_t crc, const uint8_t *p, size_t len)
{
	while (len--) {
		crc ^= *p++;
		crc = crc >> 4 ^ nibbles[crc & 15];
		crc = crc >> 4 ^ nibbles[crc & 15];
	}
	return crc;
}

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) static uint32_t
update_fast(uint32_t crc, const uint8_t *p, size_t len)
{
	uint64_t wide = crc;

	for (; len >= 8; p += 8, len -= 8) {
		uint64_t word;

		memcpy(&word, p, 8);
		wide = __builtin_ia32_crc32di(wide, word);
	}
	crc = (uint32_t)wide;
	while (len--)
		crc = __builtin_ia32_crc32qi(crc, *p++);
	return crc;
}

static uint32_t update_crc(uint32_t crc, const uint8_t *p, size_t len)
{
	return __builtin_cpu_supports("sse4.2") ? update_fast(crc, p, len) :
						  update_slowly(crc, p, len);
}

#else

#define update_crc update_slowly

#endif

uint32_t crc32c(uint32_t crc, const void *data, size_t len)
{
	return ~update_crc(~crc, data, len);
}
