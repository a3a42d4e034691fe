// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * A table of connections whose bodies are added while it is in use has what a table with all of them
 * from the start has, and where bodies come late, no round-trip time is wrong. Frames of many
 * connections in a random order go through the real programs. NETOBS_TEST_SEED repeats a run.
 */
#include "lib_seed.h"
#include "lib_test.h"

#include "engine/connections.h"
#include "bpf/store/hash.h"
#include "engine/map.h"
#include "prog_skeleton.h"
#include "prog_test.h"
#include "tcp_frames.h"

#include <bpf/libbpf.h>

enum {
	PEERS = 2000,
	ROUNDS = 16, /* without the handshake */
	FIRST_PORT = 20000,
	START_US = 50, /* after the one before */
	ROUND_US = 1000,
	RESEND_US = 5000,
	LOOK_FRAMES = 4, /* between two looks at what is free */
	FREE_MIN = 16,
	REQUEST = 10, /* bytes */
	ANSWER = 20,
};

/* What the server and the client take to acknowledge a segment that was sent once. */
enum { SERVER_US = 300, CLIENT_US = 20, AMBIGUOUS_US = 100 };

static const struct prog_options whole_options = {
	.clock = CLOCK_PACKET,
	.has_egress = 1,
	.conn_buckets = 1024,
};

static const struct prog_options grown_options = {
	.clock = CLOCK_PACKET,
	.has_egress = 1,
	.conn_buckets = 1024,
	.conn_parts = 64,
};

static struct prog whole, grown;

static int setup(void **state)
{
	(void)state;
	return prog_open(&whole, &whole_options) ||
	       prog_open(&grown, &grown_options);
}

static int teardown(void **state)
{
	(void)state;
	prog_close(&whole);
	prog_close(&grown);
	return 0;
}

/* ---- Connections ------------------------------------------------------------------------ */

enum step { SEND, SEND_AGAIN, ANSWER_COMES, ACKNOWLEDGE };

/* A client, whose requests the server answers. */
struct peer {
	uint64_t us;	/* when its round began */
	uint32_t round; /* 0: the handshake */
	enum step step;
	bool resends; /* in this round */
};

static struct tcp_frame frame_of(const struct peer *peer, uint32_t number)
{
	const uint32_t before = peer->round ? peer->round - 1 : 0;
	const uint32_t sent = 101 + REQUEST * before, got = 501 + ANSWER * before;
	const bool is_answer = peer->step == ANSWER_COMES;
	struct tcp_frame frame = { .port = (uint16_t)(FIRST_PORT + number),
				   .is_answer = is_answer,
				   .egress = !is_answer,
				   .flags = ACK,
				   .seq = is_answer ? got : sent,
				   .ack = is_answer ? sent + REQUEST : got,
				   .us = peer->us };

	if (peer->step == SEND_AGAIN)
		frame.us += RESEND_US;
	if (peer->step >= ANSWER_COMES)
		frame.us += peer->resends ? RESEND_US + AMBIGUOUS_US : SERVER_US;
	if (peer->step == ACKNOWLEDGE)
		frame.us += CLIENT_US;
	if (!peer->round) {
		frame.flags = peer->step == SEND	 ? SYN :
			      peer->step == ANSWER_COMES ? SYN | ACK :
							   ACK;
		frame.seq -= peer->step != ACKNOWLEDGE;
		frame.ack = is_answer ? 101 : got;
		return frame;
	}
	if (peer->step == ACKNOWLEDGE) {
		frame.seq += REQUEST;
		frame.ack += ANSWER;
		return frame;
	}
	frame.flags |= PSH;
	frame.len = is_answer ? ANSWER : REQUEST;
	return frame;
}

static void advance(struct peer *peer)
{
	if (peer->step == ACKNOWLEDGE) {
		peer->us += ROUND_US + (peer->resends ? RESEND_US : 0);
		peer->round++;
		peer->step = SEND;
		peer->resends = !test_below(16);
		return;
	}
	peer->step++;
	if (peer->step == SEND_AGAIN && !peer->resends)
		peer->step++;
}

