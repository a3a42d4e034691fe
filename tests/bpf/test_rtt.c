// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * The table of connections in the kernel: frames go through the real programs, at times that
 * the test chooses, and entries are read back. What segments mean is tested by the unit tests of
 * src/bpf/rtt.
 */
#include "lib_test.h"

#include "prog_test.h"
#include "tcp_frames.h"

static const struct prog_options options = {
	.clock = CLOCK_PACKET,
	.has_egress = 1,
	.conn_buckets = 64,
};

static uint64_t us_of(uint32_t latency)
{
	return (((uint64_t)latency << CONN_LATENCY_SHIFT) + 500) / 1000;
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
	static const struct tcp_frame kinds[] = {
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

		tcp_exchange(prog, kinds[i], &key);
		conn = prog_test_connection(prog, &key);
		check_exchange(conn, connection_dir(&key));
	}
	assert_int_equal(prog_conn_counters(prog).created, ARRAY_SIZE(kinds));
}

TEST(both_legs_and_the_servers_time_are_measured)
{
	check_exchanges(&options);
}

/* The number of a rate in flows' keys makes no other connection. */
TEST(sampling_leaves_no_segment_out)
{
	struct prog_options sampled = options;

	sampled.sampling_interval = 2;
	check_exchanges(&sampled);
	sampled.sampling = SAMPLE_FLOWS;
	check_exchanges(&sampled);
}

/*
 * The client sends data three times, each with a timestamp of its own, and the server acknowledges
 * it 400 us after the last time, with @tsecr. Returns the client's direction.
 */
static struct conn_stats *resend(struct prog *prog, struct tcp_frame common,
				 uint32_t tsecr)
{
	struct tcp_frame syn = common, data, ack = common;
	struct flow_key key;

	syn.egress = true;
	syn.flags = SYN;
	syn.seq = 100;
	tcp_send(prog, syn);
	ack.is_answer = true;
	ack.flags = SYN | ACK;
	ack.seq = 500;
	ack.ack = 101;
	ack.us = 300;
	tcp_send(prog, ack);
	data = syn;
	data.flags = ACK | PSH;
	data.seq = 101;
	data.ack = 501;
	data.len = 10;
	for (uint32_t i = 0; i < 3; i++) {
		data.tsval = 0xfffffe70 + 250 * i; /* it wraps */
		data.us = 2000 + 250000 * i;
		key = tcp_send(prog, data);
	}
	ack.flags = ACK;
	ack.seq = 501;
	ack.ack = 111;
	ack.tsecr = tsecr;
	ack.us = data.us + 400;
	tcp_send(prog, ack);
	return &prog_connection(prog, &key).body->stats[connection_dir(&key)];
}

/* The last of the three is known to be the only one with its timestamp. */
TEST(what_was_sent_again_is_timed_by_its_timestamp)
{
	static const struct {
		enum tcp_stamps stamps;
		uint32_t tsecr;
		bool is_sample;
	} cases[] = {
		{ STAMPS_FIRST, 100, true },
		{ STAMPS_FIRST, 0xffffff6a, false },
		{ STAMPS_FIRST, 101, false },
		{ STAMPS_SHIFTED, 100, false },
		{ STAMPS_NONE, 100, false },
	};
	struct prog *prog = prog_test_open(&options);
	struct tcp_frame frame = { .port = 1000 };

	for (size_t i = 0; i < 4 * ARRAY_SIZE(cases); i++) {
		const struct conn_stats *stats;

		frame.port++;
		frame.is_ipv6 = i & 1;
		frame.is_vxlan = i & 2;
		frame.stamps = cases[i / 4].stamps;
		stats = resend(prog, frame, cases[i / 4].tsecr);
		assert_int_equal(stats->retransmitted, 2);
		assert_int_equal(stats->retransmitted_bytes, 20);
		assert_int_equal(stats->rtt.n, 1 + cases[i / 4].is_sample);
		assert_int_equal(us_of(stats->rtt.last),
				 cases[i / 4].is_sample ? 400 : 300);
	}
}

/* ---- Echoes ------------------------------------------------------------------------ */

/* Returns the key of its connection in the table. */
static struct flow_key send_echo(struct prog *prog, struct tcp_frame frame,
				 uint32_t number)
{
	struct flow_key key = echo_send(prog, frame, number);

	key.dst_port = 0;
	return key;
}

TEST(echoes_are_timed_by_their_numbers)
{
	struct prog *prog = prog_test_open(&options);

	for (int i = 0; i < 4; i++) {
		struct tcp_frame request = { .port = i,
					     .is_ipv6 = i & 1,
					     .is_vxlan = i & 2,
					     .egress = true };
		struct tcp_frame reply = request;
		const struct conn_stats *stats;
		struct connection conn;
		struct flow_key key;

		reply.is_answer = true;
		reply.egress = false;
		for (uint32_t n = 0; n < 3; n++) {
			request.us = 100 * n;
			send_echo(prog, request, 7 << 16 | n);
		}
		reply.us = 1000;
		send_echo(prog, reply, 7 << 16 | 1);
		send_echo(prog, reply, 7 << 16 | 9);
		reply.us = 2000;
		send_echo(prog, reply, 7 << 16 | 0);
		key = send_echo(prog, reply, 7 << 16 | 0);
		conn = prog_test_connection(prog, &key);
		/* Replies go in the direction of @key. */
		stats = &conn.body->stats[!connection_dir(&key)];
		assert_int_equal(stats->rtt.n, 2);
		assert_int_equal(us_of(stats->rtt.min), 900);
		assert_int_equal(us_of(stats->rtt.max), 2000);
		assert_int_equal(conn.body->stats[connection_dir(&key)].rtt.n, 0);
	}
	assert_int_equal(prog_conn_counters(prog).created, 4);
}

