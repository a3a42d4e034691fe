// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * The table of connections in the kernel: frames go through the real programs, at times that
 * the test chooses, and entries are read back. What segments mean is tested by
 * unit.rtt_observe and unit.rtt_model.
 */
#include "lib_test.h"

#include "base/util.h"
#include "host.h"
#include "prog_test.h"

#include <stdbool.h>
#include <string.h>

enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16 };

static const struct prog_options options = {
	.clock = CLOCK_PACKET,
	.has_egress = 1,
	.conn_buckets = 64,
};

/* A segment from or to a client. */
struct frame {
	bool is_ipv6;
	bool is_vxlan;
	bool is_answer; /* from the server */
	bool egress;
	uint16_t port; /* of the client */
	uint8_t flags;
	uint32_t seq, ack;
	uint32_t len;
	uint64_t us;
	uint16_t segments; /* GSO or GRO; 0: one */
};

enum { SERVER_PORT = 80, LAYERS_MAX = 32 };

static void poke32(struct layer **at, uint32_t offset, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		*(*at)++ = (struct layer)POKE(offset + i,
					      value >> (24 - 8 * i) & 0xff);
}

/* The transport header, with ports, numbers and a window. */
static void put_tcp(struct layer **at, const struct frame *frame)
{
	uint32_t client = frame->port, server = SERVER_PORT;

	*(*at)++ = (struct layer)TCP(frame->flags);
	poke32(at, 0,
	       frame->is_answer ? server << 16 | client : client << 16 | server);
	poke32(at, 4, frame->seq);
	poke32(at, 8, frame->ack);
	*(*at)++ = (struct layer)POKE(14, 0x10);
	if (frame->len)
		*(*at)++ = (struct layer)DATA(frame->len);
}

static void swap_bytes(uint8_t *a, uint8_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint8_t kept = a[i];

		a[i] = b[i];
		b[i] = kept;
	}
}

/* The other way: the addresses of the IP header at @offset. */
static void answer(uint8_t *bytes, size_t offset, bool is_ipv6)
{
	uint8_t *src = bytes + offset + (is_ipv6 ? 8 : 12);

	swap_bytes(src, src + (is_ipv6 ? 16 : 4), is_ipv6 ? 16 : 4);
}

static void build(const struct frame *frame, struct packet_bytes *ret_bytes)
{
	const struct layer vxlan[] = { ETH, IP4, VXLAN(7) };
	struct layer layers[LAYERS_MAX], *at = layers;
	size_t offset = 14;

	memset(layers, 0, sizeof(layers));
	if (frame->is_vxlan) {
		memcpy(at, vxlan, sizeof(vxlan));
		at += ARRAY_SIZE(vxlan);
		offset += 20 + 8 + 8 + 14;
	}
	*at++ = (struct layer)ETH;
	*at++ = frame->is_ipv6 ? (struct layer)IP6 : (struct layer)IP4;
	put_tcp(&at, frame);
	packet_build(layers, ret_bytes);
	if (frame->is_answer) {
		answer(ret_bytes->bytes, offset, frame->is_ipv6);
		if (frame->is_vxlan)
			answer(ret_bytes->bytes, 14, false);
	}
}

static struct flow_key send(struct prog *prog, struct frame frame)
{
	struct packet_bytes bytes;
	struct prog_packet packet = { .bytes = bytes.bytes };
	struct outcome parsed;

	build(&frame, &bytes);
	packet.len = bytes.len;
	packet.egress = frame.egress;
	packet.time_ns = (1000000 + frame.us) * 1000;
	packet.gso_segs = frame.segments;
	if (frame.segments)
		packet.gso_size =
			(frame.len + frame.segments - 1) / frame.segments;
	assert_int_equal(prog_run(prog, &packet, NULL), 0);
	parsed = host_parse(LINK_ETHERNET, bytes.bytes, bytes.len);
	parsed.pkt.key.ifindex = 1; /* where the kernel says test runs are */
	return parsed.pkt.key;
}