struct traffic {
	struct peer peers[PEERS];
	uint32_t open[PEERS]; /* those with frames left */
	uint32_t n_open;
	uint32_t n_begun;
	uint32_t rounds; /* of each */
};

static void begin_traffic(struct traffic *traffic)
{
	*traffic = (struct traffic){ .rounds = ROUNDS };
	for (uint32_t i = 0; i < PEERS; i++)
		traffic->peers[i].us = (uint64_t)i * START_US;
}

/* More rounds of all. */
static void go_on(struct traffic *traffic, uint32_t rounds)
{
	traffic->rounds += rounds;
	for (uint32_t i = 0; i < PEERS; i++)
		traffic->open[i] = i;
	traffic->n_open = PEERS;
}

/* The next frame of any connection goes through both. False: there is none. */
static bool send_one(struct traffic *traffic)
{
	uint32_t at, number;
	struct peer *peer;

	if (traffic->n_begun < PEERS && (!traffic->n_open || !test_below(8)))
		traffic->open[traffic->n_open++] = traffic->n_begun++;
	if (!traffic->n_open)
		return false;
	at = test_below(traffic->n_open);
	number = traffic->open[at];
	peer = &traffic->peers[number];
	tcp_send(&whole, frame_of(peer, number));
	tcp_send(&grown, frame_of(peer, number));
	advance(peer);
	if (peer->round > traffic->rounds)
		traffic->open[at] = traffic->open[--traffic->n_open];
	return true;
}

/* ---- Tables ----------------------------------------------------------------------------- */

static uint64_t count_used(const struct prog *prog)
{
	const struct conn_counters counters = prog_conn_counters(prog);

	return counters.created - counters.evicted_half_open -
	       counters.evicted_closed - counters.evicted_idle;
}

static void grow_if_needed(uint32_t frame)
{
	if (frame % LOOK_FRAMES ||
	    count_used(&grown) + FREE_MIN < grown.n_parts << grown.part_bits)
		return;
	assert_int_equal(prog_grow(&grown), 0);
}

/* All samples of a direction have the same value. */
static uint32_t check_rtt(const struct conn_latency *rtt, uint32_t us)
{
	const uint32_t expected = us * 1000 >> CONN_LATENCY_SHIFT;

	if (!rtt->n)
		return 0;
	assert_int_equal(rtt->min, expected);
	assert_int_equal(rtt->max, expected);
	assert_int_equal(rtt->last, expected);
	assert_int_equal(rtt->sum, (uint64_t)expected * rtt->n);
	return rtt->n;
}

struct found {
	uint32_t connections;
	uint32_t samples;
};

/* What is in a table, in which no sample is wrong. */
static struct found check_table(const struct prog *prog)
{
	struct found found = { 0, 0 };

	for (uint32_t i = 0; i < prog->options.conn_buckets * CONN_WAYS; i++) {
		const struct connection conn = prog_connection_at(prog, i);

		if (!conn.body)
			continue;
		/* The client has the higher port. */
		found.connections++;
		found.samples += check_rtt(&conn.body->stats[1].rtt, SERVER_US);
		found.samples += check_rtt(&conn.body->stats[0].rtt, CLIENT_US);
	}
	return found;
}

static void assert_same_tables(void)
{
	const struct conn_counters a = prog_conn_counters(&whole),
				   b = prog_conn_counters(&grown);

	assert_memory_equal(&a, &b, sizeof(a));
	for (uint32_t i = 0; i < whole.options.conn_buckets * CONN_WAYS; i++) {
		const struct connection x = prog_connection_at(&whole, i),
					y = prog_connection_at(&grown, i);

		assert_int_equal(!x.body, !y.body);
		if (!x.body)
			continue;
		assert_memory_equal(x.head, y.head, sizeof(*x.head));
		assert_memory_equal(x.rates, y.rates, sizeof(*x.rates));
		assert_memory_equal(x.body, y.body, sizeof(*x.body));
	}
}

