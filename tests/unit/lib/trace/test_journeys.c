// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Journeys of events that are written down. test_journeys_model.c has random ones. */
#include "kept_journeys.h"

enum { MS = 1000 * US, VETH = 10, PEER = 11, FAR = 12 };
enum { HERE = 1, THERE = 2 };

/* ---- Events -------------------------------------------------------------------------------- */

static struct netobs_trace_event make_event(uint8_t point, int64_t us,
					    int64_t offset, uint32_t length)
{
	const bool is_receiver = point >= NETOBS_TRACE_SEGMENT &&
				 point <= NETOBS_TRACE_READ;

	return (struct netobs_trace_event){
		.record = { .sz = sizeof(struct netobs_trace_event),
			    .has = NETOBS_TRACE_HAS_OFFSET,
			    .time_ns = START_NS + us * US },
		.connection = 1,
		.offset = offset,
		.length = length,
		.seq = 1000 + (uint32_t)offset,
		.src = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
		.dst = { [10] = 0xff, 0xff, 10, 0, 0, 2 },
		.src_port = 40000,
		.dst_port = 80,
		.point = point,
		.netns_inode = is_receiver ? THERE : HERE,
		.pid = is_receiver ? 200 : 100,
	};
}

static void add(struct world *world, uint8_t point, int64_t us, int64_t offset,
		uint32_t length)
{
	const struct netobs_trace_event event =
		make_event(point, us, offset, length);

	assert_int_equal(journeys_add(world->journeys, &event), 0);
}

static void add_hop(struct world *world, uint8_t point, int64_t us,
		    int64_t offset, uint32_t length, uint32_t ifindex,
		    uint64_t buffer)
{
	struct netobs_trace_event event = make_event(point, us, offset, length);

	event.ifindex = ifindex;
	event.netns_inode = ifindex == VETH ? HERE : THERE;
	event.buffer = buffer;
	assert_int_equal(journeys_add(world->journeys, &event), 0);
}

/* From the first interface to the receiver's host, 4 us. */
static void add_way(struct world *world, int64_t us, int64_t offset,
		    uint32_t length, uint64_t buffer)
{
	add_hop(world, NETOBS_TRACE_QUEUE, us, offset, length, VETH, buffer);
	add_hop(world, NETOBS_TRACE_TRANSMIT, us + 1, offset, length, VETH,
		buffer);
	add_hop(world, NETOBS_TRACE_ARRIVE, us + 2, offset, length, PEER, buffer);
	add_hop(world, NETOBS_TRACE_RECEIVE, us + 4, offset, length, PEER,
		buffer);
}

static void add_taking(struct world *world, int64_t us, int64_t offset,
		       uint32_t length)
{
	add(world, NETOBS_TRACE_SEGMENT, us, offset, length);
	add(world, NETOBS_TRACE_READY, us + 1, offset, length);
	add(world, NETOBS_TRACE_READ, us + 11, offset, length);
}

static void end(struct world *world)
{
	journeys_end(world->journeys, 0);
}

/* ---- What is expected of all ----------------------------------------------------------------- */

static void check_sums(const struct world *world)
{
	for (uint32_t i = 0; i < world->n; i++) {
		const struct netobs_journey *journey = &world->got[i];
		int64_t sum = (int64_t)journey->unknown_ns;

		for (int part = 0; part < NETOBS_JOURNEY_PARTS; part++) {
			sum += (int64_t)journey->part_ns[part];
			if (journey->unknown_parts & 1U << part)
				assert_int_equal(journey->part_ns[part], 0);
		}
		assert_int_equal(sum, journey->end_ns - journey->record.time_ns);
		for (int s = 1; s < journey->n_steps; s++)
			assert_true(journey->steps[s].time_ns >=
				    journey->steps[s - 1].time_ns);
	}
}

static void check_tiles(const struct world *world, int64_t from, int64_t to)
{
	for (uint32_t i = 0; i < world->n; i++) {
		assert_int_equal(world->got[i].offset, from);
		from += world->got[i].length;
	}
	assert_int_equal(from, to);
	check_sums(world);
}

static void check_parts(const struct netobs_journey *journey,
			const int64_t us[NETOBS_JOURNEY_PARTS])
{
	for (int part = 0; part < NETOBS_JOURNEY_PARTS; part++)
		assert_int_equal(part_us(journey, part), us[part]);
}

/* ---- Cases ----------------------------------------------------------------------------------- */