static uint64_t us_of(uint32_t latency)
{
	return (((uint64_t)latency << CONN_LATENCY_SHIFT) + 500) / 1000;
}

/*
 * Observed at the client: its segments go out. The handshake takes 300 us, the server 50 ms,
 * and its data is acknowledged after 20 us.
 */
static void exchange(struct prog *prog, struct frame common,
		     struct flow_key *ret_key)
{
	struct frame client = common, server = common;

	client.egress = !common.egress;
	server.is_answer = true;
#define CLIENT(...)                                    \
	send(prog, ({                                  \
		     struct frame f = client;          \
		     struct frame d = { __VA_ARGS__ }; \
		     f.flags = d.flags;                \
		     f.seq = d.seq;                    \
		     f.ack = d.ack;                    \
		     f.len = d.len;                    \
		     f.us = d.us;                      \
		     f;                                \
	     }))
#define SERVER(...)                                    \
	send(prog, ({                                  \
		     struct frame f = server;          \
		     struct frame d = { __VA_ARGS__ }; \
		     f.flags = d.flags;                \
		     f.seq = d.seq;                    \
		     f.ack = d.ack;                    \
		     f.len = d.len;                    \
		     f.us = d.us;                      \
		     f;                                \
	     }))
	*ret_key = CLIENT(.flags = SYN, .seq = 100, .us = 0);
	SERVER(.flags = SYN | ACK, .seq = 500, .ack = 101, .us = 300);
	CLIENT(.flags = ACK, .seq = 101, .ack = 501, .us = 310);
	CLIENT(.flags = ACK | PSH, .seq = 101, .ack = 501, .len = 10, .us = 2000);
	SERVER(.flags = ACK, .seq = 501, .ack = 111, .us = 2400);
	SERVER(.flags = ACK | PSH, .seq = 501, .ack = 111, .len = 20,
	       .us = 52000);
	CLIENT(.flags = ACK, .seq = 111, .ack = 521, .us = 52020);
}

static void check_exchange(struct connection conn, int client)
{
	const struct conn_stats *up = &conn.body->stats[client];
	const struct conn_stats *down = &conn.body->stats[!client];

	assert_int_equal(conn.head->version % 2, 0);
	assert_int_equal(conn.head->opener, client);
	assert_int_equal(up->rtt.n, 2);
	assert_int_equal(us_of(up->handshake), 300);
	assert_int_equal(us_of(up->rtt.last), 400);
	assert_int_equal(us_of(up->rtt.min), 300);
	assert_int_equal(us_of(up->rtt.max), 400);
	assert_int_equal(down->rtt.n, 2);
	assert_int_equal(us_of(down->handshake), 10);
	assert_int_equal(us_of(down->rtt.last), 20);
	assert_int_equal(down->turn.n, 1);
	assert_int_equal(us_of(down->turn.last), 50000);
	assert_int_equal(up->turn.n, 0);
	assert_int_equal(conn_data_bytes(&conn, client), 10);
	assert_int_equal(conn_data_bytes(&conn, !client), 20);
	assert_int_equal(up->retransmitted + down->retransmitted, 0);
}

static void check_exchanges(const struct prog_options *with)
{
	static const struct frame kinds[] = {
		{ .port = 1000 },
		{ .port = 1001, .is_ipv6 = true },
		{ .port = 1002, .is_vxlan = true },
		{ .port = 1003, .is_vxlan = true, .is_ipv6 = true },
		{ .port = 20, .egress = true }, /* the server is here */
	};
	struct prog *prog = prog_test_open(with);

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct connection conn;
		struct flow_key key;

		exchange(prog, kinds[i], &key);
		conn = prog_connection(prog, &key);
		assert_non_null(conn.head);
		check_exchange(conn, connection_dir(&key));
	}
	assert_int_equal(prog_conn_counters(prog).created, ARRAY_SIZE(kinds));
}

static void both_legs_and_the_servers_time_are_measured(void **state)
{
	(void)state;
	check_exchanges(&options);
}