#define CASE(name) TEST_WITH(name, setup, teardown)

/* ---- Growth ----------------------------------------------------------------------------- */

CASE(a_table_that_grows_is_like_one_that_is_large)
{
	static struct traffic traffic;
	struct found found;

	begin_traffic(&traffic);
	for (uint32_t i = 0; send_one(&traffic); i++)
		grow_if_needed(i);
	assert_same_tables();
	found = check_table(&grown);
	assert_true(found.connections > PEERS * 9 / 10);
	assert_true(found.samples > 10 * PEERS);
	assert_true(grown.n_parts >= found.connections >> grown.part_bits);
	assert_true(grown.n_parts < grown.options.conn_parts / 2);
}

/* Connections that found no body get one with a later packet. */
CASE(what_comes_before_its_body_has_no_wrong_value)
{
	static struct traffic traffic;
	struct found found, all;
	uint32_t n = 0, n_late;

	begin_traffic(&traffic);
	while (traffic.n_begun < PEERS / 2)
		send_one(&traffic);
	assert_int_equal(check_table(&grown).connections, 1 << grown.part_bits);
	n_late = prog_conn_counters(&grown).refused;
	assert_true(n_late > PEERS / 4);
	/* Others have bodies while these wait. */
	while (send_one(&traffic))
		if (!(++n % 256) && grown.n_parts < grown.options.conn_parts)
			assert_int_equal(prog_grow(&grown), 0);
	check_table(&grown);
	while (grown.n_parts < grown.options.conn_parts)
		assert_int_equal(prog_grow(&grown), 0);
	go_on(&traffic, ROUNDS);
	while (send_one(&traffic))
		;
	found = check_table(&grown);
	all = check_table(&whole);
	assert_int_equal(found.connections, all.connections);
	assert_in_range(found.samples, all.samples / 4, all.samples - 1);
}

/* ---- Sweeps ----------------------------------------------------------------------------- */

enum {
	WAVES = 20,
	WAVE = 60, /* connections */
	WAVE_S = 30,
	KEPT = 20,
	KEPT_PORT = 10000,
	NEEDED_S = 10, /* after the last packet */
};

/* The table of @prog, as the library has it. */
static struct connections table_of(struct prog *prog)
{
	const size_t size = prog->n_cpus * sizeof(struct conn_counters);

	return (struct connections){
		.buckets = prog->conn_buckets,
		.heads = prog->conn_heads,
		.rates = prog->conn_rates,
		.parts = { .bodies = (const struct conn_body **)prog->conn_bodies,
			   .bits = prog->part_bits,
			   .n = prog->n_parts,
			   .n_max = prog->options.conn_parts,
			   .free_fd = bpf_map__fd(prog->skel->maps.conn_free) },
		.counters = map_mmap(bpf_map__fd(prog->skel->maps.conn_counters),
				     0, size),
		.n_buckets = prog->options.conn_buckets,
		.n_cpus = prog->n_cpus,
	};
}

static void send_both(struct tcp_frame frame)
{
	tcp_send(&whole, frame);
	tcp_send(&grown, frame);
}

/* @return its key */
static struct flow_key open_both(uint16_t port, uint64_t us)
{
	struct flow_key key;

	tcp_exchange(&whole, (struct tcp_frame){ .port = port, .us = us }, &key);
	tcp_exchange(&grown, (struct tcp_frame){ .port = port, .us = us }, &key);
	return key;
}

static void close_both(uint16_t port, uint64_t us)
{
	send_both(tcp_out(port, FIN | ACK, 111, 521, 0, us));
	send_both(tcp_in(port, FIN | ACK, 521, 112, 0, us + SERVER_US));
}

