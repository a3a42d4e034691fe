// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "text.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netobs/flow.h>
#include <stdarg.h>
#include <stdio.h>

#define HEX_ROW(digit)                                                    \
	digit "0" digit "1" digit "2" digit "3" digit "4" digit "5" digit \
	      "6" digit "7" digit "8" digit "9" digit "a" digit "b" digit \
	      "c" digit "d" digit "e" digit "f"

/* Two digits per byte. */
static const char hex[] = HEX_ROW("0") HEX_ROW("1") HEX_ROW("2") HEX_ROW("3")
	HEX_ROW("4") HEX_ROW("5") HEX_ROW("6") HEX_ROW("7") HEX_ROW("8")
		HEX_ROW("9") HEX_ROW("a") HEX_ROW("b") HEX_ROW("c") HEX_ROW("d")
			HEX_ROW("e") HEX_ROW("f");

#define TEN(tens)                                                           \
	tens "0" tens "1" tens "2" tens "3" tens "4" tens "5" tens "6" tens \
	     "7" tens "8" tens "9"

/* Two digits per number below 100. */
static const char twos[] = TEN("0") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5")
	TEN("6") TEN("7") TEN("8") TEN("9");

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

/* ---- Numbers ------------------------------------------------------------------ */

enum { EIGHT_DIGITS = 100000000, POINT = 32 };

/*
 * @value, of at most eight digits, divided by @power, of at most eight zeros, with POINT bits
 * behind the point: up to 10^-9 too large, which is less than the last digit.
 */
#define FRACTION(value, power) \
	((((value) * ((1ULL << 57) / (power) + 1)) >> (57 - POINT)) + 1)

/* Two digits behind the point. Returns what is behind them. */
static inline uint64_t put_two(char *to, uint64_t fraction)
{
	fraction = (fraction & ((1ULL << POINT) - 1)) * 100;
	memcpy(to, twos + 2 * (fraction >> POINT), 2);
	return fraction;
}

static inline uint64_t put_four(char *to, uint64_t fraction)
{
	return put_two(to + 2, put_two(to, fraction));
}

/* One or two digits in front of the point. */
static inline char *put_first(char *to, uint64_t fraction)
{
	uint64_t first = fraction >> POINT;

	memcpy(to, octets[first], 2);
	return to + 1 + (first >= 10);
}

/* Apart, so that shorter numbers need no stack. */
static __attribute__((noinline)) char *put_long(char *to, uint64_t value)
{
	uint64_t fraction = FRACTION(value % EIGHT_DIGITS, EIGHT_DIGITS);

	to = text_u64(to, value / EIGHT_DIGITS);
	put_four(to + 4, put_four(to, fraction));
	return to + 8;
}

char *text_large(char *to, uint64_t value)
{
	uint64_t fraction;

	if (value < 100) { /* as most protocols, TTLs and flags are */
		memcpy(to, twos + 2 * value, 2);
		return to + 2;
	}
	if (value < 10000) {
		fraction = FRACTION(value, 100);
		to = put_first(to, fraction);
		put_two(to, fraction);
		return to + 2;
	}
	if (value < 1000000) {
		fraction = FRACTION(value, 10000);
		to = put_first(to, fraction);
		put_four(to, fraction);
		return to + 4;
	}
	if (value < EIGHT_DIGITS) {
		fraction = FRACTION(value, 1000000);
		to = put_first(to, fraction);
		put_two(to + 4, put_four(to, fraction));
		return to + 6;
	}
	return put_long(to, value);
}

/* ---- Addresses ---------------------------------------------------------------- */

/* Two hexadecimal digits, and a colon behind them. */
static inline char *put_octet(char *to, uint8_t octet)
{
	memcpy(to, hex + 2U * octet, 2);
	to[2] = ':';
	return to + 3;
}

char *text_hash(char *to, uint64_t hash)
{
	for (int shift = 60; shift >= 0; shift -= 4)
		*to++ = "0123456789abcdef"[hash >> shift & 0xf];
	return to;
}

