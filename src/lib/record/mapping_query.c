/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Queries for mappings: reads their text, and matches mappings. */
#include "base/options.h"
#include "base/text.h"
#include "base/util.h"

#include <netobs/mapping.h>

#include <netinet/in.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { QUERY_MAX = 256 };

static const struct {
	const char *name;
	uint8_t number;
} protocols[] = {
	{ "tcp", IPPROTO_TCP },	  { "udp", IPPROTO_UDP },
	{ "icmp", IPPROTO_ICMP }, { "icmpv6", IPPROTO_ICMPV6 },
	{ "sctp", IPPROTO_SCTP }, { "dccp", IPPROTO_DCCP },
	{ "gre", IPPROTO_GRE },	  { "udplite", IPPROTO_UDPLITE },
	{ "esp", IPPROTO_ESP },
};

/* ---- Text ------------------------------------------------------------------------- */

struct complaint {
	char *text;
	size_t size;
};

__attribute__((format(printf, 2, 3))) static int
complain(const struct complaint *complaint, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (complaint->size)
		vsnprintf(complaint->text, complaint->size, format, args);
	va_end(args);
	return -EINVAL;
}

/* @return the text without the space around it */
static char *trim(char *text)
{
	char *end;

	text += strspn(text, " \t");
	end = text + strlen(text);
	while (end > text && (end[-1] == ' ' || end[-1] == '\t'))
		*--end = '\0';
	return text;
}

static int read_port(const char *text, uint16_t *ret_port)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || !number || number > UINT16_MAX)
		return -EINVAL;
	*ret_port = (uint16_t)number;
	return 0;
}

static int read_protocol(const char *text, uint8_t *ret_protocol)
{
	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
		if (strcasecmp(text, protocols[i].name))
			continue;
		*ret_protocol = protocols[i].number;
		return 0;
	}
	return -EINVAL;
}

/*
 * "10.0.0.2:80", "[fd00::2]:80", or either without the port; an address of IPv6 alone needs no
 * brackets, and "*" is any. Cuts @text. @return the text of the port; NULL: there is none
 */
static char *split_port(char **text)
{
	char *colon = strrchr(*text, ':'), *bracket = strchr(*text, ']');

	if (**text == '[' && bracket && (!bracket[1] || bracket[1] == ':')) {
		(*text)++;
		*bracket = '\0';
		return bracket[1] == ':' ? bracket + 2 : NULL;
	}
	if (!colon || strchr(*text, ':') != colon)
		return NULL;
	*colon = '\0';
	return colon + 1;
}

static int read_end(char *text, uint8_t addr[16], uint16_t *ret_port,
		    const struct complaint *complaint)
{
	char *port = split_port(&text);

	*ret_port = 0;
	if (strcmp(text, "*") && !ip_read(text, addr))
		return complain(complaint, "'%s' is no address", text);
	if (strcmp(text, "*") && ip_is_any(addr))
		return complain(
			complaint,
			"no mapping has the address '%s': any one is '*', or left out",
			text);
	if (port && strcmp(port, "*") && read_port(port, ret_port))
		return complain(complaint, "'%s' is no port", port);
	return 0;
}

/* Split off what follows the last slash, or the whole text if it is no address. */
static int split_protocol(char **text, uint8_t *ret_protocol,
			  const struct complaint *complaint)
{
	char *slash = strrchr(*text, '/'), *protocol;

	if (!slash) {
		if (!read_protocol(*text, ret_protocol))
			*text += strlen(*text);
		return 0;
	}
	*slash = '\0';
	*text = trim(*text);
	protocol = trim(slash + 1);
	if (read_protocol(protocol, ret_protocol))
		return complain(
			complaint,
			"'%s' is no protocol, such as tcp; a prefix is no address",
			protocol);
	return 0;
}

/* netobs prints the first arrow, people may write the other one. */
static void shorten_arrow(char *text)
{
	static const char *const arrows[] = { "\u2192", "->" };

	for (size_t i = 0; i < ARRAY_SIZE(arrows); i++) {
		char *arrow = strstr(text, arrows[i]);

		if (!arrow)
			continue;
		*arrow = '>';
		memmove(arrow + 1, arrow + strlen(arrows[i]),
			strlen(arrow + strlen(arrows[i])) + 1);
	}
}

static int parse_query(char *text, struct netobs_mapping_query *query,
		       const struct complaint *complaint)
{
	char *arrow;
	int err;

	shorten_arrow(text);
	text = trim(text);
	if (!*text)
		return complain(complaint,
				"there is neither an address nor a protocol");
	err = split_protocol(&text, &query->protocol, complaint);
	if (err || !*text)
		return err;
	arrow = strchr(text, '>');
	if (arrow) {
		*arrow = '\0';
		err = read_end(trim(arrow + 1), query->dst, &query->dst_port,
			       complaint);
	}
	return err ?: read_end(trim(text), query->src, &query->src_port, complaint);
}

int netobs_mapping_query_parse(const char *text,
			       struct netobs_mapping_query *ret_query,
			       char *error, size_t size)
{
	const struct complaint complaint = { error, size };
	struct netobs_mapping_query query = { 0 };
	char copy[QUERY_MAX];
	int err;

	if (!text || !ret_query || (size && !error))
		return -EINVAL;
	if (strlen(text) >= sizeof(copy))
		return complain(&complaint, "it is too long");
	strcpy(copy, text);
	err = parse_query(copy, &query, &complaint);
	return err ?: sized_fill(ret_query, &query, sizeof(query));
}

/* ---- Matching --------------------------------------------------------------------- */

struct face {
	const uint8_t *src, *dst;
	uint16_t src_port, dst_port;
};

static bool is_addr(const uint8_t wanted[16], const uint8_t addr[16])
{
	return ip_is_any(wanted) || !memcmp(wanted, addr, 16);
}

static bool is_port(uint16_t wanted, uint16_t port)
{
	return !wanted || wanted == port;
}

int netobs_mapping_matches(const struct netobs_mapping *mapping,
			   const struct netobs_mapping_query *query)
{
	struct face faces[4];

	if (!mapping || !query ||
	    (query->protocol && query->protocol != mapping->protocol))
		return 0;
	faces[0] = (struct face){ mapping->src, mapping->dst, mapping->src_port,
				  mapping->dst_port };
	faces[1] = (struct face){ mapping->post_src, mapping->post_dst,
				  mapping->post_src_port,
				  mapping->post_dst_port };
	for (int i = 0; i < 2; i++)
		faces[2 + i] = (struct face){ faces[i].dst, faces[i].src,
					      faces[i].dst_port,
					      faces[i].src_port };
	for (size_t i = 0; i < ARRAY_SIZE(faces); i++)
		if (is_addr(query->src, faces[i].src) &&
		    is_addr(query->dst, faces[i].dst) &&
		    is_port(query->src_port, faces[i].src_port) &&
		    is_port(query->dst_port, faces[i].dst_port))
			return 1;
	return 0;
}