CASE(a_request_has_all_parts)
{
	const struct netobs_journey *journey;

	add(world, NETOBS_TRACE_SEND, 0, 0, 200);
	add_way(world, 19, 0, 200, 7);
	add(world, NETOBS_TRACE_SENT, 22, 0, 200);
	add_taking(world, 26, 0, 200);
	add(world, NETOBS_TRACE_ACKED, 39, 0, 200);
	journeys_advance(world->journeys, START_NS + 5 * MS);
	assert_int_equal(world->n, 0);
	journeys_advance(world->journeys, START_NS + 5 * MS + 37 * US);
	assert_int_equal(world->n, 1);
	check_tiles(world, 0, 200);
	journey = world->got;
	check_parts(journey, (int64_t[]){ [NETOBS_JOURNEY_TCP] = 19,
					  [NETOBS_JOURNEY_QDISC] = 1,
					  [NETOBS_JOURNEY_DEVICE] = 1,
					  [NETOBS_JOURNEY_STACK] = 5,
					  [NETOBS_JOURNEY_GAP] = 1,
					  [NETOBS_JOURNEY_READER] = 10 });
	assert_int_equal(journey->unknown_parts, 0);
	assert_int_equal(journey->unknown_ns, 0);
	assert_int_equal(journey->n_attempts, 1);
	assert_int_equal(journey->n_steps, 8);
	assert_int_equal(journey->seq, 1000);
	assert_int_equal(journey->record.has, NETOBS_JOURNEY_HAS_SEND |
						      NETOBS_JOURNEY_HAS_READ |
						      NETOBS_JOURNEY_HAS_ACKED |
						      NETOBS_JOURNEY_HAS_OFFSET);
	assert_int_equal(journey->acked_ns, START_NS + 39 * US);
	assert_int_equal(journey->src_port, 40000);
	assert_int_equal(journey->steps[7].pid, 200);
}

CASE(a_drop_begins_a_recovery)
{
	const struct netobs_journey *journey;

	add(world, NETOBS_TRACE_SEND, 0, 0, 100);
	add_hop(world, NETOBS_TRACE_QUEUE, 10, 0, 100, VETH, 7);
	add_hop(world, NETOBS_TRACE_DROP, 11, 0, 100, VETH, 7);
	add(world, NETOBS_TRACE_RETRANSMIT, 209, 0, 100);
	add_way(world, 210, 0, 100, 7);
	add_taking(world, 220, 0, 100);
	/* It was not lost: a second copy comes, and is dropped. */
	add(world, NETOBS_TRACE_RETRANSMIT, 221, 0, 100);
	add_way(world, 222, 0, 100, 9);
	add_hop(world, NETOBS_TRACE_SEGMENT, 227, 0, 100, 0, 9);
	add_hop(world, NETOBS_TRACE_DROP, 228, 0, 100, 0, 9);
	end(world);
	assert_int_equal(world->n, 1);
	check_tiles(world, 0, 100);
	journey = world->got;
	assert_int_equal(part_us(journey, NETOBS_JOURNEY_TCP), 10);
	assert_int_equal(part_us(journey, NETOBS_JOURNEY_RECOVERY), 200);
	assert_int_equal(journey->n_attempts, 3);
	assert_int_equal(journey->n_drops, 1);
	assert_int_equal(journey->unknown_parts, 0);
	assert_int_equal(journey->steps[1].attempt, 1);
	assert_int_equal(journey->steps[2].point, NETOBS_TRACE_DROP);
	assert_int_equal(journey->steps[2].attempt, 1);
	assert_int_equal(journey->steps[3].point, NETOBS_TRACE_RETRANSMIT);
	assert_int_equal(journey->steps[3].attempt, 0);
}

/* TCP has no memory for the first segment. */
CASE(a_segment_that_tcp_drops_is_not_taken)
{
	add(world, NETOBS_TRACE_SEND, 0, 0, 100);
	add_way(world, 10, 0, 100, 7);
	add_hop(world, NETOBS_TRACE_SEGMENT, 15, 0, 100, 0, 7);
	add_hop(world, NETOBS_TRACE_DROP, 16, 0, 100, 0, 7);
	add_way(world, 210, 0, 100, 8);
	add_taking(world, 215, 0, 100);
	/* All of it happened within the call that sent it. */
	add(world, NETOBS_TRACE_RETRANSMIT, 218, 0, 100);
	end(world);
	check_tiles(world, 0, 100);
	assert_int_equal(world->got->unknown_parts, 0);
	assert_int_equal(part_us(world->got, NETOBS_JOURNEY_READER), 10);
	assert_int_equal(world->got->steps[world->got->n_steps - 2].point,
			 NETOBS_TRACE_RETRANSMIT);
	assert_int_equal(part_us(world->got, NETOBS_JOURNEY_RECOVERY), 200);
	assert_int_equal(part_us(world->got, NETOBS_JOURNEY_STACK), 3);
	assert_int_equal(world->got->n_drops, 1);
}

