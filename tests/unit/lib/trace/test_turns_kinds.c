// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Records that are of no messages of two hosts that take turns: of handshakes, streams and datagrams. */
#include "turns_world.h"

enum { DATAGRAMS_MANY = 900 };

CASE(handshakes_have_a_record_on_each_host)
{
	for (int lost = 0; lost < 3; lost++) {
		const struct netobs_turn *client = world->hosts[0].got,
					 *server = world->hosts[1].got;
		uint32_t n;

		begin(world);
		shake_hands(world, lost);
		run_hosts(world);
		n = world->hosts[0].n_got;
		assert_true(n > 0 && world->hosts[1].n_got > 0);
		client += n - 1;
		assert_int_equal(client->kind, NETOBS_TURN_CONNECT);
		assert_int_equal(server->kind, NETOBS_TURN_CONNECT);
		assert_int_equal(client->attempts, lost + 1);
		assert_int_equal(client->out_bytes, lost + 1);
		assert_int_equal(server->in_bytes, 1);
		assert_int_equal(client->seq, server->seq);
		assert_int_equal(client->wire_src_port, WIRE_PORT);
		assert_int_equal(server->wire_src_port, WIRE_PORT);
		assert_true(client->in_ns > client->out_ns);
		assert_true(server->answer_ns > server->in_ns);
	}
}

/* A SYN that netfilter drops before the first interface has that event alone. */
CASE(handshakes_that_do_not_leave_the_host_have_a_record)
{
	struct host *client = &world->hosts[0];

	begin(world);
	for (int attempt = 0; attempt < 3; attempt++)
		drop_packet(world, 0, 0, MS + 1000LL * MS * attempt, 0, 0, 0,
			    SYN);
	client->until_ns = 3500LL * MS;
	run_hosts(world);
	assert_in_range(client->n_got, 3, 5);
	for (uint32_t i = 0; i < client->n_got; i++) {
		const struct netobs_turn *turn = &client->got[i];

		assert_int_equal(turn->kind, NETOBS_TURN_CONNECT);
		assert_true(turn->record.has & NETOBS_TURN_HAS_SEND);
		assert_int_equal(turn->attempts, turn->drops);
		assert_int_equal(turn->sent_bytes, turn->dropped_bytes);
		assert_int_equal(turn->out_ns, 0);
		assert_int_equal(since_start(turn->sent_ns), MS);
		assert_int_equal(turn->pid, 100);
		assert_string_equal(turn->drop_cause, CAUSE);
		assert_string_equal(turn->drop_function, "nf_hook_slow");
	}
	assert_int_equal(client->got[client->n_got - 1].drops, 3);
	assert_true(client->got[client->n_got - 1].record.has &
		    NETOBS_TURN_HAS_END);
}

/* The server's process uses the socket first after @ms, when it reads the request. */
static void accept_after(struct world *world, int64_t ms)
{
	struct host *server = &world->hosts[1];
	const int64_t ready_ns = (world->now_ns + 3 * MS) / MS * MS;
	const int64_t read_ns = ready_ns + ms * MS;
	const struct netobs_turn *last = NULL;

	add(world, 1, 0, NETOBS_TRACE_SEGMENT, ready_ns, 0, 0);
	add(world, 1, 0, NETOBS_TRACE_SEGMENT, ready_ns + MS, 0, 100);
	add(world, 1, 0, NETOBS_TRACE_READY, ready_ns + MS, 0, 100);
	add(world, 1, 0, NETOBS_TRACE_READ, read_ns, 0, 100);
	server->until_ns = read_ns + 500 * MS;
	run_hosts(world);
	for (uint32_t i = 0; i < server->n_got; i++) {
		const struct netobs_turn *turn = &server->got[i];

		if (turn->kind != NETOBS_TURN_CONNECT)
			continue;
		assert_true(!last || !(last->record.has & NETOBS_TURN_HAS_END));
		last = turn;
		if (turn->record.has & NETOBS_TURN_HAS_END)
			continue;
		assert_int_equal(turn->read_ns, 0);
	}
	assert_non_null(last);
	assert_int_equal(since_start(last->ready_ns), ready_ns);
	assert_int_equal(since_start(last->read_ns), read_ns);
	assert_int_equal(last->thread_ns[NETOBS_TURN_READING][NETOBS_THREAD_STOP],
			 read_ns - ready_ns);
	assert_true(count_kind(server, NETOBS_TURN_CONNECT, 0) >= ms / 1100);
}

CASE(handshakes_end_with_the_first_use_of_the_socket)
{
	static const int ms[] = { 10, 300, 3000, 15000 };

	for (size_t i = 0; i < ARRAY_SIZE(ms); i++) {
		begin(world);
		shake_hands(world, 0);
		accept_after(world, ms[i]);
	}
}

