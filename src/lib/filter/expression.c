/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "classic.h"

#include "base/clock_ms.h"
#include "base/text.h"
#include "base/util.h"

#include <ctype.h>
#include <errno.h>
#include <linux/filter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <stddef.h>

enum {
	QUOTE_MAX = 60,
	PLACE_MAX = 1000,
	PLACE_WAIT_MS = 1000,
	/* libpcap takes seconds for some of this length, and the cube of it for longer ones. */
	EXPRESSION_MAX = 4096,
};

/*
 * The length of the longest part of the expression, up to a space, that is one itself.
 * Each try looks up the names of hosts again, which may take long.
 */
static size_t valid_length(const char *expression, enum link_kind link)
{
	const int64_t end = now_ms() + PLACE_WAIT_MS;
	cleanup_free char *part = strdup(expression);
	char error[FILTER_ERROR_MAX];

	for (size_t len = part ? strlen(part) : 0; len && left_ms(end); len--) {
		struct classic classic;

		if (!isspace((unsigned char)expression[len - 1]))
			continue;
		part[len - 1] = '\0';
		if (!classic_compile(part, link, &classic, error, sizeof(error))) {
			classic_done(&classic);
			return strlen(part);
		}
	}
	return 0;
}

/* libpcap does not report where a syntax error is. */
static void add_place(char *error, const char *expression, enum link_kind link)
{
	size_t len = strlen(error);
	const char *rest = expression;

	if (!strstr(error, "syntax error"))
		return;
	if (strlen(expression) < PLACE_MAX)
		rest += valid_length(expression, link);
	while (isspace((unsigned char)*rest))
		rest++;
	snprintf(error + len, FILTER_ERROR_MAX - len, ", at '%.*s%s'",
		 QUOTE_MAX, rest, strlen(rest) > QUOTE_MAX ? "..." : "");
}

/* Links of one kind only may have packets that match: not an error for the others. */
static int allow_nothing(struct compiled *compiled, enum link_kind link)
{
	static const struct classic_insn reject = { .code = BPF_RET | BPF_K };
	struct classic *program = &compiled->programs[link];

	if (!strstr(compiled->objections[link], "rejects all packets"))
		return -EINVAL;
	program->insns = malloc(sizeof(reject));
	if (!program->insns)
		return -ENOMEM;
	*program->insns = reject;
	program->n = 1;
	return 0;
}

static int compile_links(struct compiled *compiled, const char *text,
			 char (*ret_error)[FILTER_ERROR_MAX])
{
	int err[LINKS], n = 0;

	for (int link = LINK_ETHERNET; link < LINKS; link++) {
		err[link] = classic_compile(text, link, &compiled->programs[link],
					    compiled->objections[link],
					    FILTER_ERROR_MAX);
		n += !err[link];
	}
	for (int link = LINK_ETHERNET; n && link < LINKS; link++)
		if (err[link] && allow_nothing(compiled, link) == -ENOMEM)
			return -ENOMEM;
	if (n)
		return 0;
	memcpy(*ret_error, compiled->objections[LINK_ETHERNET], FILTER_ERROR_MAX);
	if (err[LINK_ETHERNET] == -EINVAL)
		add_place(*ret_error, text, LINK_ETHERNET);
	return err[LINK_ETHERNET];
}

/* ---- "inner" ------------------------------------------------------------------------ */

static bool is_word_char(char c)
{
	return c && (isalnum((unsigned char)c) || strchr("-_.\\", c));
}

static const char *find_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
		if ((at == text || !is_word_char(at[-1])) &&
		    !is_word_char(at[len]))
			return at;
	return NULL;
}

/* @return the length of @text without blanks at its end */
static size_t trimmed_length(const char *text, size_t len)
{
	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	return len;
}

/* @return the length of the last word of @text, or of its last character if that is in none */
static size_t last_word(const char *text, size_t len)
{
	size_t word = 0;

	while (word < len && is_word_char(text[len - word - 1]))
		word++;
	return word ?: len > 0;
}