CASE(netfilter_drops_what_came_to_no_interface)
{
	add(world, NETOBS_TRACE_SEND, 0, 0, 100);
	add(world, NETOBS_TRACE_DROP, 5, 0, 100);
	add(world, NETOBS_TRACE_RETRANSMIT, 205, 0, 100);
	add_way(world, 206, 0, 100, 7);
	add_taking(world, 212, 0, 100);
	end(world);
	check_tiles(world, 0, 100);
	assert_int_equal(part_us(world->got, NETOBS_JOURNEY_TCP), 5);
	assert_int_equal(part_us(world->got, NETOBS_JOURNEY_RECOVERY), 201);
	assert_int_equal(world->got->n_attempts, 1);
	assert_int_equal(world->got->n_drops, 1);
}

CASE(points_that_are_missing_are_unknown_parts)
{
	add_way(world, 0, 0, 100, 7);
	add(world, NETOBS_TRACE_READ, 20, 0, 100);
	add_hop(world, NETOBS_TRACE_QUEUE, 30, 100, 100, VETH, 8);
	add_taking(world, 40, 100, 100);
	add(world, NETOBS_TRACE_SENT, 45, 200, 100);
	add_way(world, 50, 200, 100, 7);
	add_taking(world, 60, 200, 100);
	/* No event of 100 bytes. */
	add(world, NETOBS_TRACE_SEND, 70, 400, 100);
	add_way(world, 71, 400, 100, 7);
	add_taking(world, 80, 400, 100);
	end(world);
	assert_int_equal(world->n, 5);
	check_tiles(world, 0, 500);
	assert_int_equal(world->got[0].unknown_parts,
			 BIT(WRITE) | BIT(TCP) | BIT(STACK) | BIT(GAP) |
				 BIT(READER));
	assert_int_equal(world->got[0].unknown_ns, 18 * US);
	assert_int_equal(world->got[1].unknown_parts,
			 BIT(WRITE) | BIT(TCP) | BIT(QDISC) | BIT(DEVICE) |
				 BIT(STACK));
	assert_int_equal(world->got[1].unknown_ns, 10 * US);
	assert_int_equal(world->got[2].unknown_parts, BIT(WRITE));
	assert_int_equal(part_us(&world->got[2], NETOBS_JOURNEY_TCP), 5);
	assert_int_equal(world->got[3].n_steps, 0);
	assert_int_equal(world->got[4].unknown_parts, 0);
}

CASE(what_is_not_read_is_delivered_at_the_end)
{
	add(world, NETOBS_TRACE_SEND, 0, 0, 200);
	add(world, NETOBS_TRACE_SENT, 5, 0, 200);
	add_way(world, 10, 0, 100, 7);
	add(world, NETOBS_TRACE_SEGMENT, 20, 0, 100);
	add(world, NETOBS_TRACE_READY, 21, 0, 100);
	/* Nobody knows whether this call has written anything. */
	add(world, NETOBS_TRACE_SEND, 30, 200, 1000);
	journeys_end(world->journeys, 2);
	assert_int_equal(world->n, 0);
	journeys_end(world->journeys, 1);
	assert_int_equal(world->n, 2);
	check_tiles(world, 0, 200);
	assert_int_equal(world->got[0].unknown_parts, BIT(READER));
	assert_int_equal(world->got[1].unknown_parts,
			 BIT(TCP) | BIT(QDISC) | BIT(DEVICE) | BIT(STACK) |
				 BIT(GAP) | BIT(READER));
}

/* Neither end is here: nothing says when bytes have arrived. */
CASE(what_is_only_forwarded_is_delivered_after_some_time)
{
	for (int64_t i = 0; i < 40; i++) {
		const int64_t us = i * 100000, offset = i * 100;

		add_hop(world, NETOBS_TRACE_RECEIVE, us, offset, 100, PEER, 7);
		add_hop(world, NETOBS_TRACE_QUEUE, us + 5, offset, 100, FAR, 7);
		add_hop(world, NETOBS_TRACE_TRANSMIT, us + 6, offset, 100, FAR,
			7);
	}
	assert_in_range(world->n, 20, 30);
	end(world);
	assert_int_equal(world->n, 40);
	check_tiles(world, 0, 4000);
	for (int i = 0; i < 40; i++) {
		assert_int_equal(world->got[i].unknown_parts, 0);
		assert_int_equal(world->got[i].n_attempts, 1);
		assert_int_equal(part_us(&world->got[i], NETOBS_JOURNEY_FORWARD),
				 5);
	}
}

