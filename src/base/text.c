// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "text.h"

#include <errno.h>
#include <netobs/flow.h>
#include <string.h>

static char *put_octet(char *to, uint8_t octet)
{
	if (octet >= 100)
		*to++ = (char)('0' + octet / 100);
	if (octet >= 10)
		*to++ = (char)('0' + octet / 10 % 10);
	*to++ = (char)('0' + octet % 10);
	return to;
}

static char *put_ipv4(char *to, const uint8_t ip[4])
{
	for (int i = 0; i < 4; i++) {
		if (i)
			*to++ = '.';
		to = put_octet(to, ip[i]);
	}
	return to;
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
	static const char hex[] = "0123456789abcdef";
	int shift = group > 0xfff ? 12 : group > 0xff ? 8 : group > 0xf ? 4 : 0;

	for (; shift >= 0; shift -= 4)
		*to++ = hex[group >> shift & 15];
	return to;
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

char *addr_put(char *to, const uint8_t ip[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (!memcmp(ip, mapped, sizeof(mapped)))
		return put_ipv4(to, ip + sizeof(mapped));
	return put_ipv6(to, ip);
}

int netobs_addr_str(const uint8_t addr[16], char *buf, size_t size)
{
	char text[NETOBS_ADDR_STR_MAX];
	size_t len;

	if (!addr || !buf)
		return -EINVAL;
	len = (size_t)(addr_put(text, addr) - text);
	if (len >= size)
		return -ENOBUFS;
	memcpy(buf, text, len);
	buf[len] = '\0';
	return (int)len;
}
