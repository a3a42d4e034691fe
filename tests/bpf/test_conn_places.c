// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Which connections have a place in the table, when there are more than it has, or a flood:
 * frames go through the real programs, at times that the test chooses. NETOBS_TEST_SEED
 * repeats a run.
 */
#include "lib_seed.h"
#include "lib_test.h"

#include "bpf/store/conn_places.h"
#include "host.h"
#include "prog_test.h"
#include "tcp_frames.h"

static const struct prog_options options = {
	.clock = CLOCK_PACKET,
	.has_egress = 1,
	.conn_buckets = 64,
};

/* As a server answers them that has room for none of them. */
static void send_syns(struct prog *prog, uint32_t n, uint64_t us)
{
	for (uint32_t i = 0; i < n; i++) {
		tcp_send(prog, tcp_out(1 + i, SYN, i, 0, 0, us));
		tcp_send(prog, tcp_in(1 + i, SYN | ACK, i, i + 1, 0, us));
	}
}

static uint32_t count_known(struct prog *prog, const struct flow_key *keys,
			    uint32_t n)
{
	uint32_t known = 0;

	for (uint32_t i = 0; i < n; i++)
		known += !!prog_connection(prog, &keys[i]).head;
	return known;
}

enum { REAL = 400, FLOOD = 20000, FIRST_REAL = 40000 };

/* @return how many of them have a place */
static uint32_t open_real(struct prog *prog, struct flow_key keys[REAL])
{
	for (uint32_t i = 0; i < REAL; i++)
		tcp_exchange(prog, (struct tcp_frame){ .port = FIRST_REAL + i },
			     &keys[i]);
	return count_known(prog, keys, REAL);
}

/*
 * More of them than there are places, and than those of the bucket; many of the open ones are
 * in a bucket that has no other place, and have been idle for an hour.
 */
TEST(a_flood_of_syns_pushes_out_no_open_connection)
{
	struct prog *prog = prog_test_open(&options);
	static struct flow_key keys[REAL];
	struct conn_counters counters;
	uint32_t kept;

	kept = open_real(prog, keys);
	assert_true(kept > REAL * 3 / 4);
	send_syns(prog, FLOOD, 3600000000);
	assert_int_equal(count_known(prog, keys, REAL), kept);
	counters = prog_conn_counters(prog);
	assert_true(counters.evicted_half_open > FLOOD / 4);
	assert_int_equal(counters.evicted_idle, 0);
}

/* 16 bits of them wrap, but 0 is that of a place that was never used. */
TEST(versions_begin_again)
{
	struct prog *prog = prog_test_open(&options);
	struct tcp_frame frame = tcp_out(1, SYN, 0, 0, 0, 0);
	const uint32_t places = options.conn_buckets * CONN_WAYS;
	struct flow_key key;

	for (uint32_t i = 0; i < places; i++)
		prog->conn_heads[i].version = UINT16_MAX - 1;
	key = tcp_send(prog, frame);
	assert_int_equal(prog_test_connection(prog, &key).head->version, 2);
	/* With another handshake. */
	prog_test_connection(prog, &key).head->version = UINT16_MAX - 1;
	frame.flags = RST;
	tcp_send(prog, frame);
	frame.flags = SYN;
	frame.seq = 1000000;
	frame.us = 1000000;
	tcp_send(prog, frame);
	assert_int_equal(prog_test_connection(prog, &key).head->version, 2);
}

/* Anyone can send echo requests, from any address, and the host answers each. */
TEST(a_flood_of_echoes_pushes_out_no_connection)
{
	struct prog *prog = prog_test_open(&options);
	static struct flow_key keys[REAL + 1];
	uint32_t kept;

	kept = open_real(prog, keys);
	for (uint32_t i = 0; i < FLOOD; i++) {
		struct tcp_frame echo = { .port = 1 + i / 2, .us = 3600000000 };

		echo_send(prog, echo, i);
		echo.is_answer = true;
		echo.egress = true;
		echo_send(prog, echo, i);
	}
	assert_int_equal(count_known(prog, keys, REAL), kept);
	assert_true(prog_conn_counters(prog).created > FLOOD / 8);
	assert_int_equal(prog_conn_counters(prog).evicted_idle, 0);
	for (uint32_t i = 0; i < REAL / 4; i++) {
		tcp_exchange(prog,
			     (struct tcp_frame){ .port = FIRST_REAL + REAL + i,
						 .us = 3600000000 },
			     &keys[REAL]);
		assert_non_null(prog_connection(prog, &keys[REAL]).head);
	}
}

