// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Random conversations: what the model knows of each message is compared with the records of both hosts. */
#include "turns_world.h"

enum {
	CASES_DEFAULT = 60,
	TURNS_MOST = MESSAGES_MAX / 2,
	LONG_TURNS = 900,
	SEGMENTS_MAX = 64
};

/* ---- The model ------------------------------------------------------------------------------ */

struct segment {
	int64_t from, to;
	int64_t taken_ns;	    /* TCP of the receiver has it */
	int64_t ready_ns, acked_ns; /* all before it, too */
	int64_t segment_ns;
};

static void count_attempt(struct truth *sender, struct truth *receiver,
			  uint32_t bytes, bool is_dropped, bool has_arrived)
{
	sender->sent += bytes;
	if (is_dropped) {
		sender->dropped += bytes;
		sender->drops++;
		return;
	}
	sender->out += bytes;
	sender->largest = sender->largest > bytes ? sender->largest : bytes;
	if (!has_arrived)
		return;
	receiver->in += bytes;
	receiver->segment += bytes;
	receiver->largest = receiver->largest > bytes ? receiver->largest : bytes;
}

/* Send a segment until it arrives. @return when it was queued first */
static int64_t send_segment(struct world *world, struct message *message,
			    struct segment *segment, int64_t ns)
{
	const uint8_t d = message->direction;
	const int from = d, to = !d;
	struct truth *sender = &message->at[0], *receiver = &message->at[1];
	const uint32_t bytes = (uint32_t)(segment->to - segment->from);
	const bool is_last = segment->to == message->offset + message->bytes;
	bool has_arrived = false;

	for (int attempt = 0; !has_arrived; attempt++) {
		const bool is_dropped = !from && attempt < 3 && one_in(25);
		const bool is_lost = !is_dropped && attempt < 3 && one_in(15);
		int64_t at;

		if (attempt) {
			ns += 30 * MS + some_us(3000);
			add(world, from, d, NETOBS_TRACE_RETRANSMIT, ns,
			    segment->from, segment->to);
			ns += US;
		} else if (is_last) {
			sender->sent_ns = ns;
		}
		has_arrived = !is_dropped && !is_lost;
		count_attempt(sender, receiver, bytes, is_dropped, has_arrived);
		at = leave(world, from, d, ns, segment->from, segment->to,
			   is_dropped, 0);
		world->after = 0;
		if (is_last)
			sender->out_ns = at;
		if (!has_arrived)
			continue;
		at += 500 * US + some_us(3000);
		if (!receiver->begin_ns || at < receiver->begin_ns)
			receiver->begin_ns = at;
		if (is_last)
			receiver->in_ns = at;
		segment->taken_ns =
			come(world, to, d, at, segment->from, segment->to, 0);
		add(world, to, d, NETOBS_TRACE_SEGMENT, segment->taken_ns,
		    segment->from, segment->to);
		if (is_last)
			receiver->segment_ns = segment->taken_ns;
	}
	return ns;
}

/* @return when the receiver has read all */
static int64_t read_all(struct world *world, const struct message *message,
			struct segment *segments, uint32_t n)
{
	const uint8_t d = message->direction;
	int64_t ready = 0, read = message->offset, ns = 0;

	for (uint32_t i = 0; i < n; i++) {
		const int64_t taken = segments[i].taken_ns + US;

		/* Each is readable once those before it are. */
		ready = taken > ready ? taken : ready + 10;
		segments[i].ready_ns = ready;
		add(world, !d, d, NETOBS_TRACE_READY, ready, segments[i].from,
		    segments[i].to);
	}
	for (uint32_t i = 0; i < n; i++) {
		if (i < n - 1 && one_in(2))
			continue;
		ns = (segments[i].ready_ns > ns ? segments[i].ready_ns : ns) +
		     some_us(200);
		add(world, !d, d, NETOBS_TRACE_READ, ns, read, segments[i].to);
		read = segments[i].to;
	}
	return ns;
}

