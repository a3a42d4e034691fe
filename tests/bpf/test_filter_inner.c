// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * "inner EXPR" is tcpdump's filter for what a tunnel carries: in the kernel it says of a
 * packet in a tunnel what libpcap's interpreter says of the bytes that were put into it.
 * Expressions of every kind, for each kind of tunnel; NETOBS_TEST_INNER=1 is for all of them.
 */
#include "lib_lab.h"
#include "lib_test.h"

#include "bpf/parse/tunnel.h" /* a knob of the skeleton */
#include "filter/classic.h"
#include "filter/filter.h"
#include "filter/code.h"
#include "filter_expressions.h"
#include "packet.h"

#include "judge.skel.h"

#include <bpf/bpf.h>

enum {
	STRIDE = 5,
	TERMS = 40,
	CARRIED_MAX = 8,
	EXPRESSION_MAX = 4096,
	LAYERS = PACKET_LAYERS / 2
};

struct tunnel {
	const char *name;
	enum link_kind link; /* of the frame */
	enum link_kind carries;
	struct layer layers[LAYERS]; /* in front of the inner packet */
};

static const struct tunnel tunnels[] = {
	{ "VXLAN", 0, 0, { ETH, IP4, VXLAN(7) } },
	{ "VXLAN over IPv6", 0, 0, { ETH, IP6, VXLAN(7) } },
	{ "VXLAN at Linux' old port",
	  0,
	  0,
	  { ETH, VLAN(5), IP4, UDP_PORTS(1, 8472), { LAYER_VXLAN, 7, 0, 0 } } },
	{ "VXLAN without Ethernet", LINK_NONE, 0, { IP4, VXLAN(7) } },
	{ "Geneve", 0, 0, { ETH, IP4, GENEVE(5, 0) } },
	{ "Geneve with options", 0, 0, { ETH, IP6, GENEVE(5, 252) } },
	{ "IP in Geneve", 0, LINK_NONE, { ETH, IP4, GENEVE(6, 4) } },
	{ "GRE", 0, LINK_NONE, { ETH, IP4, GRE(0, 0) } },
	{ "GRE with all fields",
	  0,
	  LINK_NONE,
	  { ETH, IP6, GRE(GRE_C | GRE_K | GRE_S, 77) } },
	{ "GRE of Ethernet", 0, 0, { ETH, IP4_OPTIONS(8), GRE(GRE_K, 3) } },
	{ "ERSPAN I", 0, 0, { ETH, IP4, GRE(0, 0), ERSPAN1 } },
	{ "ERSPAN II", 0, 0, { ETH, IP6, GRE(GRE_S, 0), ERSPAN(2, 9, 0) } },
	{ "ERSPAN III", 0, 0, { ETH, IP4, GRE(GRE_S, 0), ERSPAN(3, 9, 1) } },
	{ "MPLS in GRE", 0, LINK_NONE, { ETH, IP4, GRE(0, 0), MPLS(3, 1) } },
	{ "IP in IPv4", 0, LINK_NONE, { ETH, IP4 } },
	{ "IP in IPv6", 0, LINK_NONE, { ETH, IP6, EXT8(60) } },
	{ "IP in IP without Ethernet", LINK_NONE, LINK_NONE, { IP4 } },
	{ "GTP-U", 0, LINK_NONE, { ETH, IP4, GTPU(7, 0, 0) } },
	{ "GTP-U with extensions", 0, LINK_NONE, { ETH, IP6, GTPU(7, GTPU_E, 2) } },
	{ "IP in SRv6", 0, LINK_NONE, { ETH, IP6, SRH(2) } },
	{ "Ethernet in SRv6", 0, 0, { ETH, IP6, SRH(1) } },
};

/* Padding is the frame's, so it is not carried. */
static const struct layer carried[2][CARRIED_MAX][LAYERS] = {
	[LINK_ETHERNET] = {
		{ ETH, IP4, TCP(0x12), DATA(20) },
		{ ETH, IP6, UDP, DATA(9) },
		{ ETH, ARP },
		{ ETH, VLAN(10), IP4, ICMP(8, 0), DATA(40) },
		{ ETH, MPLS(100, 1), IP4, TCP(2) },
		{ ETH, IP4, VXLAN(2), ETH, IP4, UDP },
		{ ETH, IP4_FRAGMENT(IP4_MORE), UDP_PORTS(53, 443), DATA(8), PAD(140) },
		{ ETH, NEXT(0x22), DATA(3) },
	},
	[LINK_NONE] = {
		{ IP4, TCP(0x12), DATA(20) },
		{ IP6, EXT8(0), TCP(2), DATA(1400) },
		{ IP6, ICMP6(135, 0), DATA(20) },
		{ IP4, ICMP(8, 0) },
		{ IP4, UDP_PORTS(53, 443), DATA(1), PAD(140) },
		{ IP4_OPTIONS(4), PORTS(132, 12), DATA(4) },
		{ IP4, IP4, UDP },
		{ IP4, TCP(2), PAD(130) },
	},
};