/* Which connections lose their places, which keep them, and which get in. */
TEST(a_flood_of_syns_keeps_no_connection_out)
{
	enum { FEW = 100 };
	struct prog *prog = prog_test_open(&options);
	static struct flow_key ended[FEW], keys[FEW];

	for (uint32_t i = 0; i < FEW; i++) {
		tcp_exchange(prog, (struct tcp_frame){ .port = FIRST_REAL + i },
			     &ended[i]);
		tcp_send(prog, tcp_out(FIRST_REAL + i, RST, 111, 0, 0, 60000));
	}
	send_syns(prog, FLOOD, 200000);
	assert_int_equal(count_known(prog, ended, FEW), FEW);
	/* Each SYN finds its entry taken before the answer comes, and that one, too. */
	for (uint32_t i = 0; i < FEW; i++) {
		const struct tcp_frame client = tcp_out(
			FIRST_REAL + 1000 + i, ACK | PSH, 101, 501, 10, 300000);

		keys[i] = tcp_send(prog, client);
	}
	send_syns(prog, FLOOD, 300000);
	for (uint32_t i = 0; i < FEW; i++)
		tcp_send(prog, tcp_in(FIRST_REAL + 1000 + i, ACK, 501, 111, 0,
				      350000));
	send_syns(prog, FLOOD, 350000);
	assert_int_equal(count_known(prog, keys, FEW), FEW);
	assert_int_equal(prog_conn_counters(prog).evicted_idle, 0);
	for (uint32_t i = 0; i < FEW; i++)
		assert_true(prog_test_connection(prog, &keys[i]).head->state[0] &
			    prog_test_connection(prog, &keys[i]).head->state[1] &
			    CONN_ACKED);
}

TEST(nothing_is_made_for_what_only_ends)
{
	static const struct prog_options one_bucket = {
		.clock = CLOCK_PACKET,
		.has_egress = 1,
		.conn_buckets = 1,
	};
	struct prog *prog = prog_test_open(&one_bucket);
	struct flow_key keys[CONN_WAYS];

	for (uint32_t i = 0; i < CONN_WAYS; i++)
		tcp_exchange(prog, (struct tcp_frame){ .port = 1000 + i },
			     &keys[i]);
	tcp_send(prog, tcp_in(3000, FIN | ACK, 1, 1, 0, 300000000));
	assert_int_equal(count_known(prog, keys, CONN_WAYS), CONN_WAYS);
	tcp_send(prog, tcp_in(3000, ACK, 1, 1, 0, 300000000));
	assert_int_equal(count_known(prog, keys, CONN_WAYS), CONN_WAYS - 1);
	assert_int_equal(prog_conn_counters(prog).evicted_idle, 1);
}

/* ---- The oldest ones first ------------------------------------------------------------- */

enum {
	KNOWN = 3000,
	STEPS = 9000,
	IDLE_S = 60, /* config_conn_idle */
	FIRST_PORT = 20000,
	EXCHANGE_US = 60000, /* more than tcp_exchange() takes */
};

/* So that a connection has a packet about once in IDLE_S. */
static const struct prog_options few_places = {
	.clock = CLOCK_PACKET,
	.has_egress = 1,
	.conn_buckets = 4,
};

/* A connection that was there, and its expected fate. */
struct known {
	struct flow_key key;
	uint32_t bucket;
	uint64_t seen; /* in units of 2^CONN_AGE_SHIFT ns */
	bool has_place;
};

struct model {
	struct prog *prog;
	struct known known[KNOWN];
	uint32_t n;
	uint64_t us;
	uint64_t evicted, refused;
};

/* Where it may be. */
static uint32_t bucket_of(const struct model *model, const struct flow_key *key)
{
	const struct conn_key of = conn_key_of(key, connection_dir(key));

	return scale_hash(conn_hash(&of, &host_secret).place >> 32,
			  model->prog->options.conn_buckets);
}