/* Acknowledgments come one after the other, as what they are for has. */
static void acknowledge(struct world *world, struct message *message,
			const struct segment *segments, uint32_t n)
{
	const uint8_t d = message->direction;
	int64_t ns = 0;

	for (uint32_t i = 0; i < n; i++) {
		const int64_t back = segments[i].ready_ns + 500 * US;

		ns = back > ns ? back : ns + 10;
		add(world, d, d, NETOBS_TRACE_ACKED, ns, segments[i].from,
		    segments[i].to);
	}
	message->at[0].acked_ns = ns;
}

/* A call writes bytes of a message, which are sent in segments. @return when it ends */
static int64_t write_bytes(struct world *world, struct message *message,
			   struct segment *segments, uint32_t *n, int64_t at,
			   int64_t bytes, int64_t ns)
{
	const uint8_t d = message->direction;
	struct truth *sender = &message->at[0];
	struct netobs_trace_event *event =
		add(world, d, d, NETOBS_TRACE_SEND, ns, at, at + bytes);

	event->record.has |= NETOBS_TRACE_HAS_LIMIT;
	event->limit = NETOBS_TURN_IDLE;
	sender->limits[NETOBS_TURN_IDLE] += (uint64_t)(ns - world->limit_ns[d]);
	world->limit_ns[d] = ns;
	world->is_queued[d] = false;
	sender->called_ns = ns;
	for (int64_t end = at + bytes, next; at < end; at = next) {
		assert_true(*n < SEGMENTS_MAX);
		next = at + MSS < end ? at + MSS : end;
		if (one_in(4)) {
			ns += some_us(2000);
			add_limit(world, d, d, ns,
				  (uint8_t)test_below(NETOBS_TURN_LIMITS),
				  sender);
		}
		ns += some_us(5);
		segments[*n] = (struct segment){ .from = at, .to = next };
		add_sent(world, d, ns, sender);
		send_segment(world, message, &segments[(*n)++], ns);
		ns += some_us(2);
	}
	ns += some_us(20);
	add(world, d, d, NETOBS_TRACE_SENT, ns, at - bytes, at);
	return ns;
}

/* One end writes a message in calls, from now on. The other one reads it, at the time that is set then. */
static void talk(struct world *world, uint8_t direction)
{
	struct message *message =
		&world->messages[world->n_messages++ % MESSAGES_MAX];
	struct truth *sender = &message->at[0], *receiver = &message->at[1];
	struct segment segments[SEGMENTS_MAX] = { { 0 } };
	uint32_t n = 0, n_calls = 1 + test_below(world->most_calls);
	int64_t ns = world->now_ns;

	*message = (struct message){ .direction = direction,
				     .offset = world->ends[direction] };
	sender->begin_ns = world->limit_ns[direction] = ns;
	for (uint32_t call = 0; call < n_calls; call++) {
		const uint32_t bytes = 1 + test_below(world->most_bytes);

		message->bytes += bytes;
	}
	for (int64_t at = message->offset, left = message->bytes; left;) {
		const int64_t most = n_calls > 1 ? left - (n_calls - 1) : left;
		const int64_t bytes =
			n_calls > 1 ? 1 + test_below((uint32_t)most) : left;

		ns = write_bytes(world, message, segments, &n, at, bytes, ns);
		at += bytes;
		sender->written_ns = ns;
		left -= bytes;
		n_calls -= n_calls > 1;
		ns += left ? some_us(3000) : 0;
	}
	world->ends[direction] += message->bytes;
	receiver->read_ns = read_all(world, message, segments, n);
	receiver->ready_ns = segments[n - 1].ready_ns;
	acknowledge(world, message, segments, n);
	world->now_ns = receiver->read_ns + some_us(20000);
	receiver->answer_ns = world->now_ns;
	assert_true(world->now_ns > sender->written_ns);
}

/* ---- The records --------------------------------------------------------------------------- */

/* The last record of a message. */
static const struct netobs_turn *find_turn(const struct host *host,
					   const struct message *message)
{
	for (uint32_t i = host->n_got; i--;) {
		const struct netobs_turn *turn = &host->got[i];

		if (turn->kind == NETOBS_TURN_MESSAGE &&
		    turn->direction == message->direction &&
		    turn->offset == message->offset)
			return turn;
	}
	fail_msg("direction %u, offset %d: there is no record",
		 message->direction, (int)message->offset);
	return NULL;
}