/* A message without an end, in segments of a kilobyte, with a limit at each acknowledgment. @return slices */
static uint32_t stream(struct world *world, int64_t every_ms, int64_t lasts_ms)
{
	enum { BYTES = 1000 };
	struct truth truth = { 0 };
	uint32_t n = 0;

	begin(world);
	for (int64_t at = 0; at < lasts_ms / every_ms; at++) {
		const int64_t ns = MS + at * every_ms * MS, from = at * BYTES,
			      to = from + BYTES;

		add(world, 0, 0, NETOBS_TRACE_SEND, ns, from, to);
		leave(world, 0, 0, ns + US, from, to, false, 0);
		add(world, 0, 0, NETOBS_TRACE_SENT, ns + MS, from, to);
		add(world, 0, 0, NETOBS_TRACE_ACKED, ns + 5 * MS, from, to);
		add_limit(world, 0, 0, ns + 5 * MS, NETOBS_TURN_CWND, &truth);
	}
	run_hosts(world);
	for (uint32_t i = 0; i < world->hosts[0].n_got; i++) {
		const struct netobs_turn *turn = &world->hosts[0].got[i];

		if (turn->kind != NETOBS_TURN_SLICE)
			continue;
		n++;
		assert_int_equal(sum_of(turn->limit_ns, NETOBS_TURN_LIMITS),
				 turn->end_ns - turn->record.time_ns);
		assert_true(turn->limit_ns[NETOBS_TURN_CWND] > 0);
		assert_int_equal(turn->bytes, turn->sent_bytes);
		assert_int_equal(turn->out_bytes, turn->sent_bytes);
	}
	assert_int_equal(world->hosts[1].n_got, 0);
	return n;
}

/* They begin after a second, and end at the next sweep. */
CASE(streams_have_sums_of_each_quarter_of_a_second)
{
	assert_in_range(stream(world, 10, 3500), 2500 / 300, 2500 / 250);
}

/* @return bytes of the records as JSON that were made after @after_ms */
static size_t bytes_after(const struct host *host, int64_t after_ms)
{
	char text[NETOBS_TRACE_JSON_MAX];
	size_t sum = 0;

	for (uint32_t i = 0; i < host->n_got; i++) {
		const int len = netobs_record_json(&host->got[i].record, text,
						   sizeof(text));

		assert_true(len > 0);
		if (since_start(host->got[i].end_ns) > after_ms * MS)
			sum += (size_t)len + 1;
	}
	return sum;
}

/* Both ends write, and read later. */
static void overlap(struct world *world, int64_t every_ms, int64_t lasts_ms)
{
	begin(world);
	for (int64_t at = 0; at < lasts_ms / every_ms; at++) {
		const int64_t ns = MS + at * every_ms * MS, from = at * 100,
			      to = from + 100;

		add(world, 0, 0, NETOBS_TRACE_SEND, ns, from, to);
		leave(world, 0, 0, ns + US, from, to, false, 0);
		add(world, 0, 0, NETOBS_TRACE_SENT, ns + MS, from, to);
		come(world, 0, 1, ns + 2 * MS, from, to + 50, 0);
		add(world, 0, 1, NETOBS_TRACE_SEGMENT, ns + 3 * MS, from,
		    to + 50);
		add(world, 0, 1, NETOBS_TRACE_READY, ns + 4 * MS, from, to + 50);
		add(world, 0, 1, NETOBS_TRACE_READ, ns + 5 * MS, from, to);
	}
	run_hosts(world);
}

/* There are no turns, and no messages. */
CASE(ends_that_do_not_wait_have_no_messages)
{
	overlap(world, 10, 4000);
	assert_true(count_kind(&world->hosts[0], NETOBS_TURN_MESSAGE, 0) < 5);
	assert_true(count_kind(&world->hosts[0], NETOBS_TURN_SLICE,
			       NETOBS_TURN_HAS_OVERLAP) >= 4);
}

/* The first 256 records of all kinds take less than two minutes. */
CASE(long_streams_have_a_kilobyte_of_records_a_second)
{
	enum { LASTS_S = 320, FIRST_S = 120 };

	for (int has_both = 0; has_both < 2; has_both++) {
		if (has_both)
			overlap(world, 100, LASTS_S * 1000);
		else
			stream(world, 100, LASTS_S * 1000);
		assert_true(count_kind(&world->hosts[0], NETOBS_TURN_SLICE, 0) >
			    LASTS_S / 2);
		assert_in_range(bytes_after(&world->hosts[0], FIRST_S * 1000),
				500 * (LASTS_S - FIRST_S),
				1000 * (LASTS_S - FIRST_S));
	}
}

