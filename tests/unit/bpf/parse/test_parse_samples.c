// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What the parser makes of whole packets: the table in harness/samples.c. */

#include "host.h"
#include "lib_test.h"
#include "samples.h"

/* The sample that is being looked at: failures name it. */
static const struct sample *sample_of(void **state)
{
	return *state;
}

static void assert_addr(const struct ip_addr *addr, bool ipv6,
			unsigned int level, unsigned int end)
{
	uint8_t wanted[16];

	if (ipv6)
		packet_addr6(level, end, wanted);
	else
		packet_addr4(level, end, wanted);
	assert_memory_equal(addr->bytes, wanted, sizeof(wanted));
}

static void assert_key(const struct flow_key *key, const struct expected *want)
{
	assert_int_equal(key->proto, want->proto);
	assert_int_equal(key->src_port, want->src_port);
	assert_int_equal(key->dst_port, want->dst_port);
	assert_int_equal(key->vlan, want->vlan);
	assert_int_equal(key->outer_vlan, want->outer_vlan);
	assert_int_equal(key->flags, want->ipv6 ? KEY_IPV6 : 0);
	assert_int_equal(key->tunnel, want->tunnel);
	assert_int_equal(key->vni, want->vni);
	assert_int_equal(key->outer_hash != 0, want->tunnel != TUNNEL_NONE);
	assert_addr(&key->src, want->ipv6, want->level, 0);
	assert_addr(&key->dst, want->ipv6, want->level, 1);
}

static void assert_outer(const struct packet *pkt, const struct expected *want)
{
	static const struct ip_addr none;

	assert_int_equal(pkt->outer_dst_port, want->outer_dst_port);
	if (want->tunnel == TUNNEL_NONE) {
		assert_memory_equal(&pkt->outer_src, &none, sizeof(none));
		assert_memory_equal(&pkt->outer_dst, &none, sizeof(none));
		return;
	}
	assert_addr(&pkt->outer_src, want->outer_ipv6, 0, 0);
	assert_addr(&pkt->outer_dst, want->outer_ipv6, 0, 1);
}

static void assert_extent(const struct packet *pkt, const struct sample *sample,
			  const struct packet_bytes *packet)
{
	const struct expected *want = &sample->expected;
	size_t l3 = want->l3_offset;
	size_t end = want->header_end ? want->header_end : packet->headers;
	size_t ip_len;

	if (!l3 && sample->link == LINK_ETHERNET)
		l3 = 14;
	ip_len = want->ip_len ? want->ip_len : packet->unpadded - l3;
	assert_int_equal(pkt->l3_offset, l3);
	assert_int_equal(pkt->header_end, end);
	assert_int_equal(pkt->ip_len, want->no_ip_len ? 0 : ip_len);
	assert_int_equal(pkt->unsent, want->unsent);
}

static void parse_gives_the_expected_flow(void **state)
{
	const struct sample *sample = sample_of(state);
	const struct expected *want = &sample->expected;
	struct packet_bytes packet;
	struct outcome got;

	packet_build(sample->layers, &packet);
	got = host_parse(sample->link, packet.bytes, packet.len);
	assert_int_equal(got.ret, want->ret);
	if (got.ret)
		return;
	assert_key(&got.pkt.key, want);
	assert_outer(&got.pkt, want);
	assert_extent(&got.pkt, sample, &packet);
	/* Inner Ethernet headers do not count: MACs are from the link's header. */
	assert_int_equal(got.pkt.attrs.has_mac, sample->link == LINK_ETHERNET);
	assert_int_equal(got.pkt.fragment, want->fragment);
	assert_int_equal(got.pkt.attrs.dscp, PACKET_TOS >> 2);
	assert_int_equal(got.pkt.attrs.flow_label,
			 want->ipv6 ? PACKET_LABEL - want->level : 0);
	assert_int_equal(got.pkt.attrs.ttl_min, PACKET_TTL - want->level);
	assert_int_equal(got.pkt.attrs.ttl_max, PACKET_TTL - want->level);
	/* ECT(1) is codepoint 1: RFC 3168, 5. */
	assert_int_equal(got.pkt.attrs.marks,
			 tcp_marks(want->tcp_flags) |
				 (want->no_tcp_flags ? MARK_NO_TCP_FLAGS : 0) |
				 1 << (MARK_ECN_SHIFT + 1));
	if (want->fragment)
		assert_int_not_equal(got.pkt.fragment_id, 0);
}

static void parse_is_the_same_with_more_bytes_behind(void **state)
{
	const struct sample *sample = sample_of(state);
	struct packet_bytes packet;
	struct outcome plain, longer;

	packet_build(sample->layers, &packet);
	plain = host_parse(sample->link, packet.bytes, packet.len);
	memset(packet.bytes + packet.len, 0x45, 200);
	longer = host_parse(sample->link, packet.bytes, packet.len + 200);
	assert_int_equal(plain.ret, longer.ret);
	if (!plain.ret)
		assert_memory_equal(&plain.pkt, &longer.pkt, sizeof(plain.pkt));
}