static void check_common(const struct world *world,
			 const struct netobs_turn *turn,
			 const struct message *message)
{
	const uint8_t client[16] = { [10] = 0xff, 0xff, 10, 0, 0, 9 };

	assert_int_equal(turn->bytes, message->bytes);
	assert_int_equal(turn->seq, world->first_seq[message->direction] +
					    (uint32_t)message->offset);
	assert_true(turn->record.has & NETOBS_TURN_HAS_END);
	assert_true(turn->record.has & NETOBS_TURN_HAS_OFFSET);
	assert_false(turn->record.has & NETOBS_TURN_HAS_OVERLAP);
	assert_int_equal(turn->uplink_ifindex, UPLINK);
	assert_memory_equal(message->direction ? turn->wire_dst : turn->wire_src,
			    client, sizeof(client));
	assert_int_equal(message->direction ? turn->wire_dst_port :
					      turn->wire_src_port,
			 WIRE_PORT);
	assert_int_equal(turn->pid,
			 100 + (message->direction ^
				!(turn->record.has & NETOBS_TURN_HAS_SEND)));
}

static void check_sender(const struct netobs_turn *turn, const struct truth *truth)
{
	assert_true(turn->record.has & NETOBS_TURN_HAS_SEND);
	assert_false(turn->record.has & NETOBS_TURN_HAS_READ);
	assert_int_equal(since_start(turn->record.time_ns), truth->begin_ns);
	assert_int_equal(since_start(turn->written_ns), truth->written_ns);
	assert_int_equal(since_start(turn->sent_ns), truth->sent_ns);
	assert_int_equal(since_start(turn->out_ns), truth->out_ns);
	assert_int_equal(since_start(turn->acked_ns), truth->acked_ns);
	assert_int_equal(turn->in_ns, 0);
	assert_int_equal(turn->sent_bytes, truth->sent);
	assert_int_equal(turn->out_bytes, truth->out);
	assert_int_equal(turn->dropped_bytes, truth->dropped);
	assert_int_equal(turn->drops, truth->drops);
	assert_int_equal(turn->largest_sent, truth->largest);
	assert_int_equal(turn->unknown_parts & ~(1U << NETOBS_JOURNEY_FORWARD),
			 0);
	assert_int_equal(sum_of(turn->part_ns, NETOBS_JOURNEY_PARTS),
			 truth->acked_ns - truth->called_ns);
	assert_memory_equal(turn->limit_ns, truth->limits, sizeof(truth->limits));
	assert_int_equal(sum_of(turn->limit_ns, NETOBS_TURN_LIMITS),
			 truth->sent_ns - truth->begin_ns);
	if (truth->drops)
		assert_string_equal(turn->drop_cause, CAUSE);
}

static void check_receiver(const struct netobs_turn *turn,
			   const struct truth *truth, bool is_last)
{
	assert_true(turn->record.has & NETOBS_TURN_HAS_READ);
	assert_false(turn->record.has & NETOBS_TURN_HAS_SEND);
	assert_int_equal(since_start(turn->record.time_ns), truth->begin_ns);
	assert_int_equal(since_start(turn->in_ns), truth->in_ns);
	assert_int_equal(since_start(turn->segment_ns), truth->segment_ns);
	assert_int_equal(since_start(turn->ready_ns), truth->ready_ns);
	assert_int_equal(since_start(turn->read_ns), truth->read_ns);
	assert_int_equal(since_start(turn->answer_ns),
			 is_last ? 0 : truth->answer_ns);
	assert_int_equal(turn->out_ns, 0);
	assert_int_equal(turn->sent_bytes, 0);
	assert_int_equal(turn->in_bytes, truth->in);
	assert_int_equal(turn->segment_bytes, truth->segment);
	assert_int_equal(turn->largest_in, truth->largest);
	assert_int_equal(turn->dropped_bytes, 0);
	assert_int_equal(turn->unknown_parts, 0);
	assert_int_equal(sum_of(turn->part_ns, NETOBS_JOURNEY_PARTS),
			 truth->read_ns - truth->in_ns);
}