/* ---- Packets -------------------------------------------------------------------------- */

struct tunnelled {
	struct packet_bytes packet;
	size_t start; /* of what is carried, which ends where padding begins */
};

static uint32_t count_layers(const struct layer *layers, uint32_t most)
{
	uint32_t n = 0;

	while (n < most && layers[n].kind != LAYER_END)
		n++;
	return n;
}

static void build(const struct tunnel *tunnel, const struct layer *inside,
		  struct tunnelled *ret_packet)
{
	struct layer layers[PACKET_LAYERS] = { 0 };
	uint32_t n = count_layers(tunnel->layers, LAYERS);

	memcpy(layers, tunnel->layers, n * sizeof(*layers));
	packet_build(layers, &ret_packet->packet);
	ret_packet->start = ret_packet->packet.len;
	memcpy(layers + n, inside,
	       count_layers(inside, LAYERS) * sizeof(*layers));
	packet_build(layers, &ret_packet->packet);
}

static struct tunnelled packets[ARRAY_SIZE(tunnels) * CARRIED_MAX];
static struct judge_bpf *objects[2]; /* by the kind of link */
static struct filter_template templates[2] = { { .name = "is_accepted" },
					       { .name = "is_accepted" } };

static int setup(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(packets); i++) {
		const struct tunnel *tunnel = &tunnels[i / CARRIED_MAX];

		build(tunnel, carried[tunnel->carries][i % CARRIED_MAX],
		      &packets[i]);
	}
	for (int link = LINK_ETHERNET; link <= LINK_NONE; link++) {
		objects[link] = judge_bpf__open();
		if (!objects[link])
			return -1;
		objects[link]->rodata->config_link = link;
		if (filter_template_init(&templates[link], objects[link]->obj) ||
		    judge_bpf__load(objects[link]))
			return -1;
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (int link = LINK_ETHERNET; link <= LINK_NONE; link++)
		judge_bpf__destroy(objects[link]);
	return 0;
}

static bool run(int fd, const struct packet_bytes *packet)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet->bytes,
		    .data_size_in = (uint32_t)packet->len);

	assert_int_equal(bpf_prog_test_run_opts(fd, &opts), 0);
	return opts.retval;
}

/* ---- Expressions ---------------------------------------------------------------------- */

/* @return a program for each kind of link; -1: the expression is not one for it */
static void load(const char *text, int ret_fds[2])
{
	static const struct log silent;
	char error[FILTER_ERROR_MAX] = "";
	struct filter *filter;

	if (filter_new(text, &filter, &error))
		fail_msg("%s: %s", text, error);
	for (int link = LINK_ETHERNET; link <= LINK_NONE; link++) {
		const struct filter_frames frames = { .link = link };

		ret_fds[link] = filter_check(filter, link, "frames", &silent) ?
					-1 :
					filter_load(filter, &templates[link],
						    &frames, &silent);
		if (ret_fds[link] < -1)
			fail_msg("%s: %s", text, strerror(-ret_fds[link]));
	}
	filter_free(filter);
}

/* For each kind of link; without instructions if it is not one for that. */
static void compile(const char *text, struct classic ret_classic[2])
{
	char error[256];

	for (int link = LINK_ETHERNET; link <= LINK_NONE; link++)
		if (classic_compile(text, link, &ret_classic[link], error,
				    sizeof(error)))
			ret_classic[link] = (struct classic){ 0 };
}

/* What libpcap says of the bytes. */
static bool is_matched(const struct classic *classic, const uint8_t *bytes,
		       size_t len)
{
	return classic->n &&
	       classic_run(classic, bytes, (uint32_t)len, (uint32_t)len);
}

static bool is_tunnelled_match(const struct classic outer[2],
			       const struct classic inner[2],
			       const struct tunnel *tunnel,
			       const struct tunnelled *made)
{
	const struct packet_bytes *packet = &made->packet;

	return is_matched(&outer[tunnel->link], packet->bytes, packet->len) &&
	       is_matched(&inner[tunnel->carries], packet->bytes + made->start,
			  packet->unpadded - made->start);
}

/* @return how many packets matched */
static uint32_t compare(const char *outer, const char *inner)
{
	struct classic outers[2], inners[2];
	char text[EXPRESSION_MAX];
	uint32_t matched = 0;
	int fds[2];

	snprintf(text, sizeof(text), "%s%sinner %s", outer,
		 *outer ? " and " : "", inner);
	load(text, fds);
	compile(outer, outers);
	compile(inner, inners);
	for (size_t i = 0; i < ARRAY_SIZE(packets); i++) {
		const struct tunnel *tunnel = &tunnels[i / CARRIED_MAX];
		bool expected =
			is_tunnelled_match(outers, inners, tunnel, &packets[i]);

		if (fds[tunnel->link] < 0)
			continue;
		if (run(fds[tunnel->link], &packets[i].packet) != expected)
			fail_msg("%s: %s, %zu: not %d", text, tunnel->name,
				 i % CARRIED_MAX, expected);
		matched += expected;
	}
	for (int link = LINK_ETHERNET; link <= LINK_NONE; link++) {
		if (fds[link] >= 0)
			close(fds[link]);
		classic_done(&outers[link]);
		classic_done(&inners[link]);
	}
	return matched;
}