CASE(many_attempts_are_cut_in_the_middle)
{
	add(world, NETOBS_TRACE_SEND, 0, 0, 100);
	for (int i = 0; i < 300; i++) {
		add_hop(world, NETOBS_TRACE_QUEUE, 10 * i, 0, 100, VETH, 7);
		add_hop(world, NETOBS_TRACE_DROP, 10 * i + 1, 0, 100, VETH, 7);
	}
	add_way(world, 4000, 0, 100, 7);
	add_taking(world, 4005, 0, 100);
	end(world);
	check_tiles(world, 0, 100);
	assert_true(world->got->n_steps >= NETOBS_JOURNEY_STEPS_MAX - 2);
	assert_true(world->got->record.has & NETOBS_JOURNEY_HAS_CUT);
	assert_int_equal(world->got->n_attempts, 301);
	assert_int_equal(world->got->steps[0].point, NETOBS_TRACE_SEND);
	assert_int_equal(world->got->steps[world->got->n_steps - 1].point,
			 NETOBS_TRACE_READ);
	assert_int_equal(world->got->unknown_parts, 0);
}

CASE(events_of_the_same_bytes_are_bounded)
{
	for (int i = 0; i < 5000; i++)
		add_hop(world, NETOBS_TRACE_QUEUE, i, 0, 100, VETH, 7);
	add(world, NETOBS_TRACE_READ, 5001, 0, 100);
	end(world);
	check_tiles(world, 0, 100);
	assert_true(world->got->record.has & NETOBS_JOURNEY_HAS_CUT);
}

/* Nobody reads: the oldest bytes are delivered as they are. */
CASE(held_events_are_bounded)
{
	const int64_t n = 100000;

	for (int64_t i = 0; i < n; i++)
		add_hop(world, NETOBS_TRACE_RECEIVE, 10 * i, 10 * i, 10, PEER, 7);
	assert_true(world->n >= n - 65536 - 600);
	assert_true(world->n < n);
	add(world, NETOBS_TRACE_READ, 10 * n, 0, (uint32_t)(10 * n));
	end(world);
	assert_int_equal(world->n, n);
	check_tiles(world, 0, 10 * n);
}

/* 100 MB by one call, in 64 KiB, with 1.4 kB segments: 200,000 events and more. */
CASE(a_bulk_transfer_takes_time_that_grows_with_it)
{
	enum { CHUNK = 65536, CHUNKS = 1600, SEGMENT = 1448 };

	for (int64_t i = 0; i < CHUNKS; i++) {
		const int64_t offset = i * CHUNK, us = i * 100;

		add(world, NETOBS_TRACE_SEND, us, offset,
		    (uint32_t)(CHUNKS - i) * CHUNK);
		add_hop(world, NETOBS_TRACE_QUEUE, us + 1, offset, CHUNK, VETH,
			7);
		add_hop(world, NETOBS_TRACE_TRANSMIT, us + 2, offset, CHUNK,
			VETH, 7);
		for (int64_t at = 0; at < CHUNK; at += SEGMENT) {
			const uint32_t length =
				(uint32_t)min_i64(SEGMENT, CHUNK - at);
			const int64_t when = us + 3 + at / SEGMENT;

			add_hop(world, NETOBS_TRACE_ARRIVE, when, offset + at,
				length, PEER, 0);
			add_hop(world, NETOBS_TRACE_RECEIVE, when + 1,
				offset + at, length, PEER, 0);
			add(world, NETOBS_TRACE_SEGMENT, when + 1, offset + at,
			    length);
		}
		add(world, NETOBS_TRACE_READY, us + 60, offset, CHUNK);
		if (i % 40 == 39)
			add(world, NETOBS_TRACE_READ, us + 61,
			    offset - 39 * CHUNK, 40 * CHUNK);
	}
	end(world);
	check_tiles(world, 0, (int64_t)CHUNKS * CHUNK);
	for (uint32_t i = 0; i < world->n; i++)
		assert_int_equal(world->got[i].unknown_parts, 0);
}

/* ---- Netfilter ----------------------------------------------------------------------------- */

static void add_hook(struct world *world, uint8_t point, int64_t us,
		     uint32_t ifindex, uint64_t buffer)
{
	add_hop(world, point, us, 0, 100, ifindex, buffer);
	add_hop(world, (uint8_t)(point + 1), us + 2, 0, 100, ifindex, buffer);
}

static void check_points(const struct netobs_journey *journey,
			 const uint8_t *points, uint16_t n)
{
	assert_int_equal(journey->n_steps, n);
	for (uint16_t i = 0; i < n; i++)
		assert_int_equal(journey->steps[i].point, points[i]);
}