static void check_messages(const struct world *world)
{
	for (uint32_t i = 0; i < world->n_messages; i++) {
		const struct message *message = &world->messages[i];
		const struct netobs_turn *sent =
			find_turn(&world->hosts[message->direction], message);
		const struct netobs_turn *come =
			find_turn(&world->hosts[!message->direction], message);

		check_common(world, sent, message);
		check_common(world, come, message);
		check_sender(sent, &message->at[0]);
		check_receiver(come, &message->at[1], i == world->n_messages - 1);
	}
}

static void converse(struct world *world)
{
	begin(world);
	shake_hands(world, one_in(8));
	for (uint32_t n = 1 + test_below(TURNS_MOST); n; n--) {
		talk(world, 0);
		talk(world, 1);
	}
}

static uint32_t n_cases(void)
{
	const char *cases = getenv("NETOBS_TEST_CASES");

	return cases ? (uint32_t)atoi(cases) : CASES_DEFAULT;
}

/* Both are of one kernel, and traced from when the server reads the first time. */
static void be_one_kernel(struct world *world)
{
	struct host *one = &world->hosts[0], *other = &world->hosts[1];
	int64_t from_ns = INT64_MAX;
	uint32_t n = 0;

	assert_true(one->n + other->n <= EVENTS_MAX);
	memcpy(one->events + one->n, other->events,
	       other->n * sizeof(*other->events));
	one->n += other->n;
	for (uint32_t i = 0; i < one->n; i++)
		if (one->events[i].event.point == NETOBS_TRACE_READ)
			from_ns = min_i64(from_ns,
					  one->events[i].event.record.time_ns);
	for (uint32_t i = 0; i < one->n; i++) {
		const int64_t ns = one->events[i].event.record.time_ns;

		if (ns < from_ns)
			continue;
		one->events[n] = one->events[i];
		one->events[n++].arrives_ns = ns - START_NS;
	}
	one->n = n;
	other->n = 0;
}

/* Of a message that begins later, the sender's namespace is known, and what it sent. */
CASE(the_first_event_may_be_of_the_receivers_socket)
{
	for (uint32_t i = n_cases(); i; i--) {
		uint32_t n_sent = 0;

		begin(world);
		for (int turn = 0; turn < 3; turn++) {
			talk(world, 0);
			talk(world, 1);
		}
		be_one_kernel(world);
		run_hosts(world);
		for (uint32_t k = 0; k < world->hosts[0].n_got; k++) {
			const struct netobs_turn *turn = &world->hosts[0].got[k];

			if (turn->direction || !turn->offset ||
			    !(turn->record.has & NETOBS_TURN_HAS_END))
				continue;
			assert_int_equal(turn->netns_inode, 10);
			assert_true(turn->sent_ns && turn->sent_bytes);
			n_sent++;
		}
		assert_true(n_sent >= 2);
	}
}

CASE(both_hosts_see_the_messages_that_there_are)
{
	for (uint32_t i = n_cases(); i; i--) {
		converse(world);
		run_hosts(world);
		check_messages(world);
		for (int host = 0; host < 2; host++)
			assert_int_equal(count_kind(&world->hosts[host],
						    NETOBS_TURN_MESSAGE,
						    NETOBS_TURN_HAS_END),
					 world->n_messages);
	}
}

/* @return how many messages the server has read of which it was known at once when they could be */
static uint32_t check_unseen_ready(const struct world *world)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < world->n_messages; i++) {
		const struct message *message = &world->messages[i];
		const struct truth *truth = &message->at[1];
		const struct netobs_turn *turn;

		if (message->direction)
			continue;
		turn = find_turn(&world->hosts[1], message);
		assert_true(since_start(turn->ready_ns) >= truth->ready_ns - US);
		assert_true(since_start(turn->ready_ns) <= truth->read_ns);
		assert_int_equal(since_start(turn->read_ns), truth->read_ns);
		assert_true(sum_of(turn->thread_ns[NETOBS_TURN_READING],
				   NETOBS_THREAD_STATES) ||
			    turn->ready_ns == turn->read_ns);
		n += turn->ready_ns == turn->segment_ns;
	}
	return n;
}