/* @return whether the word is one that a name follows, which may be "inner" */
static bool names_something(const char *word, size_t len)
{
	static const char *const words[] = { "host", "src", "dst", "net",
					     "gateway" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strlen(words[i]) == len && !memcmp(words[i], word, len))
			return true;
	return false;
}

/* @return "inner" where it is no name; NULL: there is none */
static const char *find_inner(const char *text)
{
	const char *at = text;

	while ((at = find_word(at, "inner"))) {
		size_t len = trimmed_length(text, (size_t)(at - text));
		size_t word = last_word(text, len);

		if (!names_something(text + len - word, word))
			return at;
		at++;
	}
	return NULL;
}

static int depth_at(const char *text, const char *at)
{
	int depth = 0;

	for (; text < at; text++)
		depth += (*text == '(') - (*text == ')');
	return depth;
}

/* @return the length of EXPR in "EXPR and inner ..."; 0: it is not that, *@at is "inner" */
static size_t outer_length(const char *text, const char *at)
{
	size_t len = trimmed_length(text, (size_t)(at - text));
	size_t word = last_word(text, len);

	if (len >= 2 && !memcmp(text + len - 2, "&&", 2))
		return trimmed_length(text, len - 2);
	if (word == 3 && !memcmp(text + len - 3, "and", 3))
		return trimmed_length(text, len - 3);
	return 0;
}

static int refuse_inner(const char *at, const char *why,
			char (*ret_error)[FILTER_ERROR_MAX])
{
	snprintf(*ret_error, FILTER_ERROR_MAX, "inner: %s, at '%.*s%s'", why,
		 QUOTE_MAX, at, strlen(at) > QUOTE_MAX ? "..." : "");
	return -EINVAL;
}

/*
 * Split "inner EXPR" and "EXPR and inner EXPR". *@ret_outer is the length of the first EXPR,
 * *@ret_inner the second one; NULL: the text has none.
 */
static int split_inner(const char *text, size_t *ret_outer,
		       const char **ret_inner,
		       char (*ret_error)[FILTER_ERROR_MAX])
{
	const char *at = find_inner(text), *inner, *more;

	*ret_outer = strlen(text);
	*ret_inner = NULL;
	if (!at)
		return 0;
	*ret_outer = outer_length(text, at);
	if (depth_at(text, at) ||
	    (!*ret_outer && trimmed_length(text, (size_t)(at - text))))
		return refuse_inner(
			at,
			"it is the first word, or follows 'and' outside parentheses",
			ret_error);
	inner = at + strlen("inner");
	more = find_inner(inner);
	if (more)
		return refuse_inner(more, "it is there twice", ret_error);
	if (!trimmed_length(inner, strlen(inner)))
		return refuse_inner(at, "an expression has to follow", ret_error);
	*ret_inner = inner;
	return 0;
}

static int compile_parts(struct expression *expression,
			 char (*ret_error)[FILTER_ERROR_MAX])
{
	cleanup_free char *outer = NULL;
	const char *inner;
	size_t len;
	int err = split_inner(expression->text, &len, &inner, ret_error);

	if (err)
		return err;
	outer = strndup(expression->text, len);
	if (!outer)
		return -ENOMEM;
	expression->has_vlan = find_word(outer, "vlan");
	expression->has_inner = inner;
	err = compile_links(&expression->outer, outer, ret_error);
	if (!err && inner)
		err = compile_links(&expression->inner, inner, ret_error);
	return err;
}

int expression_compile(struct expression *expression, const char *text,
		       char (*ret_error)[FILTER_ERROR_MAX])
{
	if (strlen(text) > EXPRESSION_MAX) {
		snprintf(*ret_error, FILTER_ERROR_MAX,
			 "the expression has %zu bytes; %d are the most",
			 strlen(text), EXPRESSION_MAX);
		return -E2BIG;
	}
	expression->text = strdup(text);
	if (!expression->text)
		return -ENOMEM;
	return compile_parts(expression, ret_error);
}

void expression_done(struct expression *expression)
{
	for (int link = LINK_ETHERNET; link < LINKS; link++) {
		classic_done(&expression->outer.programs[link]);
		classic_done(&expression->inner.programs[link]);
	}
	free(expression->text);
	*expression = (struct expression){ 0 };
}

