// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "text.h"

#include <endian.h>
#include <errno.h>
#include <netobs/flow.h>
#include <string.h>

#define HEX_ROW(digit)                                                    \
	digit "0" digit "1" digit "2" digit "3" digit "4" digit "5" digit \
	      "6" digit "7" digit "8" digit "9" digit "a" digit "b" digit \
	      "c" digit "d" digit "e" digit "f"

/* Two digits per byte. */
static const char hex[] = HEX_ROW("0") HEX_ROW("1") HEX_ROW("2") HEX_ROW("3")
	HEX_ROW("4") HEX_ROW("5") HEX_ROW("6") HEX_ROW("7") HEX_ROW("8")
		HEX_ROW("9") HEX_ROW("a") HEX_ROW("b") HEX_ROW("c") HEX_ROW("d")
			HEX_ROW("e") HEX_ROW("f");

/* ---- Numbers ------------------------------------------------------------------ */

enum { EIGHT_DIGITS = 100000000 };

static const uint64_t zeroes_text = 0x3030303030303030; /* "00000000" */

/* The eight digits of @value, the first in the lowest byte. All are computed at once. */
static uint64_t split_digits(uint32_t value)
{
	uint64_t fours = value / 10000 | (uint64_t)(value % 10000) << 32;
	uint64_t hundreds = fours * 10486 >> 20 & 0x7f0000007f;
	uint64_t twos = hundreds | (fours - hundreds * 100) << 16;
	uint64_t tens = twos * 103 >> 10 & 0xf000f000f000f;

	return tens | (twos - tens * 10) << 8;
}

/* @text has its first byte lowest. */
static char *put_eight(char *to, uint64_t text, unsigned int len)
{
	text = htole64(text);
	memcpy(to, &text, sizeof(text));
	return to + len;
}

static char *put_digits(char *to, uint32_t value)
{
	uint64_t digits = split_digits(value);
	/* The last digit counts even if it is 0. */
	unsigned int zeros =
		(unsigned int)__builtin_ctzll(digits | 1ULL << 56) / 8;

	return put_eight(to, (digits | zeroes_text) >> zeros * 8, 8 - zeros);
}

char *text_large(char *to, uint64_t value)
{
	if (value < 100) { /* as most protocols, TTLs and flags are */
		to[0] = (char)('0' + value / 10);
		to[1] = (char)('0' + value % 10);
		return to + 2;
	}
	if (value < EIGHT_DIGITS)
		return put_digits(to, (uint32_t)value);
	to = text_u64(to, value / EIGHT_DIGITS);
	return put_eight(to, split_digits(value % EIGHT_DIGITS) | zeroes_text, 8);
}

/* ---- Addresses ---------------------------------------------------------------- */

char *text_mac(char *to, const uint8_t mac[6])
{
	for (int i = 0; i < 6; i++) {
		memcpy(to + 3 * i, hex + 2 * mac[i], 2);
		to[3 * i + 2] = ':';
	}
	return to + TEXT_MAC_MAX;
}

#define TEN_OCTETS(tens)                                                  \
	tens "0.", tens "1.", tens "2.", tens "3.", tens "4.", tens "5.", \
		tens "6.", tens "7.", tens "8.", tens "9."

/* Octets of IPv4 with the dot behind them. */
static const char octets[256][5] = {
	TEN_OCTETS(""),	  TEN_OCTETS("1"),  TEN_OCTETS("2"),  TEN_OCTETS("3"),
	TEN_OCTETS("4"),  TEN_OCTETS("5"),  TEN_OCTETS("6"),  TEN_OCTETS("7"),
	TEN_OCTETS("8"),  TEN_OCTETS("9"),  TEN_OCTETS("10"), TEN_OCTETS("11"),
	TEN_OCTETS("12"), TEN_OCTETS("13"), TEN_OCTETS("14"), TEN_OCTETS("15"),
	TEN_OCTETS("16"), TEN_OCTETS("17"), TEN_OCTETS("18"), TEN_OCTETS("19"),
	TEN_OCTETS("20"), TEN_OCTETS("21"), TEN_OCTETS("22"), TEN_OCTETS("23"),
	TEN_OCTETS("24"), "250.",	    "251.",	      "252.",
	"253.",		  "254.",	    "255.",
};

static char *put_ipv4(char *to, const uint8_t ip[4])
{
	for (int i = 0; i < 4; i++) {
		memcpy(to, octets[ip[i]], 4);
		to += 2 + (ip[i] >= 10) + (ip[i] >= 100);
	}
	return to - 1;
}

/* Where the longest run of groups that are 0 is, if it has two or more. */
static void find_zeros(const uint16_t groups[8], int *ret_start, int *ret_end)
{
	*ret_start = *ret_end = -1;
	for (int i = 0; i < 8; i++) {
		int start = i;

		while (i < 8 && !groups[i])
			i++;
		if (i - start >= 2 && i - start > *ret_end - *ret_start) {
			*ret_start = start;
			*ret_end = i;
		}
	}
}

static char *put_group(char *to, uint16_t group)
{
	unsigned int zeros = (unsigned int)__builtin_clz(group | 1) / 4 - 4;
	uint32_t text;

	memcpy(&text, hex + 2 * (group >> 8), 2);
	memcpy((char *)&text + 2, hex + 2 * (group & 0xff), 2);
	text = htole32(le32toh(text) >> zeros * 8);
	memcpy(to, &text, sizeof(text));
	return to + 4 - zeros;
}

/* RFC 5952, section 4. */
static char *put_ipv6(char *to, const uint8_t ip[16])
{
	uint16_t groups[8];
	int start, end;

	for (int i = 0; i < 8; i++)
		groups[i] = (uint16_t)(ip[2 * i] << 8 | ip[2 * i + 1]);
	find_zeros(groups, &start, &end);
	for (int i = 0; i < 8; i++) {
		if (i == start) {
			*to++ = ':';
			*to++ = ':';
			i = end;
			if (i == 8)
				break;
		} else if (i) {
			*to++ = ':';
		}
		to = put_group(to, groups[i]);
	}
	return to;
}

char *text_ip(char *to, const uint8_t ip[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (!memcmp(ip, mapped, sizeof(mapped)))
		return put_ipv4(to, ip + sizeof(mapped));
	return put_ipv6(to, ip);
}

int netobs_addr_str(const uint8_t addr[16], char *buf, size_t size)
{
	char text[NETOBS_ADDR_STR_MAX + TEXT_SPARE];
	size_t len;

	if (!addr || !buf)
		return -EINVAL;
	len = (size_t)(text_ip(text, addr) - text);
	if (len >= size)
		return -ENOBUFS;
	memcpy(buf, text, len);
	buf[len] = '\0';
	return (int)len;
}