/* The number of a rate in flows' keys makes no other connection. */
static void sampling_leaves_no_segment_out(void **state)
{
	struct prog_options sampled = options;

	(void)state;
	sampled.sampling_interval = 2;
	check_exchanges(&sampled);
	sampled.sampling = SAMPLE_FLOWS;
	check_exchanges(&sampled);
}

static struct connection connection_of(struct prog *prog,
				       const struct flow_key *key)
{
	struct connection conn = prog_connection(prog, key);

	assert_non_null(conn.head);
	return conn;
}

/* As loopback and hairpins do: out and in, each with a time of its own. */
static void a_packet_that_is_seen_twice_counts_once(void **state)
{
	struct prog *prog = prog_test_open(&options);
	struct connection conn;
	struct flow_key key;

	(void)state;
	for (int i = 0; i < 2; i++) {
		uint64_t us = i * 7;
		bool out = !i;

		send(prog, (struct frame){ .port = 9,
					   .egress = out,
					   .flags = SYN,
					   .seq = 100,
					   .us = 100 + us });
	}
	for (int i = 0; i < 2; i++) {
		key = send(prog, (struct frame){ .port = 9,
						 .egress = !i,
						 .is_answer = true,
						 .flags = SYN | ACK,
						 .seq = 500,
						 .ack = 101,
						 .us = 130 + 7 * i });
	}
	conn = connection_of(prog, &key);
	assert_int_equal(conn.body->stats[0].syn_retries +
				 conn.body->stats[1].syn_retries,
			 0);
	assert_int_equal(
		us_of(conn.body->stats[!connection_dir(&key)].handshake), 30);
}

static void buffers_have_the_payload_of_all_their_segments(void **state)
{
	struct prog *prog = prog_test_open(&options);
	struct frame frame = {
		.port = 5000, .flags = ACK, .seq = 1000, .ack = 1, .len = 1000
	};
	struct connection conn;
	struct flow_key key;

	(void)state;
	for (int i = 0; i < 4; i++) {
		frame.is_ipv6 = i & 1;
		frame.is_vxlan = i & 2;
		frame.port++;
		frame.segments = 0;
		send(prog, frame);
		frame.segments = 4;
		send(prog, frame);
		key = send(prog, frame);
		conn = connection_of(prog, &key);
		assert_int_equal(conn.head->sides[connection_dir(&key)].next,
				 2000);
		assert_int_equal(
			conn.body->stats[connection_dir(&key)].retransmitted, 8);
		assert_int_equal(
			conn.body->stats[connection_dir(&key)].retransmitted_bytes,
			2000);
	}
}

static void a_tuple_that_is_used_again_begins_anew(void **state)
{
	struct prog *prog = prog_test_open(&options);
	struct connection conn;
	struct flow_key key;
	uint64_t born;

	(void)state;
	exchange(prog, (struct frame){ .port = 1000 }, &key);
	conn = connection_of(prog, &key);
	born = conn.body->born_ns;
	send(prog, (struct frame){ .port = 1000,
				   .egress = true,
				   .flags = SYN,
				   .seq = 90000,
				   .us = 5000000 });
	assert_ptr_equal(connection_of(prog, &key).head, conn.head);
	assert_true(conn.body->born_ns > born);
	assert_int_equal(conn.head->version % 2, 0);
	assert_int_equal(conn.body->stats[0].rtt.n + conn.body->stats[1].rtt.n,
			 0);
	assert_int_equal(conn.body->stats[0].turn.n + conn.body->stats[1].turn.n,
			 0);
	assert_int_equal(prog_conn_counters(prog).created, 1);
}

