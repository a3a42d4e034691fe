// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Journeys of datagrams: which events are of the same one. */
#include "kept_journeys.h"

#include <netinet/in.h>

enum { LEFT = 10, RIGHT = 11, SOCKET = 77, LENGTH = 108 };
enum { WAIT_US = 200 * 1000 * 1000 };

/* ---- Events -------------------------------------------------------------------------------- */

static struct netobs_trace_event make_event(const struct world *world,
					    uint8_t point, int64_t us,
					    uint64_t buffer)
{
	return (struct netobs_trace_event){
		.record = { .sz = sizeof(struct netobs_trace_event),
			    .time_ns = START_NS + us * US },
		.connection = 1,
		.length = LENGTH,
		.point = point,
		.netns_inode = 1,
		.protocol = world->protocol ?: IPPROTO_UDP,
		.buffer = buffer,
	};
}

static void add(struct world *world, const struct netobs_trace_event *event)
{
	assert_int_equal(journeys_add(world->journeys, event), 0);
}

static void add_at(struct world *world, uint8_t point, int64_t us,
		   uint64_t buffer, uint32_t ifindex)
{
	struct netobs_trace_event event = make_event(world, point, us, buffer);

	event.ifindex = ifindex;
	add(world, &event);
}

/* 4 us. */
static void add_way(struct world *world, int64_t us, uint64_t buffer)
{
	add_at(world, NETOBS_TRACE_QUEUE, us, buffer, LEFT);
	add_at(world, NETOBS_TRACE_TRANSMIT, us + 1, buffer, LEFT);
	add_at(world, NETOBS_TRACE_ARRIVE, us + 2, buffer, RIGHT);
	add_at(world, NETOBS_TRACE_RECEIVE, us + 4, buffer, RIGHT);
}

static void add_ready(struct world *world, int64_t us, uint64_t buffer)
{
	struct netobs_trace_event event =
		make_event(world, NETOBS_TRACE_READY, us, buffer);

	event.socket = SOCKET;
	add(world, &event);
}

/* @left: the first buffer that is left */
static void add_read(struct world *world, int64_t us, uint64_t left)
{
	struct netobs_trace_event event =
		make_event(world, NETOBS_TRACE_READ, us, left);

	event.socket = SOCKET;
	event.length = 0;
	add(world, &event);
}

static void add_fragment(struct world *world, uint8_t point, int64_t us,
			 uint64_t buffer, int64_t offset, uint32_t length)
{
	struct netobs_trace_event event = make_event(world, point, us, buffer);

	event.ifindex = point == NETOBS_TRACE_QUEUE ? LEFT : RIGHT;
	event.offset = offset;
	event.length = length;
	event.ip_id = 4711;
	event.is_fragment = true;
	add(world, &event);
}

static void wait_long(struct world *world)
{
	journeys_advance(world->journeys, START_NS + (int64_t)WAIT_US * US);
}

/* ---- What is expected ---------------------------------------------------------------------- */

static void check_end(const struct netobs_journey *journey, uint32_t number,
		      uint8_t point, int64_t us)
{
	assert_int_equal(journey->seq, number);
	assert_int_equal(journey->steps[journey->n_steps - 1].point, point);
	assert_int_equal(journey->end_ns, START_NS + us * US);
}

CASE(it_has_all_parts_but_those_of_streams)
{
	add_way(world, 0, 1);
	add_ready(world, 10, 1);
	add_read(world, 110, 0);
	wait_long(world);
	assert_int_equal(world->n, 1);
	check_end(&world->got[0], 1, NETOBS_TRACE_READ, 110);
	assert_int_equal(world->got[0].unknown_parts, 0);
	assert_int_equal(world->got[0].unknown_ns, 0);
	assert_int_equal(world->got[0].length, LENGTH);
	assert_int_equal(part_us(world->got, NETOBS_JOURNEY_QDISC), 1);
	assert_int_equal(part_us(world->got, NETOBS_JOURNEY_DEVICE), 1);
	assert_int_equal(part_us(world->got, NETOBS_JOURNEY_STACK), 8);
	assert_int_equal(part_us(world->got, NETOBS_JOURNEY_READER), 100);
	assert_true(world->got[0].record.has & NETOBS_JOURNEY_HAS_READ);
}

CASE(a_buffer_that_is_used_again_has_another_one)
{
	add_way(world, 0, 1);
	add_way(world, 100, 1);
	wait_long(world);
	assert_int_equal(world->n, 2);
	check_end(&world->got[0], 1, NETOBS_TRACE_RECEIVE, 4);
	check_end(&world->got[1], 2, NETOBS_TRACE_RECEIVE, 104);
	assert_int_equal(world->got[0].unknown_parts, BIT(STACK) | BIT(READER));
}

