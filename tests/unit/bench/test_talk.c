// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The conversations that benchmarks make up follow TCP, in whatever order flows come. */
#include "host.h"
#include "lib_seed.h"
#include "lib_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "bench/talk.h"

enum { FLOWS = 64, PACKETS = 20000, FRAME = 128, IPV4 = 20, IPV6 = 40 };

static void frame_begin(uint8_t *frame, bool is_ipv6)
{
	uint8_t *l3 = frame + 14, *tcp = l3 + (is_ipv6 ? IPV6 : IPV4);

	memset(frame, 0, FRAME);
	frame[12] = is_ipv6 ? 0x86 : 0x08;
	frame[13] = is_ipv6 ? 0xdd : 0x00;
	l3[0] = is_ipv6 ? 0x60 : 0x45;
	l3[is_ipv6 ? 6 : 9] = IPPROTO_TCP;
	tcp[12] = 5 << 4;
}

static uint32_t word_at(const uint8_t *bytes)
{
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	return ntohl(word);
}

/* What both ends know of a connection. */
struct ends {
	uint32_t client_next;
};

static void check_packet(const uint8_t *frame, bool is_ipv6, uint32_t flow,
			 struct ends *ends)
{
	const uint8_t *tcp = frame + 14 + (is_ipv6 ? IPV6 : IPV4);
	struct outcome parsed = host_parse(LINK_ETHERNET, frame, FRAME);
	const struct packet *pkt = &parsed.pkt;
	uint32_t payload = 14 + pkt->ip_len - pkt->header_end;

	assert_int_equal(parsed.ret, 0);
	assert_int_equal(pkt->key.proto, IPPROTO_TCP);
	assert_int_equal(flow & 1 ? pkt->key.dst.words[3] : pkt->key.src.words[3],
			 flow & ~1U);
	assert_int_equal(flow & 1 ? pkt->key.src.words[3] : pkt->key.dst.words[3],
			 is_ipv6 ? TALK_SERVER6 : TALK_SERVER4);
	assert_int_equal(pkt->key.src_port, flow & 1 ? 9 : 7);
	assert_int_equal(pkt->key.dst_port, flow & 1 ? 7 : 9);
	if (flow & 1) {
		assert_int_equal(payload, 0);
		assert_int_equal(word_at(tcp + 4), 1);
		assert_int_equal(word_at(tcp + 8), ends->client_next);
	} else {
		assert_true(payload > 0);
		assert_int_equal(word_at(tcp + 4), ends->client_next);
		assert_int_equal(word_at(tcp + 8), 1);
		ends->client_next += payload;
	}
}

static void data_follows_data_and_is_acknowledged(void **state)
{
	uint32_t sent[FLOWS / 2];
	struct ends ends[FLOWS / 2];
	uint8_t frame[FRAME];

	(void)state;
	srand48(test_seed());
	for (int is_ipv6 = 0; is_ipv6 < 2; is_ipv6++) {
		frame_begin(frame, is_ipv6);
		memset(sent, 0, sizeof(sent));
		for (int i = 0; i < FLOWS / 2; i++)
			ends[i].client_next = 1;
		for (int i = 0; i < PACKETS; i++) {
			uint32_t flow = (uint32_t)lrand48() % FLOWS;

			talk_write(frame, is_ipv6, flow, &sent[flow / 2]);
			check_packet(frame, is_ipv6, flow, &ends[flow / 2]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_follows_data_and_is_acknowledged),
	};

	return cmocka_run_group_tests_name("bench_talk", tests, NULL, NULL);
}