/* As tcp_send() stamps. */
static uint64_t unit_of(uint64_t us)
{
	return (1000000 + us) * 1000 >> CONN_AGE_SHIFT;
}

/* Of a bucket: how many there are, and since when the oldest one is idle. */
static uint32_t look_at(const struct model *model, uint32_t bucket,
			uint64_t *ret_oldest)
{
	uint32_t n = 0;

	*ret_oldest = UINT64_MAX;
	for (uint32_t i = 0; i < model->n; i++) {
		const struct known *one = &model->known[i];

		if (!one->has_place || one->bucket != bucket)
			continue;
		n++;
		if (one->seen < *ret_oldest)
			*ret_oldest = one->seen;
	}
	return n;
}

/* One has gone: any of those with the same rank. */
static void expect_gone(struct model *model, uint32_t bucket, uint64_t oldest)
{
	uint32_t gone = 0;

	for (uint32_t i = 0; i < model->n; i++) {
		struct known *one = &model->known[i];

		if (!one->has_place || one->bucket != bucket ||
		    prog_connection(model->prog, &one->key).head)
			continue;
		assert_int_equal(one->seen, oldest);
		one->has_place = false;
		gone++;
	}
	assert_int_equal(gone, 1);
	model->evicted++;
}

static void open_one(struct model *model)
{
	struct known *one = &model->known[model->n];
	uint64_t oldest;
	uint32_t n;

	tcp_exchange(model->prog,
		     (struct tcp_frame){ .port = FIRST_PORT + model->n,
					 .us = model->us },
		     &one->key);
	one->bucket = bucket_of(model, &one->key);
	one->seen = unit_of(model->us);
	n = look_at(model, one->bucket, &oldest);
	one->has_place = n < CONN_WAYS || oldest + IDLE_S <= one->seen;
	assert_int_equal(!!prog_connection(model->prog, &one->key).head,
			 one->has_place);
	if (n == CONN_WAYS && one->has_place)
		expect_gone(model, one->bucket, oldest);
	model->refused += !one->has_place;
	model->n++;
}

/* A connection with a place. */
static void touch_one(struct model *model)
{
	uint32_t i = test_below(model->n);
	struct known *one;

	while (!model->known[i].has_place)
		i = (i + 1) % model->n;
	one = &model->known[i];
	tcp_send(model->prog,
		 tcp_out(FIRST_PORT + i, ACK, 111, 521, 0, model->us));
	one->seen = unit_of(model->us);
}

static uint32_t count_places(const struct model *model)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < model->n; i++)
		n += model->known[i].has_place;
	return n;
}

/* Those that were looked at when another one came are right; here are all. */
static void check_all(const struct model *model)
{
	for (uint32_t i = 0; i < model->n; i++)
		assert_int_equal(
			!!prog_connection(model->prog, &model->known[i].key).head,
			model->known[i].has_place);
}

TEST(the_oldest_idle_ones_give_their_place)
{
	static struct model model;
	struct conn_counters counters;

	model.prog = prog_test_open(&few_places);
	for (uint32_t i = 0; i < STEPS; i++) {
		/* Another unit each time, all of whose packets are in one. */
		model.us += 1200000 + (uint64_t)test_below(100000);
		while (unit_of(model.us) != unit_of(model.us + EXCHANGE_US))
			model.us += EXCHANGE_US;
		if (model.n < KNOWN && (!model.n || !test_below(3)))
			open_one(&model);
		else
			touch_one(&model);
	}
	check_all(&model);
	counters = prog_conn_counters(model.prog);
	assert_true(model.evicted > 100 && model.refused > 100);
	assert_true(counters.refused >= model.refused);
	assert_int_equal(counters.evicted_idle, model.evicted);
	assert_int_equal(counters.evicted_half_open + counters.evicted_closed, 0);
	assert_int_equal(counters.created - counters.evicted_idle,
			 count_places(&model));
}

/* ---- Hints ----------------------------------------------------------------------------- */

enum { SENDERS = 12, SEGMENTS = 20000, SEGMENT = 10 };