CASE(a_drop_is_an_end)
{
	struct netobs_trace_event drop =
		make_event(world, NETOBS_TRACE_DROP, 9, 1);

	add_way(world, 0, 1);
	drop.reason = 5;
	add(world, &drop);
	add_at(world, NETOBS_TRACE_QUEUE, 20, 2, LEFT);
	drop = make_event(world, NETOBS_TRACE_DROP, 27, 2);
	add(world, &drop);
	wait_long(world);
	assert_int_equal(world->n, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(world->got[i].unknown_parts, 0);
		assert_true(world->got[i].record.has & NETOBS_JOURNEY_HAS_DROP);
	}
	check_end(&world->got[0], 1, NETOBS_TRACE_DROP, 9);
	assert_int_equal(world->got[0].drop_reason, 5);
	assert_int_equal(world->got[0].unknown_ns, 5 * US);
	assert_int_equal(part_us(&world->got[1], NETOBS_JOURNEY_QDISC), 7);
}

CASE(processes_read_in_order)
{
	for (int i = 0; i < 3; i++) {
		add_way(world, 10 * i, (uint64_t)i + 1);
		add_ready(world, 10 * i + 5, (uint64_t)i + 1);
	}
	add_ready(world, 26, 2); /* it is there still */
	add_read(world, 100, 2);
	add_read(world, 200, 3);
	add_read(world, 300, 0);
	wait_long(world);
	assert_int_equal(world->n, 3);
	for (uint32_t i = 0; i < 3; i++) {
		check_end(&world->got[i], i + 1, NETOBS_TRACE_READ,
			  100 * ((int64_t)i + 1));
		assert_int_equal(world->got[i].unknown_parts, 0);
	}
}

/* What is in front is no datagram of a connection that is traced. */
CASE(what_is_behind_another_ones_is_not_known_to_be_read)
{
	add_way(world, 0, 1);
	add_ready(world, 5, 1);
	add_read(world, 100, 99);
	add_read(world, 200, 0);
	wait_long(world);
	assert_int_equal(world->n, 1);
	check_end(&world->got[0], 1, NETOBS_TRACE_READY, 5);
	assert_int_equal(world->got[0].unknown_parts, BIT(READER));
}

CASE(fragments_are_ranges_of_it)
{
	add_fragment(world, NETOBS_TRACE_QUEUE, 0, 1, 0, 1480);
	add_fragment(world, NETOBS_TRACE_QUEUE, 1, 2, 1480, 520);
	add_fragment(world, NETOBS_TRACE_RECEIVE, 3, 2, 1480, 520);
	add_fragment(world, NETOBS_TRACE_RECEIVE, 4, 1, 0, 1480);
	wait_long(world);
	assert_int_equal(world->n, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(world->got[i].seq, 1);
		assert_int_equal(world->got[i].n_steps, 2);
		assert_int_equal(world->got[i].offset, i * 1480);
		assert_int_equal(world->got[i].length, i ? 520 : 1480);
	}
}

/* Of IPv6, the whole has no number: it has the buffer of the last one that came. */
CASE(fragments_that_are_whole_again_are_read)
{
	struct netobs_trace_event event =
		make_event(world, NETOBS_TRACE_READY, 6, 1);

	add_fragment(world, NETOBS_TRACE_QUEUE, 0, 1, 0, 1480);
	add_fragment(world, NETOBS_TRACE_QUEUE, 1, 2, 1480, 520);
	add_fragment(world, NETOBS_TRACE_RECEIVE, 3, 2, 1480, 520);
	add_fragment(world, NETOBS_TRACE_RECEIVE, 4, 1, 0, 1480);
	event.length = 2000;
	event.socket = SOCKET;
	event.seq = 815;
	add(world, &event);
	add_read(world, 9, 0);
	wait_long(world);
	assert_int_equal(world->n, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(world->got[i].n_steps, 4);
		assert_int_equal(world->got[i].ip_id, 4711);
		assert_int_equal(world->got[i].steps[3].point, NETOBS_TRACE_READ);
	}
}

/* The first points do not show the data. */
CASE(data_identify_it_if_ip_does_not)
{
	struct netobs_trace_event event;

	for (uint32_t i = 0; i < 4; i++) {
		add_at(world, NETOBS_TRACE_ARRIVE, 10 * i, i + 1, RIGHT);
		event = make_event(world, NETOBS_TRACE_RECEIVE, 10 * i + 1,
				   i + 1);
		event.ifindex = RIGHT;
		event.seq = i / 2 * 815;
		add(world, &event);
	}
	event = make_event(world, NETOBS_TRACE_RECEIVE, 50, 9);
	event.ip_id = 4711;
	event.seq = 815;
	add(world, &event);
	wait_long(world);
	assert_int_equal(world->n, 5);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(world->got[i].ip_id, i / 2 * 815);
		assert_int_equal(world->got[i].n_steps, 2);
	}
	assert_int_equal(world->got[4].ip_id, 4711);
}