/* @ip_id: 0: none, so that @data identify it */
static void add_datagram(struct world *world, uint8_t direction, int64_t ns,
			 uint32_t ip_id, uint32_t data, bool is_lost)
{
	const int from = direction, to = !direction;
	uint32_t n[2] = { world->hosts[0].n, world->hosts[1].n };
	const int64_t at = leave(world, from, direction, ns, 0, 100, false, 0);

	if (!is_lost) {
		const int64_t got =
			come(world, to, direction, at + MS, 0, 100, 0);

		add(world, to, direction, NETOBS_TRACE_READY, got, 0, 100)->buffer =
			world->buffer;
		add(world, to, direction, NETOBS_TRACE_READ, got + 100 * US, 0,
		    0);
	}
	for (int host = 0; host < 2; host++)
		for (; n[host] < world->hosts[host].n; n[host]++) {
			struct netobs_trace_event *event =
				&world->hosts[host].events[n[host]].event;

			event->protocol = 17;
			event->ip_id = ip_id;
			event->seq = data;
			if (event->point == NETOBS_TRACE_READY ||
			    event->point == NETOBS_TRACE_READ)
				event->socket = 77;
		}
}

CASE(datagrams_are_messages_and_have_answers)
{
	uint32_t n_answered = 0;

	begin(world);
	for (uint32_t i = 0; i < 5; i++) {
		add_datagram(world, 0, (1 + 50 * i) * (int64_t)MS, 100 + i, 5,
			     false);
		add_datagram(world, 1, (11 + 50 * i) * (int64_t)MS, 200 + i, 5,
			     false);
	}
	run_hosts(world);
	for (int host = 0; host < 2; host++)
		for (uint32_t i = 0; i < world->hosts[host].n_got; i++) {
			const struct netobs_turn *turn =
				&world->hosts[host].got[i];
			const bool sends = turn->direction == host;

			assert_int_equal(turn->kind, NETOBS_TURN_MESSAGE);
			assert_int_equal(turn->ip_id,
					 (turn->direction ? 199 : 99) +
						 turn->offset);
			assert_int_equal(
				sends ? turn->out_bytes : turn->in_bytes, 100);
			assert_int_equal(!!(turn->record.has &
					    NETOBS_TURN_HAS_SEND),
					 sends);
			assert_true(sends ? turn->out_ns : turn->read_ns);
			n_answered += !!turn->answer_ns;
		}
	/* All requests, and all answers but the last one. */
	assert_int_equal(n_answered, 9);
}

/* @return of the requests that the client's host chose, those that the server's host has records of, too */
static uint32_t count_chosen(const struct world *world, uint32_t *ret_n)
{
	const struct host *client = &world->hosts[0], *server = &world->hosts[1];
	uint32_t same = 0, n = 0;

	for (uint32_t i = 0; i < client->n_got; i++) {
		const struct netobs_turn *turn = &client->got[i];

		if (turn->one_of == 1 || turn->direction || !turn->attempts)
			continue;
		n++;
		for (uint32_t k = 0; k < server->n_got; k++)
			if (server->got[k].ip_id == turn->ip_id &&
			    !server->got[k].direction) {
				same++;
				break;
			}
	}
	*ret_n = n;
	return same;
}

/* Some of them are lost, so their numbers differ between the hosts, but not what their data say. */
CASE(both_hosts_have_records_of_the_same_datagrams)
{
	uint32_t n_chosen, n_same;

	begin(world);
	for (uint32_t i = 0; i < DATAGRAMS_MANY; i++)
		add_datagram(world, 0, (1 + 40 * i) * (int64_t)MS, 0,
			     1 + test_below(UINT32_MAX), i % 7 == 3);
	run_hosts(world);
	n_same = count_chosen(world, &n_chosen);
	assert_true(world->hosts[0].n_got < DATAGRAMS_MANY);
	assert_true(n_chosen > 5);
	assert_true(n_same * 2 > n_chosen);
}

/* One of n is chosen, too, and not none or all of them. */
CASE(datagrams_with_equal_data_have_some_records)
{
	uint64_t stands_for = 0;
	uint32_t n_thinned = 0;

	begin(world);
	for (uint32_t i = 0; i < DATAGRAMS_MANY; i++)
		add_datagram(world, 0, (1 + 40 * i) * (int64_t)MS, 0, 815, false);
	run_hosts(world);
	for (uint32_t i = 0; i < world->hosts[1].n_got; i++) {
		const struct netobs_turn *turn = &world->hosts[1].got[i];

		assert_int_equal(turn->ip_id, 815);
		stands_for += turn->one_of;
		n_thinned += turn->one_of > 1;
	}
	assert_in_range(n_thinned, 6, DATAGRAMS_MANY / 4);
	assert_in_range(stands_for, DATAGRAMS_MANY / 2, 2 * DATAGRAMS_MANY);
}