static void assert_kept(const struct flow_key keys[KEPT])
{
	for (uint32_t i = 0; i < KEPT; i++) {
		const struct connection x = prog_connection(&whole, &keys[i]),
					y = prog_connection(&grown, &keys[i]);

		assert_non_null(x.body);
		assert_non_null(y.body);
		assert_memory_equal(x.head, y.head, sizeof(*x.head));
		assert_memory_equal(x.rates->sides, y.rates->sides,
				    sizeof(x.rates->sides));
		assert_memory_equal(x.body, y.body, sizeof(*x.body));
	}
}

/* A segment of a connection that was swept is one of a connection that is older than its entry. */
static void assert_forgotten(const struct flow_key *key, uint16_t port,
			     uint64_t us)
{
	struct connection conn = prog_connection(&grown, key);

	if (conn.head)
		assert_int_equal(conn.head->check, 0);
	send_both(tcp_out(port, ACK, 112, 522, 0, us));
	conn = prog_connection(&grown, key);
	assert_non_null(conn.body);
	assert_int_equal(conn.body->stats[1].rtt.n, 0);
	assert_int_equal(conn.body->stats[1].handshake, 0);
	assert_true(prog_connection(&whole, key).body->stats[1].rtt.n > 0);
}

static void one_wave(uint32_t wave, struct flow_key *ret_first)
{
	const uint64_t us = wave * WAVE_S * 1000000ULL;

	for (uint32_t i = 0; i < WAVE; i++) {
		const uint16_t port = (uint16_t)(FIRST_PORT + wave * WAVE + i);
		const struct flow_key key = open_both(port, us + 1000ULL * i);

		if (!i)
			*ret_first = key;
		close_both(port, us + 200000 + 1000ULL * i);
	}
	for (uint32_t i = 0; i < KEPT; i++)
		send_both(tcp_out((uint16_t)(KEPT_PORT + i), ACK | PSH,
				  111 + REQUEST * wave, 521, REQUEST,
				  us + 500000));
}

static uint32_t notices_of(struct prog *prog)
{
	assert_true(ring_buffer__consume(prog->ring) >= 0);
	return prog->n_notices;
}

/* As many as may be open at a time, however many come. */
CASE(bodies_of_those_that_have_gone_are_used_again)
{
	struct connections table = table_of(&grown);
	struct flow_key kept[KEPT], first;
	struct conn_counters counters;

	assert_non_null(table.counters);
	for (uint32_t i = 0; i < KEPT; i++)
		kept[i] = open_both((uint16_t)(KEPT_PORT + i), 0);
	for (uint32_t wave = 0; wave < WAVES; wave++) {
		const uint64_t us = (wave + 1ULL) * WAVE_S * 1000000;

		one_wave(wave, &first);
		/* As the programs stamp: tcp_frames.c. One sweep takes, the next one offers. */
		for (int i = 0; i < 2; i++)
			connections_sweep(&table, (1000000 + us) * 1000,
					  NEEDED_S * NSEC_PER_SEC);
	}
	assert_kept(kept);
	counters = connections_count(&table);
	assert_int_equal(counters.created, KEPT + WAVES * WAVE);
	assert_int_equal(counters.evicted_closed, WAVES * WAVE);
	assert_int_equal(connections_used(&counters), KEPT);
	assert_int_equal(counters.refused, 0);
	assert_int_equal(grown.n_parts, 1);
	/* Of bodies that were used before, one of 256 gives notice. */
	assert_int_equal(notices_of(&grown) - notices_of(&whole),
			 (counters.created - (1 << grown.part_bits)) / 256);
	assert_forgotten(&first, FIRST_PORT + (WAVES - 1) * WAVE,
			 WAVES * WAVE_S * 1000000ULL);
	map_munmap(table.counters, grown.n_cpus * sizeof(*table.counters));
	free(table.sweep.gone);
}