CASE(before_linux_6_3_bytes_in_order_can_be_read_as_tcp_gets_them)
{
	for (uint32_t i = n_cases(); i; i--) {
		begin(world);
		if (i & 1)
			world->most_calls = world->most_bytes = 1; /* one segment */
		world->hosts[1].unseen = 1 << NETOBS_TRACE_READY;
		shake_hands(world, 0);
		for (int turn = 0; turn < TURNS_MOST; turn++) {
			talk(world, 0);
			talk(world, 1);
		}
		run_hosts(world);
		assert_true(check_unseen_ready(world) >= (i & 1 ? TURNS_MOST : 0));
	}
}

/* What is there has an order, and does not exceed the stream. */
CASE(missing_events_make_no_times_up)
{
	for (uint32_t i = n_cases(); i; i--) {
		converse(world);
		for (int host = 0; host < 2; host++) {
			run_host(&world->hosts[host], 2 + test_below(60));
			for (uint32_t j = 0; j < world->hosts[host].n_got; j++) {
				const struct netobs_turn *turn =
					&world->hosts[host].got[j];

				assert_true(turn->end_ns >= turn->record.time_ns);
				assert_true(turn->offset >= 0);
				assert_true(turn->offset + turn->bytes <=
					    world->ends[turn->direction]);
			}
		}
	}
}

/* As long as it lasts, whoever judges it has a record of the last second. */
CASE(messages_that_are_not_read_have_a_record_each_second)
{
	enum { LASTS_MS = 25000 };
	struct host *server = &world->hosts[1];
	uint32_t n = 0;
	int64_t ready_ns, end_ns = 0;

	begin(world);
	talk(world, 0);
	talk(world, 1);
	ready_ns = world->now_ns + 3 * MS;
	for (int i = 0; i < 2; i++)
		add(world, 1, 0, i ? NETOBS_TRACE_READY : NETOBS_TRACE_SEGMENT,
		    ready_ns, world->ends[0], world->ends[0] + 100);
	server->until_ns = ready_ns + LASTS_MS * (int64_t)MS;
	run_hosts(world);
	for (uint32_t i = 0; i < server->n_got; i++) {
		const struct netobs_turn *turn = &server->got[i];

		if (turn->offset != world->ends[0] || turn->direction ||
		    turn->record.has & NETOBS_TURN_HAS_END)
			continue;
		n++;
		assert_int_equal(turn->bytes, 100);
		assert_int_equal(since_start(turn->ready_ns), ready_ns);
		assert_int_equal(turn->read_ns, 0);
		assert_int_equal(turn->pid, 101);
		assert_true(turn->end_ns > end_ns);
		end_ns = turn->end_ns;
		assert_true(turn->record.has & NETOBS_TURN_HAS_THREADS);
		assert_int_equal(
			turn->thread_ns[NETOBS_TURN_READING][NETOBS_THREAD_STOP],
			turn->end_ns - turn->ready_ns);
	}
	assert_in_range(n, LASTS_MS / 1100, LASTS_MS / 1000);
	assert_true(START_NS + server->until_ns - end_ns < 1100LL * MS);
}