/* ---- Tuples -------------------------------------------------------------------------- */

enum { HOP_LIMIT = 64, IPV4_AT = 12 /* in ::ffff:a.b.c.d */ };

/* A header of any protocol; echoes of ICMPv6 are like those of ICMP. */
union transport {
	struct tcphdr tcp;
	struct udphdr udp;
	struct icmphdr icmp;
};

struct packet_of_tuple {
	uint8_t reserved[2]; /* what follows the Ethernet header is aligned */
	struct ether_header ether;
	union {
		struct {
			struct iphdr ip;
			union transport transport;
		} v4;
		struct {
			struct ip6_hdr ip;
			union transport transport;
		} v6;
	} net;
};

_Static_assert(offsetof(struct packet_of_tuple, net) ==
		       offsetof(struct packet_of_tuple, ether) +
			       sizeof(struct ether_header),
	       "no padding");

static void fill_transport(union transport *transport,
			   const struct filter_tuple *tuple)
{
	switch (tuple->proto) {
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		transport->icmp.type = (uint8_t)(tuple->dst_port >> 8);
		transport->icmp.code = (uint8_t)tuple->dst_port;
		transport->icmp.un.echo.id = htons(tuple->src_port);
		return;
	case IPPROTO_TCP:
		transport->tcp.doff = sizeof(transport->tcp) / 4;
		transport->tcp.ack = 1;
		break;
	case IPPROTO_UDP:
		transport->udp.len = htons(sizeof(*transport));
		break;
	}
	/* All protocols with ports have them here. */
	transport->udp.source = htons(tuple->src_port);
	transport->udp.dest = htons(tuple->dst_port);
}

static uint32_t fill_v4(struct packet_of_tuple *packet,
			const struct filter_tuple *tuple)
{
	struct iphdr *ip = &packet->net.v4.ip;

	packet->ether.ether_type = htons(ETHERTYPE_IP);
	ip->version = 4;
	ip->ihl = sizeof(*ip) / 4;
	ip->tot_len = htons(sizeof(packet->net.v4));
	ip->ttl = HOP_LIMIT;
	ip->protocol = tuple->proto;
	memcpy(&ip->saddr, tuple->src + IPV4_AT, sizeof(ip->saddr));
	memcpy(&ip->daddr, tuple->dst + IPV4_AT, sizeof(ip->daddr));
	fill_transport(&packet->net.v4.transport, tuple);
	return sizeof(packet->ether) + sizeof(packet->net.v4);
}

static uint32_t fill_v6(struct packet_of_tuple *packet,
			const struct filter_tuple *tuple)
{
	struct ip6_hdr *ip = &packet->net.v6.ip;

	packet->ether.ether_type = htons(ETHERTYPE_IPV6);
	ip->ip6_vfc = 6 << 4;
	ip->ip6_plen = htons(sizeof(packet->net.v6.transport));
	ip->ip6_nxt = tuple->proto;
	ip->ip6_hlim = HOP_LIMIT;
	memcpy(&ip->ip6_src, tuple->src, sizeof(ip->ip6_src));
	memcpy(&ip->ip6_dst, tuple->dst, sizeof(ip->ip6_dst));
	fill_transport(&packet->net.v6.transport, tuple);
	return sizeof(packet->ether) + sizeof(packet->net.v6);
}

int filter_check_tuple(const struct filter *filter, const struct log *log)
{
	for (uint32_t i = 0; filter && i < filter->n; i++)
		if (filter->rules[i].expression.has_inner) {
			log_error(log,
				  "filter: what a tunnel carries (inner) is not known here");
			return -EINVAL;
		}
	return 0;
}

bool filter_match_tuple(const struct filter *filter,
			const struct filter_tuple *tuple)
{
	struct packet_of_tuple packet = { 0 };
	uint32_t len;

	if (!filter)
		return true;
	len = ip_is_v4(tuple->src) ? fill_v4(&packet, tuple) :
				     fill_v6(&packet, tuple);
	return filter_judge(filter, &packet.ether, len, len) & JUDGED_ACCEPT;
}