/* One bucket, and an L1 that has all flows, and in it where their connections were last. */
static const struct prog_options hinting = {
	.clock = CLOCK_PACKET,
	.has_egress = 1,
	.conn_buckets = 1,
	.l1_buckets = 8,
};

/* NULL: it is not in L1. @connection: the key, without what only flows have. */
static const struct flow_entry *find_in_l1(const struct prog *prog,
					   const struct flow_key *connection,
					   bool egress)
{
	struct flow_key key = *connection;

	key.flags |= egress ? KEY_EGRESS : 0;
	for (uint32_t i = 0; i < prog->n_cpus * hinting.l1_buckets; i++) {
		const struct flow_bucket *bucket = &prog->l1[i];

		for (uint32_t way = 0; way < BUCKET_SLOTS; way++) {
			if (bucket->tags[way] &&
			    !memcmp(&bucket->entries[way].key, &key, sizeof(key)))
				return &bucket->entries[way];
		}
	}
	return NULL;
}

/* Data of a client, or what acknowledges it; after a pause in which all become idle, at times. */
static struct tcp_frame any_segment(uint32_t *sent, uint64_t *us)
{
	uint32_t sender = test_below(SENDERS);
	struct tcp_frame frame = { .port = 1000 + sender,
				   .flags = ACK,
				   .is_answer = test_below(2) };

	*us += test_below(200) ? 100 : (2ULL * IDLE_S) * 1000000;
	frame.us = *us;
	frame.egress = !frame.is_answer;
	frame.seq = frame.is_answer ? 1 : sent[sender];
	frame.ack = frame.is_answer ? sent[sender] : 1;
	frame.len = frame.is_answer ? 0 : SEGMENT;
	sent[sender] += frame.len;
	return frame;
}

/* @return whether its flow knows the place of @conn */
static bool check_hint(const struct prog *prog, const struct flow_key *key,
		       bool egress, const struct connection *conn)
{
	const struct flow_entry *entry = find_in_l1(prog, key, egress);

	if (!entry || !entry->hint)
		return false;
	assert_int_equal(entry->hint,
			 conn_hint(conn->head->check, conn->head->version,
				   (uint32_t)(conn->head - prog->conn_heads),
				   (uint32_t)connection_dir(key)));
	return true;
}

TEST(a_segment_changes_no_connection_but_its_own)
{
	struct prog *prog = prog_test_open(&hinting);
	struct conn_head before[CONN_WAYS];
	uint32_t sent[SENDERS] = { 0 }, hinted = 0;
	uint64_t us = 0;

	for (uint32_t i = 0; i < SEGMENTS; i++) {
		const struct tcp_frame frame = any_segment(sent, &us);
		struct connection conn;
		struct flow_key key;

		memcpy(before, prog->conn_heads, sizeof(before));
		key = tcp_send(prog, frame);
		conn = prog_connection(prog, &key);
		for (uint32_t way = 0; way < CONN_WAYS; way++) {
			if (conn.head != &prog->conn_heads[way])
				assert_memory_equal(&prog->conn_heads[way],
						    &before[way],
						    sizeof(*before));
		}
		if (!conn.head)
			continue;
		assert_int_equal(conn.head->sides[connection_dir(&key)].next,
				 frame.seq + frame.len);
		hinted += check_hint(prog, &key, frame.egress, &conn);
	}
	assert_true(hinted > SEGMENTS / 2);
	assert_true(prog_conn_counters(prog).evicted_idle > 100);
}

/* With the clock standing still, in a table that is too small for them. */
TEST(connections_in_one_place_have_different_times)
{
	enum { SYNS = 4000 };
	static uint64_t born[64 * CONN_WAYS];
	struct prog *prog = prog_test_open(&options);
	uint32_t again = 0;

	for (uint32_t i = 0; i < SYNS; i++) {
		const struct flow_key key =
			tcp_send(prog, tcp_out(1 + i, SYN, 0, 0, 0, 1000000));
		struct conn_body *body = prog_test_connection(prog, &key).body;
		uint64_t *before = &born[body - prog->conn_bodies[0]];

		again += *before > 0;
		assert_true(body->born_ns / CONN_BORN_STEP_NS >
			    *before / CONN_BORN_STEP_NS);
		*before = body->born_ns;
	}
	assert_true(again > SYNS / 2);
}