/* Two messages come at once. The process answers the first one before it reads the second one. */
CASE(threads_are_known_while_a_part_is_unread)
{
	struct host *server = &world->hosts[1];
	int64_t ready_ns, read_ns[2], at;
	uint32_t n = 0;

	begin(world);
	at = world->ends[0];
	ready_ns = come(world, 1, 0, world->now_ns + 3 * MS, at, at + 150, 0);
	add(world, 1, 0, NETOBS_TRACE_SEGMENT, ready_ns, at, at + 150);
	add(world, 1, 0, NETOBS_TRACE_READY, ready_ns, at, at + 150);
	read_ns[0] = ready_ns + some_us(100000);
	read_ns[1] = read_ns[0] + MS + some_us(100000);
	add(world, 1, 0, NETOBS_TRACE_READ, read_ns[0], at, at + 100);
	add(world, 1, 1, NETOBS_TRACE_SEND, read_ns[0] + US, 0, 10);
	add(world, 1, 0, NETOBS_TRACE_READ, read_ns[1], at + 100, at + 150);
	server->until_ns = read_ns[1] + 20000LL * MS;
	run_hosts(world);
	for (uint32_t i = 0; i < server->n_got; i++) {
		const struct netobs_turn *turn = &server->got[i];
		const bool is_second = turn->offset != at;
		const uint64_t *states = turn->thread_ns[NETOBS_TURN_READING];

		if (turn->direction || turn->kind != NETOBS_TURN_MESSAGE ||
		    !(turn->record.has & NETOBS_TURN_HAS_END))
			continue;
		n++;
		assert_int_equal(turn->bytes, is_second ? 50 : 100);
		assert_int_equal(since_start(turn->read_ns), read_ns[is_second]);
		assert_int_equal(states[NETOBS_THREAD_STOP],
				 read_ns[is_second] - ready_ns);
	}
	assert_int_equal(n, 2);
}

/* A message is read in many pieces, each at once but for the last one. */
CASE(threads_are_known_of_the_longest_wait_of_a_message)
{
	enum { PIECES = 20, PIECE = 100, LAST_MS = 40 };
	struct host *server = &world->hosts[1];
	struct message message = { .direction = 0 };
	const struct netobs_turn *turn;
	int64_t ns, long_ns;

	begin(world);
	talk(world, 0);
	talk(world, 1);
	message.offset = world->ends[0];
	ns = world->now_ns + 3 * MS;
	for (int i = 0; i < PIECES; i++) {
		const int64_t from = world->ends[0] + i * PIECE;

		add(world, 1, 0, NETOBS_TRACE_SEGMENT, ns, from, from + PIECE);
		add(world, 1, 0, NETOBS_TRACE_READY, ns, from, from + PIECE);
		long_ns = i < PIECES - 1 ? 100 * US : LAST_MS * (int64_t)MS;
		add(world, 1, 0, NETOBS_TRACE_READ, ns + long_ns, from,
		    from + PIECE);
		ns += long_ns + MS;
	}
	add(world, 1, 1, NETOBS_TRACE_SENT, ns, world->ends[1],
	    world->ends[1] + PIECE);
	server->until_ns = ns + 500 * MS;
	run_hosts(world);
	turn = find_turn(server, &message);
	assert_true(turn->record.has & NETOBS_TURN_HAS_THREADS);
	assert_in_range(turn->thread_ns[NETOBS_TURN_READING][NETOBS_THREAD_STOP],
			LAST_MS * (int64_t)MS,
			LAST_MS * (int64_t)MS + PIECES * 100 * US);
}

/* @return the record of the same message; NULL: the host has left it out */
static const struct netobs_turn *find_same(const struct host *host,
					   const struct netobs_turn *turn)
{
	for (uint32_t i = 0; i < host->n_got; i++)
		if (host->got[i].kind == turn->kind &&
		    host->got[i].seq == turn->seq &&
		    host->got[i].direction == turn->direction)
			return &host->got[i];
	return NULL;
}

/* Both hosts leave out the same ones, but for those that only one of them finds slow, and where the numbers change. */
CASE(long_conversations_have_some_of_their_turns)
{
	uint32_t n_same = 0, n_thinned = 0;
	uint64_t stands_for = 0;

	begin(world);
	world->most_calls = 1;
	world->most_bytes = 100;
	for (uint32_t i = 0; i < LONG_TURNS; i++) {
		talk(world, 0);
		talk(world, 1);
	}
	run_hosts(world);
	for (uint32_t i = 0; i < world->hosts[0].n_got; i++) {
		const struct netobs_turn *turn = &world->hosts[0].got[i];

		stands_for += turn->one_of;
		n_thinned += turn->one_of > 1;
		if (turn->one_of > 1)
			n_same += !!find_same(&world->hosts[1], turn);
	}
	assert_true(world->hosts[0].n_got < LONG_TURNS);
	assert_true(n_thinned > 0);
	assert_true(n_same * 2 >= n_thinned);
	assert_true(stands_for > LONG_TURNS && stands_for < 4 * LONG_TURNS);
}