CASE(hooks_are_steps_within_the_parts)
{
	static const uint8_t points[] = {
		NETOBS_TRACE_SEND,	     NETOBS_TRACE_OUTPUT,
		NETOBS_TRACE_OUTPUT_END,     NETOBS_TRACE_QUEUE,
		NETOBS_TRACE_TRANSMIT,	     NETOBS_TRACE_ARRIVE,
		NETOBS_TRACE_RECEIVE,	     NETOBS_TRACE_PREROUTING,
		NETOBS_TRACE_PREROUTING_END, NETOBS_TRACE_SEGMENT,
		NETOBS_TRACE_READY,	     NETOBS_TRACE_READ
	};

	add(world, NETOBS_TRACE_SEND, 0, 0, 100);
	add_hook(world, NETOBS_TRACE_OUTPUT, 1, VETH, 7);
	add_way(world, 10, 0, 100, 7);
	add_hook(world, NETOBS_TRACE_PREROUTING, 15, PEER, 7);
	add_taking(world, 20, 0, 100);
	end(world);
	check_tiles(world, 0, 100);
	check_points(world->got, points, ARRAY_SIZE(points));
	assert_true(world->got->record.has & NETOBS_JOURNEY_HAS_NETFILTER);
	assert_int_equal(world->got->netfilter_ns, 4 * US);
	assert_int_equal(world->got->unknown_parts, 0);
	assert_int_equal(part_us(world->got, NETOBS_JOURNEY_TCP), 10);
	assert_int_equal(part_us(world->got, NETOBS_JOURNEY_STACK), 8);
}

/* By their buffers: those of the attempt that arrived count. */
CASE(hooks_are_of_their_attempt)
{
	add(world, NETOBS_TRACE_SEND, 0, 0, 100);
	add_hook(world, NETOBS_TRACE_OUTPUT, 1, VETH, 7);
	add_hop(world, NETOBS_TRACE_QUEUE, 4, 0, 100, VETH, 7);
	add_hop(world, NETOBS_TRACE_DROP, 5, 0, 100, VETH, 7);
	add(world, NETOBS_TRACE_RETRANSMIT, 100, 0, 100);
	add_hook(world, NETOBS_TRACE_OUTPUT, 101, VETH, 8);
	add_way(world, 110, 0, 100, 8);
	add_taking(world, 120, 0, 100);
	end(world);
	check_tiles(world, 0, 100);
	assert_int_equal(world->got->n_attempts, 2);
	assert_int_equal(world->got->netfilter_ns, 2 * US);
	for (int i = 0; i < world->got->n_steps; i++) {
		const struct netobs_journey_step *step = &world->got->steps[i];

		if (step->point == NETOBS_TRACE_OUTPUT)
			assert_int_equal(step->attempt,
					 step->time_ns < START_NS + 100 * US);
	}
}

CASE(a_journey_begins_at_no_hook)
{
	add_hook(world, NETOBS_TRACE_OUTPUT, 1, VETH, 7);
	add_way(world, 10, 0, 100, 7);
	add_taking(world, 20, 0, 100);
	end(world);
	check_tiles(world, 0, 100);
	assert_int_equal(world->got->steps[0].point, NETOBS_TRACE_QUEUE);
	assert_false(world->got->record.has & NETOBS_JOURNEY_HAS_NETFILTER);
}

static void count_bytes(struct netobs_journey *journey, void *ctx)
{
	*(uint64_t *)ctx += journey->length;
}

/* Many connections with few events each, which nothing ends. */
CASE(memory_of_all_connections_is_bounded)
{
	enum { CONNECTIONS = 3000, ROUNDS = 200, STEP = 10 };
	struct journeys *journeys;
	uint64_t bytes = 0;

	assert_int_equal(journeys_new(count_bytes, &bytes, &journeys), 0);
	for (int64_t round = 0; round < ROUNDS; round++)
		for (uint64_t id = 1; id <= CONNECTIONS; id++) {
			struct netobs_trace_event event =
				make_event(NETOBS_TRACE_QUEUE, round * MS,
					   round * STEP, STEP);

			event.connection = id;
			event.ifindex = VETH;
			assert_int_equal(journeys_add(journeys, &event), 0);
			event.point = NETOBS_TRACE_SENT;
			if (!round)
				assert_int_equal(journeys_add(journeys, &event),
						 0);
		}
	assert_true(journeys_count_cut(journeys) > CONNECTIONS);
	journeys_end(journeys, 0);
	journeys_free(journeys);
	assert_int_equal(bytes, (uint64_t)CONNECTIONS * ROUNDS * STEP);
}
