// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Which records of a connection are left out: the two hosts leave out those of the same turns. */
#include "turn_state.h"

bool turn_asks(const struct turn_connection *connection, uint8_t direction)
{
	if (connection->has & NETOBS_TRACE_HAS_INITIATOR)
		return !direction;
	for (uint8_t d = 0; d < 2; d++) {
		const struct turn_half *half = &connection->halves[d];
		const struct turn_tuple *tuple =
			half->uplink ? &half->uplink->tuples[d] : &half->tuple;

		if (tuple->src_port != tuple->dst_port)
			return (tuple->src_port > tuple->dst_port) ==
			       (d == direction);
	}
	return !direction;
}

static bool is_chosen(uint32_t key, uint32_t n)
{
	return !((key * 0x9e3779b1U) >> 16 & (n - 1));
}

/* The time that pays for records: 0.8 kB as JSON at 1 kB a second. */
static int64_t price_of(uint32_t n_records)
{
	return n_records * 800 * NSEC_PER_MSEC;
}

bool turn_pay(struct turn_connection *connection, uint32_t n_records,
	      int64_t now_ns)
{
	const int64_t most = price_of(TURNS_BURST);
	const int64_t price = price_of(n_records);
	int64_t *tokens = &connection->tokens_ns;
	bool has_all;

	*tokens =
		connection->filled_ns ?
			min_i64(most,
				*tokens + max_i64(0,
						  now_ns - connection->filled_ns)) :
			most;
	connection->filled_ns = now_ns;
	has_all = *tokens >= price;
	*tokens -= has_all ? price : 0;
	return has_all;
}

/* One of how many is delivered, so that a record of them comes each time that it is paid for. */
static uint32_t share_of(const struct turn_connection *connection, int64_t price)
{
	uint32_t n = 1;

	while (n * max_i64(1, connection->mean_ns) < price && n < 1U << 15)
		n *= 2;
	return n;
}

/* Once some are left out, those that are not are chosen by their key alone: so the other host has them, too. */
uint32_t turn_decide(struct turn_connection *connection, int64_t took_ns,
		     int64_t now_ns, uint32_t n_records, bool is_slow)
{
	const int64_t enough = price_of(TURNS_BURST / 8);
	uint32_t n;

	connection->mean_ns += connection->mean_ns ?
				       (took_ns - connection->mean_ns) / 8 :
				       took_ns;
	connection->is_thinned &= connection->tokens_ns < enough;
	if (!connection->is_thinned && turn_pay(connection, n_records, now_ns))
		return 1;
	connection->is_thinned = true;
	n = is_slow ? 1 : share_of(connection, price_of(n_records));
	if (!is_chosen(connection->key, n))
		return 0;
	if (!turn_pay(connection, n_records, now_ns))
		connection->tokens_ns = 0;
	return n;
}

/* What is decided is for the messages of the turn that is over. */
static void decide_half(struct turn_half *half, uint32_t one_of)
{
	const uint64_t cycle = half->connection->cycle;
	struct turn_message *message;

	if (half->open && half->open->cycle == cycle)
		turn_set_decision(half->open, one_of);
	TAILQ_FOREACH_REVERSE(message, &half->closed, turn_messages, in_list)
	{
		if (message->cycle != cycle)
			break;
		turn_set_decision(message, one_of);
	}
}

/* A request begins, so the turn before it is over. */
void turn_begin_cycle(struct turn_half *half, uint32_t seq, int64_t now_ns)
{
	struct turn_connection *connection = half->connection;
	const int64_t took = now_ns - connection->cycle_ns;
	const bool is_slow = connection->mean_ns &&
			     took > 2 * connection->mean_ns;
	uint32_t one_of;

	if (!turn_asks(connection, half->direction))
		return;
	if (connection->cycle_ns && turn_has_turns(half)) {
		one_of = turn_decide(connection, took, now_ns, 2, is_slow);
		decide_half(half, one_of);
		decide_half(turn_other(half), one_of);
	}
	connection->cycle++;
	connection->cycle_ns = now_ns;
	connection->key = seq;
}
