/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Records have the measurements of their connection, and each count is in one record. */
#include "flows/flow_extra.h"

#include "bpf/parse/headers.h"
#include "bpf/store/conn_places.h"
#include "lib_test.h"

#include <netobs/flow.h>

enum { BUCKETS = 4, PART_BITS = 5, ROUNDS = 200 };

_Static_assert(1 << PART_BITS == BUCKETS * CONN_WAYS, "one part");

struct fixture {
	struct conn_bucket buckets[BUCKETS];
	struct conn_head heads[BUCKETS * CONN_WAYS];
	struct conn_rates rates[BUCKETS * CONN_WAYS];
	struct conn_body bodies[BUCKETS * CONN_WAYS];
	const struct conn_body *part;
	struct conn_counters counters[2];
	struct connections table;
	struct health health;
	uint64_t born_ns;
};

static void begin(struct fixture *f)
{
	f->part = f->bodies;
	f->table = (struct connections){
		.buckets = f->buckets,
		.heads = f->heads,
		.rates = f->rates,
		.parts = { .bodies = &f->part, .bits = PART_BITS, .n = 1 },
		.counters = f->counters,
		.n_buckets = BUCKETS,
		.n_cpus = 2
	};
	for (size_t i = 0; i < HASH_FLOW_WORDS; i++)
		f->table.secret.connection[i] = (uint32_t)rand();
	assert_int_equal(health_init(&f->health, &f->table), 0);
}

static void end(struct fixture *f)
{
	health_done(&f->health);
}

TEST_FIXTURE(struct fixture, begin, end)

/* Of packets from port @src to port @dst. */
static struct flow_key key_of(uint16_t src, uint16_t dst, uint8_t flags)
{
	struct flow_key key = { .ifindex = 7,
				.src_port = src,
				.dst_port = dst,
				.proto = IP_PROTO_TCP,
				.flags = flags };

	key.src.bytes[10] = key.src.bytes[11] = 0xff;
	key.dst.bytes[10] = key.dst.bytes[11] = 0xff;
	key.src.bytes[15] = (uint8_t)src;
	key.dst.bytes[15] = (uint8_t)dst;
	return key;
}

/* Make an entry as the programs do, in the first free way of its bucket. */
static struct connection add(struct fixture *f, const struct flow_key *key)
{
	struct conn_key wanted = conn_key_of(key, connection_dir(key));
	uint64_t hash = conn_hash(&wanted, &f->table.secret).place;
	uint32_t bucket = scale_hash(hash >> 32, BUCKETS), way = 0;
	struct connection conn;

	while (f->buckets[bucket].tags[way])
		way++;
	assert_true(way < CONN_WAYS);
	conn.head = &f->heads[bucket * CONN_WAYS + way];
	conn.body = &f->bodies[bucket * CONN_WAYS + way];
	f->rates[bucket * CONN_WAYS + way].body = bucket * CONN_WAYS + way + 1;
	f->buckets[bucket].tags[way] = conn_tag(hash);
	*conn.head = (struct conn_head){ .version = 2 };
	*conn.body = (struct conn_body){ .born_ns = ++f->born_ns };
	conn_set_key(conn.body, &wanted);
	return conn;
}

/* The record of a flow with one entry, of @key. */
static struct netobs_flow record_of(struct fixture *f, const struct flow_key *key)
{
	const struct flow_entry entry = { .key = *key };
	const struct flow_extra *extra = &f->health.extra;
	struct netobs_flow record = { .sz = sizeof(record) };
	uint64_t data[FLOW_EXTRA_BYTES_MAX / sizeof(uint64_t)] = { 0 };

	assert_true(extra->size <= sizeof(data));
	extra->note(data, &entry, extra->ctx);
	extra->fill(data, &record, extra->ctx);
	return record;
}

#define CASE(name) TEST_OF(name, struct fixture *f, set_up, tear_down)