/* A flow of the outer tuple, since the inner packet is cut off. */
static void assert_outer_flow(const struct outcome *got,
			      const struct outcome *whole)
{
	assert_true(got->cut);
	assert_int_equal(got->pkt.key.tunnel, TUNNEL_NONE);
	assert_int_equal(got->pkt.key.vni, 0);
	assert_int_equal(got->pkt.key.outer_hash, 0);
	assert_memory_equal(&got->pkt.key.src, &whole->pkt.outer_src, 16);
	assert_memory_equal(&got->pkt.key.dst, &whole->pkt.outer_dst, 16);
	assert_int_equal(got->pkt.key.dst_port, whole->pkt.outer_dst_port);
	assert_int_equal(got->pkt.l3_offset, whole->pkt.l3_offset);
	assert_int_equal(got->pkt.ip_len, whole->pkt.ip_len);
}

/*
 * Cut to each length: too short, then what has its ports, for a tunnel of the
 * outer flow first, then what the whole packet is; never back.
 */
static void parse_of_every_truncation_is_short_cut_or_whole(void **state)
{
	const struct sample *sample = sample_of(state);
	enum { SHORT, OUTER, PORTS_ONLY, WHOLE } stage = SHORT, now;
	struct packet_bytes packet;
	struct outcome whole;

	packet_build(sample->layers, &packet);
	whole = host_parse(sample->link, packet.bytes, packet.len);
	for (size_t len = 0; len < packet.len; len++) {
		struct outcome got = host_parse(sample->link, packet.bytes, len);

		if (got.ret) {
			assert_true(stage == SHORT || whole.ret);
			if (got.ret != reject(UNPARSED_SHORT))
				assert_int_equal(got.ret, whole.ret);
			continue;
		}
		if (whole.ret) { /* the invalid part is not captured yet */
			assert_true(got.cut);
			continue;
		}
		now = PORTS_ONLY;
		if (!memcmp((char *)&got.pkt, (char *)&whole.pkt, sizeof(got.pkt)))
			now = WHOLE;
		else if (memcmp(&got.pkt.key, &whole.pkt.key, sizeof(got.pkt.key)))
			now = OUTER;
		assert_true(now >= stage);
		stage = now;
		if (stage == OUTER)
			assert_outer_flow(&got, &whole);
		assert_true(stage == WHOLE || got.cut);
	}
}

/* Of the header, or of what there is of it: the rest is counted, not read. */
static size_t unread_of(const struct sample *sample)
{
	size_t unread = 0;

	for (const struct layer *l = sample->layers; l->kind != LAYER_END; l++) {
		if (l->kind == LAYER_TCP)
			unread = l->b + TCP_HEADER_LEN - TCP_FLAGS_END;
		if (l->kind == LAYER_PORTS && sample->expected.fragment)
			unread = l->b - sizeof(struct ports_wire);
	}
	return unread;
}

/* Where a packet becomes its flow, to the byte: not earlier, not later. */
static void parse_needs_the_headers_and_no_more(void **state)
{
	const struct sample *sample = sample_of(state);
	struct packet_bytes packet;
	struct outcome whole, got;
	size_t needed;

	packet_build(sample->layers, &packet);
	whole = host_parse(sample->link, packet.bytes, packet.len);
	if (whole.ret)
		return;
	needed = whole.pkt.header_end - unread_of(sample);
	got = host_parse(sample->link, packet.bytes, needed);
	assert_int_equal(got.ret, 0);
	assert_memory_equal(&got.pkt, &whole.pkt, sizeof(got.pkt));
	got = host_parse(sample->link, packet.bytes, needed - 1);
	assert_true(got.ret || got.cut);
}

typedef void (*sample_test)(void **state);

static const struct {
	const char *name;
	sample_test run;
} tests[] = {
	{ "expected_flow", parse_gives_the_expected_flow },
	{ "more_bytes", parse_is_the_same_with_more_bytes_behind },
	{ "truncated", parse_of_every_truncation_is_short_cut_or_whole },
	{ "headers_needed", parse_needs_the_headers_and_no_more },
};

enum { N_TESTS = sizeof(tests) / sizeof(tests[0]), MAX_CASES = 1024 };

int main(void)
{
	static struct CMUnitTest cases[MAX_CASES];
	static char names[MAX_CASES][96];
	size_t n = 0;

	for (size_t i = 0; i < n_samples; i++) {
		for (size_t j = 0; j < N_TESTS; j++, n++) {
			snprintf(names[n], sizeof(names[n]), "%s: %s",
				 samples[i].name, tests[j].name);
			cases[n].name = names[n];
			cases[n].test_func = tests[j].run;
			cases[n].initial_state = (void *)&samples[i];
		}
	}
	return _cmocka_run_group_tests("parse", cases, n, NULL, NULL);
}