/* One of so many expressions is tried; of fewer, in slow guests. */
static size_t stride(void)
{
	const char *given = getenv("NETOBS_TEST_INNER");
	int stride = given ? atoi(given) : STRIDE;

	return stride > 1 ? (size_t)stride * lab_shrink() : lab_shrink();
}

TEST(every_primitive_is_libpcaps)
{
	uint32_t matched = 0;

	for (size_t i = stride(); i < n_filter_expressions; i += stride())
		matched += compare("", filter_expressions[i]);
	if (stride() <= STRIDE)
		assert_true(matched > 0);
}

TEST(both_expressions_have_to_match)
{
	static const char *const outers[] = { "udp port 4789", "ip6",
					      "not ip proto 47", "vlan 5",
					      "greater 100 or tcp" };

	for (size_t i = 0; i < ARRAY_SIZE(outers); i++) {
		assert_true(compare(outers[i], "len > 0") > 0);
		compare(outers[i], "tcp or arp");
		compare(outers[i], "vlan or less 60");
	}
}

TEST(a_packet_without_a_tunnel_does_not_match)
{
	static const struct layer others[][PACKET_LAYERS] = {
		{ ETH, IP4, TCP(2), DATA(20) },
		{ ETH, ARP },
		{ ETH, IP4, UDP_PORTS(4789, 53), DATA(80) },
		{ ETH, IP4_FRAGMENT(IP4_MORE), VXLAN(7), ETH, IP4, UDP },
		{ ETH, IP4, UDP_PORTS(1, 4789), DATA(4) },
		{ ETH, IP4, VXLAN(2), POKE(0, 0), ETH, IP4, UDP }, /* no VNI */
		{ ETH, IP4, POKE(3, 28), VXLAN(2), ETH, IP4, UDP },
		{ ETH, IP4, GRE(GRE_R, 0), IP4, UDP },
		{ ETH, IP4, GRE(GRE_K, 9), NEXT(0), DATA(4) },
		{ ETH, IP4, POKE(3, 20), IP4, NEXT(2), PAD(60) },
		{ ETH, IP4, NEXT(4), DATA(20) },
	};
	int fds[2], not_fds[2];

	load("inner len >= 0", fds);
	load("inner not tcp", not_fds);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		struct packet_bytes packet;

		packet_build(others[i], &packet);
		if (run(fds[LINK_ETHERNET], &packet) ||
		    run(not_fds[LINK_ETHERNET], &packet))
			fail_msg("packet %zu matches", i);
	}
	for (int link = LINK_ETHERNET; link <= LINK_NONE; link++) {
		close(fds[link]);
		close(not_fds[link]);
	}
}

static void keep_message(int level, const char *message, void *user)
{
	(void)level;
	snprintf(user, EXPRESSION_MAX, "%s", message);
}

/* Behind "geneve", libpcap computes offsets, which takes much code where there may be a tag. */
TEST(too_large_code_has_a_message)
{
	static const char first[] = "vlan and geneve or port 1";
	char text[EXPRESSION_MAX] = "", message[EXPRESSION_MAX] = "",
	     error[FILTER_ERROR_MAX];
	const struct filter_rule rules[] = {
		{ .expression = "tcp", .accepts = true },
		{ .expression = text, .accepts = true },
		{ .expression = "udp" },
	};
	const struct filter_rules list = { .rules = rules,
					   .n = ARRAY_SIZE(rules) };
	const struct filter_frames frames = { .link = LINK_ETHERNET };
	const struct log log = { .write = keep_message, .user = message };
	struct filter *filter;
	int len = snprintf(text, sizeof(text), "%s", first);

	for (int i = 0; i < TERMS; i++)
		len += snprintf(text + len, sizeof(text) - (size_t)len,
				" or src net 10.%d.0.0/16 and dst port %d", i, i);
	assert_int_equal(filter_new_list(&list, &filter, &error), 0);
	assert_int_equal(filter_load(filter, &templates[LINK_ETHERNET], &frames,
				     &log),
			 -E2BIG);
	filter_free(filter);
	assert_non_null(strstr(message, "rules[1]: the expression is too large"));
	assert_non_null(strstr(message, "jumps reach over 32767"));
}

int main(void)
{
	return tests_run(setup, teardown);
}