CASE(values_are_those_of_the_flows_direction)
{
	const struct flow_key there = key_of(40000, 443, 0),
			      back = key_of(443, 40000, 0);
	const int dir = connection_dir(&there);
	struct connection conn = add(f, &there);
	struct flow_key sampled = there;
	struct netobs_flow record;

	((uint64_t *)&sampled)[5] |= key_rate_bits(RATES - 1);
	conn.body->stats[dir].rtt = (struct conn_latency){
		.n = 3, .smoothed = 100, .min = 90, .previous_min = 80, .max = 200
	};
	conn.body->stats[dir].handshake = 110;
	conn.head->opener = (uint8_t)dir;
	conn.body->stats[!dir].turn = (struct conn_latency){
		.n = 2, .smoothed = 5000, .min = 4000, .max = 6000
	};
	conn.body->stats[dir].retransmitted = 4;
	conn.body->stats[!dir].zero_windows = 9;

	record = record_of(f, &sampled);
	assert_int_equal(record.has, NETOBS_HAS_RTT | NETOBS_HAS_HANDSHAKE_RTT |
					     NETOBS_HAS_RESPONSE_TIME |
					     NETOBS_HAS_APP_LATENCY |
					     NETOBS_HAS_TCP_HEALTH);
	assert_int_equal(record.rtt_ns, 6400);
	assert_int_equal(record.rtt_min_ns, 5120);
	assert_int_equal(record.rtt_max_ns, 12800);
	assert_int_equal(record.rtt_samples, 3);
	assert_int_equal(record.handshake_rtt_ns, 7040);
	assert_int_equal(record.path_rtt_ns, 5120);
	assert_int_equal(record.response_time_ns, 320000);
	assert_int_equal(record.response_time_min_ns, 256000);
	assert_int_equal(record.response_time_max_ns, 384000);
	assert_int_equal(record.app_latency_ns, 320000 - 5120);
	assert_int_equal(record.app_latency_min_ns, 256000 - 5120);
	assert_int_equal(record.app_latency_max_ns, 384000 - 5120);
	assert_int_equal(record.app_responses, 2);
	assert_int_equal(record.retransmits, 4);
	assert_int_equal(record.zero_windows, 0);

	record = record_of(f, &back);
	assert_int_equal(record.has, NETOBS_HAS_TCP_HEALTH);
	assert_int_equal(record.retransmits, 0);
	assert_int_equal(record.zero_windows, 9);
}