/* The kernel segments a buffer for the socket, and one of these has the place of an earlier buffer. */
CASE(a_segment_is_not_the_buffer)
{
	struct netobs_trace_event event =
		make_event(world, NETOBS_TRACE_READY, 6, 1);

	add_way(world, 0, 1);
	event.length = LENGTH / 2;
	event.socket = SOCKET;
	add(world, &event);
	wait_long(world);
	assert_int_equal(world->n, 1);
	assert_int_equal(world->got->length, LENGTH);
	assert_int_equal(world->got->unknown_parts, BIT(STACK) | BIT(READER));
}

/* Hooks are found by the buffer, and none begins a datagram. */
CASE(hooks_are_of_the_datagram)
{
	add_at(world, NETOBS_TRACE_OUTPUT, 0, 1, LEFT);
	add_at(world, NETOBS_TRACE_OUTPUT_END, 1, 1, LEFT);
	add_way(world, 2, 1);
	add_at(world, NETOBS_TRACE_INPUT, 7, 1, RIGHT);
	add_at(world, NETOBS_TRACE_INPUT_END, 10, 1, RIGHT);
	add_ready(world, 11, 1);
	add_read(world, 12, 0);
	wait_long(world);
	assert_int_equal(world->n, 1);
	assert_int_equal(world->got->n_steps, 8);
	assert_int_equal(world->got->steps[0].point, NETOBS_TRACE_QUEUE);
	assert_int_equal(world->got->netfilter_ns, 3 * US);
	assert_int_equal(world->got->unknown_parts, 0);
	assert_int_equal(world->got->unknown_ns, 0);
}

/* Sockets of two namespaces get a datagram that came in fragments: it is one, and the first one's. */
CASE(a_datagram_is_in_the_list_of_one_socket)
{
	struct netobs_trace_event event;

	add_fragment(world, NETOBS_TRACE_QUEUE, 0, 1, 0, 1480);
	add_fragment(world, NETOBS_TRACE_QUEUE, 1, 2, 1480, 520);
	for (uint32_t i = 0; i < 2; i++) {
		event = make_event(world, NETOBS_TRACE_READY, 10 + i, 3 + i);
		event.netns_inode = 1 + i;
		event.socket = SOCKET + i;
		event.ip_id = 4711;
		event.is_fragment = true;
		event.length = 2000;
		add(world, &event);
	}
	for (uint32_t i = 2; i-- > 0;) {
		event = make_event(world, NETOBS_TRACE_READ, 100 + i, 0);
		event.socket = SOCKET + i;
		add(world, &event);
	}
	wait_long(world);
	assert_in_range(world->n, 1, 2);
	for (uint32_t i = 0; i < world->n; i++)
		assert_int_equal(world->got[i].seq, 1);
}

/* The kernel gives each socket a copy, and drops the first one. */
CASE(an_echo_is_known_by_its_number)
{
	struct netobs_trace_event event;

	world->protocol = IPPROTO_ICMP;
	for (uint32_t i = 0; i < 2; i++) {
		event = make_event(world, NETOBS_TRACE_RECEIVE, 10 * i, i + 1);
		event.seq = i + 5;
		add(world, &event);
		event = make_event(world, NETOBS_TRACE_READY, 10 * i + 1, i + 21);
		event.seq = i + 5;
		event.socket = SOCKET;
		add(world, &event);
		event = make_event(world, NETOBS_TRACE_DROP, 10 * i + 2, i + 1);
		event.seq = i + 5;
		add(world, &event);
	}
	add_read(world, 100, 22);
	add_read(world, 200, 0);
	wait_long(world);
	assert_int_equal(world->n, 2);
	for (uint32_t i = 0; i < 2; i++) {
		check_end(&world->got[i], i + 1, NETOBS_TRACE_READ,
			  100 * ((int64_t)i + 1));
		assert_int_equal(world->got[i].n_drops, 0);
	}
}

CASE(the_end_of_a_connection_delivers_all)
{
	add_way(world, 0, 1);
	add_way(world, 10, 2);
	add_ready(world, 20, 2);
	journeys_end(world->journeys, 1);
	assert_int_equal(world->n, 2);
	assert_int_equal(world->got[0].seq + world->got[1].seq, 3);
}