char *text_mac(char *to, const uint8_t mac[6])
{
	for (int i = 0; i < 6; i++)
		to = put_octet(to, mac[i]);
	return to - 1;
}

static char *put_ipv4(char *to, const uint8_t ip[4])
{
	for (int i = 0; i < 4; i++) {
		memcpy(to, octets[ip[i]], 4);
		to += 2 + (ip[i] >= 10) + (ip[i] >= 100);
	}
	return to - 1;
}

/* Put a group without leading zeros, and with a colon behind it. */
static inline char *put_group(char *to, const uint8_t group[2])
{
	/* Bits of digits that are left out, a multiple of 4. */
	unsigned int zeros =
		(unsigned int)__builtin_clz(group[0] << 8 | group[1] | 1) & 12;
	uint16_t high, low;
	uint64_t text;

	memcpy(&high, hex + 2U * group[0], 2);
	memcpy(&low, hex + 2U * group[1], 2);
	text = le16toh(high) | (uint32_t)le16toh(low) << 16 | (uint64_t)':' << 32;
	text = htole64(text >> 2 * zeros);
	memcpy(to, &text, sizeof(text));
	return to + 5 - zeros / 4;
}

/* The first of the longest runs of groups that are 0; if it is only one group, none. */
static void find_zeros(const uint8_t ip[16], int *ret_start, int *ret_end)
{
	unsigned int run = 0;
	int length = 1;

	for (int i = 0; i < 8; i++)
		run |= (unsigned int)!(ip[2 * i] | ip[2 * i + 1]) << i;
	for (; run & run >> 1; length++)
		run &= run >> 1;
	if (length == 1)
		return;
	*ret_start = __builtin_ctz(run);
	*ret_end = *ret_start + length;
}

static bool has_zero_group(const uint8_t ip[16])
{
	const uint64_t ones = 0x0001000100010001, tops = ones << 15;
	uint64_t half[2];

	memcpy(half, ip, sizeof(half));
	return ((half[0] - ones) & ~half[0] & tops) |
	       ((half[1] - ones) & ~half[1] & tops);
}

/* RFC 5952, section 4 */
static char *put_ipv6(char *to, const uint8_t ip[16])
{
	int start = 8, end = 8;

	if (has_zero_group(ip))
		find_zeros(ip, &start, &end);
	for (int i = 0; i < start; i++)
		to = put_group(to, ip + 2 * i);
	if (start == 8)
		return to - 1;
	if (start == 0)
		*to++ = ':';
	*to++ = ':';
	for (int i = end; i < 8; i++)
		to = put_group(to, ip + 2 * i);
	return end == 8 ? to : to - 1;
}

char *text_ip(char *to, const uint8_t ip[16])
{
	if (ip_is_v4(ip))
		return put_ipv4(to, ip + 12);
	return put_ipv6(to, ip);
}

