// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What ./dev bench rtt compares netobs with has the round-trip times that there were. */
#include "lib_seed.h"
#include "lib_test.h"

#include "bench/live/round_trips.h"

enum { FLOWS = 1000, STEPS = 20000, NEVER_SENT = 1 << 20 };

static struct packet_tuple tuple_of(uint32_t flow)
{
	return (struct packet_tuple){
		.src = 0x0a000001,
		.dst = 0x0a000002 + flow % 3,
		.src_port = (uint16_t)(40000 + flow),
		.dst_port = 5201,
		.proto = 6,
	};
}

static void add_data(struct round_trips *trips, const struct packet_tuple *tuple,
		     uint32_t seq, uint32_t len, uint64_t now)
{
	const struct packet_report report = {
		.sample = { .tuple = *tuple, .time_ns = now },
		.seq = seq,
		.end = seq + len,
	};

	round_trips_add(trips, &report);
}

static void add_ack(struct round_trips *trips, const struct packet_tuple *sender,
		    uint32_t ack, uint64_t now)
{
	const struct packet_report report = {
		.sample = { .tuple = { .src = sender->dst,
				       .dst = sender->src,
				       .src_port = sender->dst_port,
				       .dst_port = sender->src_port,
				       .proto = sender->proto },
			    .time_ns = now },
		.ack = ack,
		.has_ack = 1,
	};

	round_trips_add(trips, &report);
}

/* Also where numbers wrap; what acknowledges nothing, or for the second time, is no sample. */
static void each_segment_that_is_acknowledged_is_a_sample(void **state)
{
	uint64_t now = 1, sum = 0;
	struct round_trips trips;

	(void)state;
	srand48(test_seed());
	assert_int_equal(round_trips_init(&trips), 0);
	for (uint32_t i = 1; i <= STEPS; i++) {
		struct packet_tuple tuple = tuple_of((uint32_t)lrand48() % FLOWS);
		uint32_t seq = (uint32_t)mrand48();
		uint32_t len = 1 + (uint32_t)lrand48() % 1448;
		uint64_t delay = 1 + (uint64_t)lrand48();

		add_data(&trips, &tuple, seq, len, now);
		add_ack(&trips, &tuple, seq + len + NEVER_SENT, now + 1);
		now += delay;
		add_ack(&trips, &tuple, seq + len, now);
		add_ack(&trips, &tuple, seq + len, now + 1);
		sum += delay;
		assert_int_equal(trips.samples, i);
		assert_int_equal(trips.sum_ns, sum);
	}
	round_trips_free(&trips);
}

static void average_follows_its_flow(void **state)
{
	const struct packet_tuple tuple = tuple_of(0);
	struct round_trips trips;
	int64_t expected = 800;

	(void)state;
	assert_int_equal(round_trips_init(&trips), 0);
	for (uint32_t i = 0; i < 10; i++) {
		uint64_t delay = i ? 1600 : 800, now = 1 + i * 10000ULL;

		add_data(&trips, &tuple, i * 100, 100, now);
		add_ack(&trips, &tuple, i * 100 + 100, now + delay);
		expected += ((int64_t)delay - expected) / 8;
		assert_int_equal(round_trips_average_ns(&trips, &tuple),
				 expected);
	}
	round_trips_free(&trips);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_segment_that_is_acknowledged_is_a_sample),
		cmocka_unit_test(average_follows_its_flow),
	};

	return cmocka_run_group_tests_name("bench_round_trips", tests, NULL,
					   NULL);
}