/* More of them than there are places, and than those of the bucket. */
static void a_flood_of_syns_pushes_out_no_open_connection(void **state)
{
	enum { REAL = 200, FLOOD = 20000, FIRST = 40000 };
	struct prog *prog = prog_test_open(&options);
	static struct flow_key keys[REAL];
	struct conn_counters counters;
	uint32_t kept = 0;

	(void)state;
	for (uint32_t i = 0; i < REAL; i++)
		exchange(prog, (struct frame){ .port = FIRST + i }, &keys[i]);
	for (uint32_t i = 0; i < REAL; i++)
		kept += !!prog_connection(prog, &keys[i]).head;
	assert_true(kept > REAL * 9 / 10);
	for (uint32_t i = 0; i < FLOOD; i++)
		send(prog, (struct frame){ .port = 1 + i,
					   .flags = SYN,
					   .seq = i,
					   .us = 10000000 });
	for (uint32_t i = 0; i < REAL; i++)
		kept -= !!prog_connection(prog, &keys[i]).head;
	assert_int_equal(kept, 0);
	counters = prog_conn_counters(prog);
	assert_true(counters.evicted_half_open > FLOOD / 2);
	assert_int_equal(counters.evicted_idle, 0);
}

/* The oldest ones of a bucket; and nothing is made for what only ends. */
static void idle_connections_give_their_place(void **state)
{
	static const struct prog_options one_bucket = {
		.clock = CLOCK_PACKET,
		.has_egress = 1,
		.conn_buckets = 1,
	};
	struct prog *prog = prog_test_open(&one_bucket);
	struct flow_key keys[CONN_WAYS + 1];

	(void)state;
	for (uint32_t i = 0; i < CONN_WAYS; i++)
		exchange(prog, (struct frame){ .port = 1000 + i }, &keys[i]);
	exchange(prog, (struct frame){ .port = 2000 }, &keys[CONN_WAYS]);
	assert_null(prog_connection(prog, &keys[CONN_WAYS]).head);
	assert_true(prog_conn_counters(prog).refused > 0);
	/* Each a second after the one before, the third one last. */
	for (uint32_t i = 0; i < CONN_WAYS; i++) {
		if (i != 2)
			send(prog,
			     (struct frame){ .port = 1000 + i,
					     .egress = true,
					     .flags = ACK,
					     .seq = 111,
					     .ack = 521,
					     .us = (10 + 2 * i) * 1000000 });
	}
	send(prog, (struct frame){ .port = 2000,
				   .flags = ACK,
				   .seq = 1,
				   .ack = 1,
				   .us = 64000000 });
	assert_non_null(prog_connection(prog, &keys[CONN_WAYS]).head);
	for (uint32_t i = 0; i < CONN_WAYS; i++) {
		if (i == 2)
			assert_null(prog_connection(prog, &keys[i]).head);
		else
			assert_non_null(prog_connection(prog, &keys[i]).head);
	}
	assert_int_equal(prog_conn_counters(prog).evicted_idle, 1);
	send(prog, (struct frame){ .port = 3000,
				   .flags = FIN | ACK,
				   .seq = 1,
				   .ack = 1,
				   .us = 300000000 });
	assert_int_equal(prog_conn_counters(prog).evicted_idle, 1);
}

/* Other programs have no table, and touch none. */
static void without_it_nothing_is_kept(void **state)
{
	static const struct prog_options off = { .clock = CLOCK_PACKET,
						 .has_egress = 1 };
	struct prog *prog = prog_test_open(&off);
	struct flow_key key;

	(void)state;
	exchange(prog, (struct frame){ .port = 1000 }, &key);
	assert_int_equal(prog->conn_heads[0].version, 0);
	assert_int_equal(prog_conn_counters(prog).created, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_legs_and_the_servers_time_are_measured),
		cmocka_unit_test(sampling_leaves_no_segment_out),
		cmocka_unit_test(a_packet_that_is_seen_twice_counts_once),
		cmocka_unit_test(buffers_have_the_payload_of_all_their_segments),
		cmocka_unit_test(a_tuple_that_is_used_again_begins_anew),
		cmocka_unit_test(a_flood_of_syns_pushes_out_no_open_connection),
		cmocka_unit_test(idle_connections_give_their_place),
		cmocka_unit_test(without_it_nothing_is_kept),
	};

	return cmocka_run_group_tests_name("rtt", tests, NULL,
					   prog_test_teardown);
}