bool ip_read(const char *text, uint8_t ret_ip[16])
{
	uint8_t v4[4];

	if (inet_pton(AF_INET6, text, ret_ip) == 1)
		return true;
	if (inet_pton(AF_INET, text, v4) != 1)
		return false;
	memset(ret_ip, 0, 10);
	memset(ret_ip + 10, 0xff, 2);
	memcpy(ret_ip + 12, v4, sizeof(v4));
	return true;
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

void text_append(char *buf, size_t size, const char *format, ...)
{
	const size_t used = strlen(buf);
	va_list args;

	va_start(args, format);
	vsnprintf(buf + used, size - used, format, args);
	va_end(args);
}

/* ---- Text that is safe for its place ------------------------------------------------ */

void safe_cell(char *text)
{
	for (; *text; text++) {
		if (*text < ' ' || *text > '~')
			*text = '?';
	}
}

void safe_line(char *text)
{
	const uint8_t *s = (const uint8_t *)text;
	char *to = text;
	size_t len;

	for (; *s; s += len ?: 1) {
		len = utf8_length(s);
		if (!len || utf8_control(s)) {
			*to++ = '?';
		} else {
			memmove(to, s, len);
			to += len;
		}
	}
	*to = '\0';
}

static char *put_control(char *to, uint8_t control)
{
	memcpy(to, "\\\\x", 3); /* "\\" is a backslash */
	memcpy(to + 3, hex + 2U * control, 2);
	return to + 5;
}

size_t safe_label(char *to, const char *text, size_t most)
{
	const uint8_t *s = (const uint8_t *)text;
	const char *begin = to;
	uint8_t control;
	size_t len;

	for (; *s && (size_t)(s - (const uint8_t *)text) < most; s += len ?: 1) {
		len = utf8_length(s);
		control = utf8_control(s);
		if (!len) {
			memcpy(to, UTF8_REPLACEMENT, 3);
			to += 3;
		} else if (*s == '\n') {
			*to++ = '\\';
			*to++ = 'n';
		} else if (control) {
			to = put_control(to, control);
		} else {
			if (*s == '"' || *s == '\\')
				*to++ = '\\';
			memcpy(to, s, len);
			to += len;
		}
	}
	if (*s) {
		memcpy(to, "...", 3);
		to += 3;
	}
	return (size_t)(to - begin);
}

void safe_utf8_cut(char *to, size_t size, const char *text, size_t len)
{
	uint8_t next[4] = { 0 };
	size_t n;

	for (; len && *text; text += n, len -= n) {
		/* Do not read behind @text: a NUL ends a character. */
		memset(next, 0, sizeof(next));
		memcpy(next, text, len < sizeof(next) ? len : sizeof(next));
		n = utf8_length(next);
		if (!n)
			next[0] = '?';
		n = n ?: 1;
		if (n > size)
			return;
		memcpy(to, next, n);
		to += n;
		size -= n;
	}
}

/* ---- Names for people --------------------------------------------------------------- */

/* IANA "Protocol Numbers" */
static const char *const protocols[] = {
	[0] = "HOPOPT",	  [1] = "ICMP",	  [2] = "IGMP",	  [4] = "IPIP",
	[6] = "TCP",	  [17] = "UDP",	  [33] = "DCCP",  [41] = "IPv6",
	[47] = "GRE",	  [50] = "ESP",	  [51] = "AH",	  [58] = "ICMPv6",
	[59] = "no-next", [88] = "EIGRP", [89] = "OSPF",  [103] = "PIM",
	[112] = "VRRP",	  [115] = "L2TP", [132] = "SCTP", [136] = "UDPLite",
};

void human_protocol(char *buf, size_t size, uint8_t proto)
{
	const char *name = proto < sizeof(protocols) / sizeof(protocols[0]) ?
				   protocols[proto] :
				   NULL;

	if (name)
		snprintf(buf, size, "%s", name);
	else
		snprintf(buf, size, "proto-%u", proto);
}

const char *tunnel_name(uint8_t type)
{
	static const char *const names[] = {
		[NETOBS_TUNNEL_VXLAN] = "vxlan",
		[NETOBS_TUNNEL_GENEVE] = "geneve",
		[NETOBS_TUNNEL_GRE] = "gre",
		[NETOBS_TUNNEL_IPIP] = "ipip",
		[NETOBS_TUNNEL_GTPU] = "gtpu",
		[NETOBS_TUNNEL_SRV6] = "srv6",
		[NETOBS_TUNNEL_ERSPAN] = "erspan",
	};

	return type < sizeof(names) / sizeof(names[0]) ? names[type] : NULL;
}

const char *human_tunnel_name(uint8_t type)
{
	return tunnel_name(type) ?: "tunnel";
}

void human_endpoint(char *buf, size_t size, const char *host, const char *port)
{
	const bool has_colon = strchr(host, ':');

	/* Long names are cut: gcc 12 warns of it where the result is not used. */
	if (snprintf(buf, size, "%s%s%s:%s", has_colon ? "[" : "", host,
		     has_colon ? "]" : "", port) < 0)
		*buf = '\0';
}