/* Both ends have answered: of the client, that is how long it rests. */
CASE(only_the_server_has_response_times)
{
	static const struct {
		uint16_t src, dst;
		uint8_t opener; /* of @src: 0 */
		uint32_t rtt, handshake;
		bool is_client, has_app;
		uint32_t app;
	} cases[] = {
		{ 40000, 443, 0, 50, 40, true, true, 60 },
		{ 40000, 443, 0, 50, 60, true, true, 50 },
		{ 40000, 443, 0, 200, 180, true, true,
		  0 }, /* the server has come closer */
		{ 40000, 443, 1, 50, 40, false, false, 0 },
		{ 443, 40000, 0, 50, 40, true, true, 60 },
		{ 443, 40000, 1, 50, 40, false, false, 0 },
		{ 40000, 443, CONN_NEITHER, 50, 0, true, true, 50 },
		{ 443, 40000, CONN_NEITHER, 50, 0, false, false, 0 },
		{ 443, 443, CONN_NEITHER, 50, 0, false, false, 0 },
		{ 443, 443, 0, 50, 40, true, true, 60 },
		/* All acknowledgments may have waited for the answers. */
		{ 40000, 443, CONN_NEITHER, 100, 0, true, false, 0 },
		{ 40000, 443, CONN_NEITHER, 0, 0, true, false, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct flow_key key = key_of(cases[i].src, cases[i].dst, 0);
		struct netobs_flow record;
		struct connection conn;
		int dir;

		key.ifindex = 100 + (uint32_t)i;
		key.src.bytes[15] = 1;
		key.dst.bytes[15] = 2;
		dir = connection_dir(&key);
		memset(f->buckets, 0, sizeof(f->buckets));
		conn = add(f, &key);
		conn.head->opener = cases[i].opener == CONN_NEITHER ?
					    CONN_NEITHER :
					    (uint8_t)(cases[i].opener ^ dir);
		conn.body->stats[dir].rtt.n = conn.body->stats[dir].rtt.min =
			cases[i].rtt;
		conn.body->stats[dir].handshake = cases[i].handshake;
		conn.body->stats[dir].turn = conn.body->stats[!dir].turn =
			(struct conn_latency){
				.n = 1, .smoothed = 100, .min = 100, .max = 100
			};
		record = record_of(f, &key);
		assert_int_equal(!!(record.has & NETOBS_HAS_RESPONSE_TIME),
				 cases[i].is_client);
		assert_int_equal(record.response_time_ns,
				 cases[i].is_client ? 6400 : 0);
		assert_int_equal(!!(record.has & NETOBS_HAS_APP_LATENCY),
				 cases[i].has_app);
		assert_int_equal(record.app_latency_ns, 64 * cases[i].app);
	}
}

/* Whatever happens between two records, the sum over records equals the measurement. */
CASE(each_count_is_in_one_record)
{
	const struct flow_key key = key_of(1000, 2000, 0);
	const int dir = connection_dir(&key);
	struct connection conn = add(f, &key);
	struct netobs_flow sum = { 0 };

	conn.head->opener = (uint8_t)dir;
	for (int i = 0; i < ROUNDS; i++) {
		struct conn_stats *stats = &conn.body->stats[dir];
		struct netobs_flow record;

		stats->rtt.n += (uint32_t)rand() % 3;
		conn.body->stats[!dir].turn.n += (uint32_t)rand() % 3;
		stats->retransmitted += (uint32_t)rand() % 3;
		stats->retransmitted_bytes += (uint32_t)rand();
		stats->out_of_order += (uint32_t)rand() % 3;
		stats->late_unknown += (uint32_t)rand() % 3;
		stats->duplicate_acks += (uint32_t)rand() % 3;
		stats->zero_windows += (uint32_t)rand() % 3;
		if (rand() % 4 == 0)
			continue;
		record = record_of(f, &key);
		sum.rtt_samples += record.rtt_samples;
		sum.app_responses += record.app_responses;
		sum.retransmits += record.retransmits;
		sum.retransmitted_bytes += record.retransmitted_bytes;
		sum.out_of_order += record.out_of_order;
		sum.late_unknown += record.late_unknown;
		sum.duplicate_acks += record.duplicate_acks;
		sum.zero_windows += record.zero_windows;
		assert_int_equal(sum.rtt_samples, stats->rtt.n);
		assert_int_equal(sum.app_responses,
				 conn.body->stats[!dir].turn.n);
		assert_int_equal(sum.retransmits, stats->retransmitted);
		assert_int_equal(sum.retransmitted_bytes,
				 stats->retransmitted_bytes);
		assert_int_equal(sum.out_of_order, stats->out_of_order);
		assert_int_equal(sum.late_unknown, stats->late_unknown);
		assert_int_equal(sum.duplicate_acks, stats->duplicate_acks);
		assert_int_equal(sum.zero_windows, stats->zero_windows);
	}
}

CASE(another_connection_of_a_place_begins_anew)
{
	const struct flow_key key = key_of(1000, 2000, 0);
	const int dir = connection_dir(&key);
	struct connection conn = add(f, &key);

	conn.body->stats[dir].retransmitted = 10;
	assert_int_equal(record_of(f, &key).retransmits, 10);
	conn.body->born_ns++;
	conn.body->stats[dir].retransmitted = 3;
	assert_int_equal(record_of(f, &key).retransmits, 3);
}

CASE(entries_that_are_being_made_are_not_read)
{
	const struct flow_key key = key_of(1000, 2000, 0);
	struct connection conn = add(f, &key);

	assert_true(record_of(f, &key).has);
	conn.head->version = 3;
	assert_false(record_of(f, &key).has);
	conn.head->version = 0;
	assert_false(record_of(f, &key).has);
	conn.head->version = 4;
	assert_true(record_of(f, &key).has);
}

CASE(connections_are_found_by_their_whole_key)
{
	struct conn_copy copy;
	int dir;

	for (uint16_t i = 0; i < 6; i++) {
		const struct flow_key key = key_of(1000 + i, 2000, 0);

		add(f, &key).body->stats[0].syn_retries = i;
	}
	for (uint16_t i = 0; i < 6; i++) {
		struct flow_key key = key_of(2000, 1000 + i, KEY_EGRESS);

		assert_true(connections_find(&f->table, &key, &copy, &dir) >= 0);
		assert_int_equal(copy.body.stats[0].syn_retries, i);
		assert_int_equal(dir, connection_dir(&key));
		key.ifindex++;
		assert_int_equal(connections_find(&f->table, &key, &copy, &dir),
				 -ENOENT);
	}
}

/* A packet that is forwarded is at two points: its way to the destination begins at the first. */
CASE(a_flow_is_measured_where_it_comes_in)
{
	struct flow_key in = key_of(1000, 2000, 0),
			out = key_of(1000, 2000, KEY_EGRESS | KEY_AGAIN);
	const int dir = connection_dir(&in);
	const struct flow_extra *extra = &f->health.extra;

	out.ifindex = 8;
	add(f, &in).body->stats[dir].retransmitted = 1;
	add(f, &out).body->stats[dir].retransmitted = 2;
	for (int order = 0; order < 2; order++) {
		const struct flow_entry entries[] = {
			{ .key = order ? out : in }, { .key = order ? in : out }
		};
		uint64_t data[2][16] = { 0 };
		struct netobs_flow record = { 0 };

		extra->note(data[0], &entries[0], extra->ctx);
		extra->note(data[0], &entries[1], extra->ctx);
		f->health.places[0].born_ns = 0;
		memset(f->health.places, 0,
		       BUCKETS * CONN_WAYS * sizeof(*f->health.places));
		extra->join(data[1], data[0], extra->ctx);
		extra->fill(data[1], &record, extra->ctx);
		assert_int_equal(record.retransmits, 1);
	}
}

CASE(counters_are_those_of_all_cpus)
{
	struct conn_counters sum;

	f->counters[0] = (struct conn_counters){ .created = 5, .refused = 1 };
	f->counters[1] = (struct conn_counters){ .created = 7, .contended = 2 };
	sum = connections_count(&f->table);
	assert_int_equal(sum.created, 12);
	assert_int_equal(sum.refused, 1);
	assert_int_equal(sum.contended, 2);
}