/* A reply makes no entry, nor do other messages. */
TEST(without_a_request_there_is_no_entry)
{
	struct prog *prog = prog_test_open(&options);

	send_echo(prog, (struct tcp_frame){ .is_answer = true }, 1);
	send_echo(prog,
		  (struct tcp_frame){ .is_answer = true, .is_ipv6 = true }, 1);
	assert_int_equal(prog_conn_counters(prog).created, 0);
}

/* ---- What else there is ------------------------------------------------------------- */

/* As loopback and hairpins do: out and in, each with a time of its own. */
TEST(a_packet_that_is_seen_twice_counts_once)
{
	struct prog *prog = prog_test_open(&options);
	struct connection conn;
	struct flow_key key;

	for (int i = 0; i < 2; i++) {
		struct tcp_frame syn = tcp_out(9, SYN, 100, 0, 0, 100 + 7 * i);

		syn.egress = !i;
		tcp_send(prog, syn);
	}
	for (int i = 0; i < 2; i++) {
		struct tcp_frame answer =
			tcp_in(9, SYN | ACK, 500, 101, 0, 130 + 7 * i);

		answer.egress = !i;
		key = tcp_send(prog, answer);
	}
	conn = prog_test_connection(prog, &key);
	assert_int_equal(conn.body->stats[0].syn_retries +
				 conn.body->stats[1].syn_retries,
			 0);
	assert_int_equal(
		us_of(conn.body->stats[!connection_dir(&key)].handshake), 30);
}

TEST(buffers_have_the_payload_of_all_their_segments)
{
	struct prog *prog = prog_test_open(&options);
	struct tcp_frame frame = {
		.port = 5000, .flags = ACK, .seq = 1000, .ack = 1, .len = 1000
	};
	struct connection conn;
	struct flow_key key;

	for (int i = 0; i < 4; i++) {
		frame.is_ipv6 = i & 1;
		frame.is_vxlan = i & 2;
		frame.port++;
		frame.segments = 0;
		tcp_send(prog, frame);
		frame.segments = 4;
		tcp_send(prog, frame);
		key = tcp_send(prog, frame);
		conn = prog_test_connection(prog, &key);
		assert_int_equal(conn.head->sides[connection_dir(&key)].next,
				 2000);
		assert_int_equal(
			conn.body->stats[connection_dir(&key)].retransmitted, 8);
		assert_int_equal(
			conn.body->stats[connection_dir(&key)].retransmitted_bytes,
			2000);
	}
}

static void assert_is_new(struct connection conn, uint64_t born)
{
	assert_true(conn.body->born_ns > born);
	assert_int_equal(conn.head->version % 2, 0);
	assert_int_equal(conn.body->stats[0].rtt.n + conn.body->stats[1].rtt.n,
			 0);
	assert_int_equal(conn.body->stats[0].turn.n + conn.body->stats[1].turn.n,
			 0);
}

TEST(a_tuple_that_is_used_again_begins_anew)
{
	struct prog *prog = prog_test_open(&options);
	struct tcp_frame syn = tcp_out(1000, SYN, 90000, 0, 0, 5000000);
	struct tcp_frame reset = syn;
	struct connection conn;
	struct flow_key key;
	uint64_t born;

	tcp_exchange(prog, (struct tcp_frame){ .port = 1000 }, &key);
	conn = prog_test_connection(prog, &key);
	born = conn.body->born_ns;
	reset.flags = RST;
	reset.seq = 111;
	tcp_send(prog, reset);
	tcp_send(prog, syn);
	assert_ptr_equal(prog_test_connection(prog, &key).head, conn.head);
	assert_is_new(conn, born);
	assert_int_equal(prog_conn_counters(prog).created, 1);
}

/* RFC 5961, 4: only the answer shows that the other end takes it, and anyone can forge another. */
TEST(a_syn_and_its_answer_end_an_open_connection)
{
	struct prog *prog = prog_test_open(&options);
	struct tcp_frame answer =
		tcp_in(1000, SYN | ACK, 70000, 80000, 0, 5000300);
	struct connection conn;
	struct flow_key key;
	uint64_t born;

	tcp_exchange(prog, (struct tcp_frame){ .port = 1000 }, &key);
	conn = prog_test_connection(prog, &key);
	born = conn.body->born_ns;
	for (uint32_t i = 0; i < 100; i++)
		tcp_send(prog,
			 tcp_out(1000, SYN, 90000 - i * 7919, 0, 0, 5000000));
	tcp_send(prog, answer);
	answer.is_answer = false;
	answer.egress = true;
	tcp_send(prog, answer);
	assert_int_equal(conn.body->born_ns, born);
	check_exchange(conn, connection_dir(&key));
	answer.is_answer = true;
	answer.egress = false;
	answer.ack = 90001 - 99 * 7919;
	tcp_send(prog, answer);
	assert_is_new(prog_test_connection(prog, &key), born);
}

/* Other programs have no table, and touch none. */
TEST(without_it_nothing_is_kept)
{
	static const struct prog_options off = { .clock = CLOCK_PACKET,
						 .has_egress = 1 };
	struct prog *prog = prog_test_open(&off);
	struct flow_key key;

	tcp_exchange(prog, (struct tcp_frame){ .port = 1000 }, &key);
	assert_int_equal(prog->conn_heads[0].version, 0);
	assert_int_equal(prog_conn_counters(prog).created, 0);
}
