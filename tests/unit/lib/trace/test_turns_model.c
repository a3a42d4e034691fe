// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Random conversations of two hosts, each with a tracer of its own. The client is in a container behind
 * masquerading. What the model knows of each message is compared with the records of both hosts.
 */
#include "random_events.h"

#include "trace/journeys.h"
#include "trace/turns.h"

enum {
	CASES_DEFAULT = 60,
	TURNS_MOST = 6,
	MESSAGES_MAX = 2 * TURNS_MOST,
	EVENTS_MAX = 1 << 16,
	RECORDS_MAX = 4096,
	LONG_TURNS = 900,
	MSS = 1448,
	/* How far events of two CPUs may be out of order. */
	DISORDER_NS = 3 * MS,
	SYN = 2,
	ACK = 16,
	CLIENT_PORT = 40000,
	WIRE_PORT = 50000,
	SERVER_PORT = 80,
};

#define CAUSE "SKB_DROP_REASON_NETFILTER_DROP"

/* Interfaces, by the index: what is sent passes these of one host in order, what comes in reverse. */
enum { IN_CONTAINER = 1, HOST_SIDE, UPLINK };

/* What the model knows of a message at a host. */
struct truth {
	int64_t begin_ns, written_ns, sent_ns, out_ns, in_ns, segment_ns,
		ready_ns, read_ns, acked_ns, answer_ns;
	int64_t called_ns; /* the call that wrote the last byte began */
	uint64_t sent, out, in, segment, dropped;
	uint32_t drops, largest;
	uint64_t limits[NETOBS_TURN_LIMITS];
};

struct message {
	uint8_t direction;
	int64_t offset;
	uint32_t bytes;
	struct truth at[2]; /* the sender's host, and the receiver's */
};

struct host {
	struct journeys *journeys;
	struct turns *turns;
	struct timed *events;
	uint32_t n;
	int64_t until_ns; /* time passes until then */
	struct netobs_turn got[RECORDS_MAX];
	uint32_t n_got;
};

struct world {
	struct host hosts[2]; /* the client's, and the server's */
	struct message messages[MESSAGES_MAX];
	uint32_t n_messages; /* more replace the first ones */
	uint32_t most_calls, most_bytes;
	int64_t now_ns;
	int64_t limit_ns[2]; /* the last event with a limit, by direction */
	uint64_t buffer;
	uint32_t first_seq[2];
	int64_t ends[2]; /* of the streams */
};

/* ---- Events -------------------------------------------------------------------------------- */

/* The client's address and port are translated at its uplink. */
static void fill_tuple(struct netobs_trace_event *event, bool is_wire)
{
	const uint8_t client[16] = { [10] = 0xff, 0xff, 10,
				     0,		  0,	is_wire ? 9 : 2 },
		      server[16] = { [10] = 0xff, 0xff, 10, 1, 0, 2 };
	const uint16_t port = is_wire ? WIRE_PORT : CLIENT_PORT;

	memcpy(event->src, event->direction ? server : client, 16);
	memcpy(event->dst, event->direction ? client : server, 16);
	event->src_port = event->direction ? SERVER_PORT : port;
	event->dst_port = event->direction ? port : SERVER_PORT;
}

static struct netobs_trace_event *add(struct world *world, int host,
				      uint8_t direction, uint8_t point,
				      int64_t ns, int64_t from, int64_t to)
{
	struct host *at = &world->hosts[host];
	struct timed *timed;

	assert_true(at->n < EVENTS_MAX);
	timed = &at->events[at->n++];
	*timed = (struct timed){
		.event = { .record = { .sz = sizeof(timed->event),
				       .has = NETOBS_TRACE_HAS_OFFSET |
					      NETOBS_TRACE_HAS_INITIATOR,
				       .time_ns = START_NS + ns },
			   .connection = 7,
			   .direction = direction,
			   .protocol = 6,
			   .offset = from,
			   .length = (uint32_t)(to - from),
			   .seq = world->first_seq[direction] + (uint32_t)from,
			   .netns_inode = host ? 20 : 10,
			   .point = point,
			   .pid = 100 + (uint32_t)host,
			   .tid = 200 + (uint32_t)host },
		.arrives_ns = ns + (one_in(3) ? test_below(DISORDER_NS) : 0),
	};
	fill_tuple(&timed->event, host);
	return &timed->event;
}

static struct netobs_trace_event *add_at(struct world *world, int host,
					 uint8_t direction, uint8_t point,
					 int64_t ns, int64_t from, int64_t to,
					 uint32_t interface, uint8_t flags)
{
	struct netobs_trace_event *event =
		add(world, host, direction, point, ns, from, to);

	event->ifindex = interface;
	event->buffer = world->buffer;
	event->tcp_flags = flags;
	event->seq -= flags & SYN ? 1 : 0;
	if (interface != IN_CONTAINER)
		event->netns_inode = host ? 20 : 11;
	fill_tuple(event, host || interface == UPLINK);
	return event;
}

/* The server has no container. */
static uint32_t first_interface(int host)
{
	return host ? UPLINK : IN_CONTAINER;
}

/* Of an interface, the two points that a packet passes there. @return when it is behind it */
static int64_t pass(struct world *world, int host, uint8_t direction,
		    int64_t ns, int64_t from, int64_t to, uint32_t interface,
		    bool is_arrival, uint8_t flags)
{
	add_at(world, host, direction,
	       is_arrival ? NETOBS_TRACE_ARRIVE : NETOBS_TRACE_QUEUE, ns, from,
	       to, interface, flags);
	ns += some_us(is_arrival ? 5 : 20);
	add_at(world, host, direction,
	       is_arrival ? NETOBS_TRACE_RECEIVE : NETOBS_TRACE_TRANSMIT, ns,
	       from, to, interface, flags);
	return ns;
}

/* Netfilter drops a packet. */
static void drop_packet(struct world *world, int host, uint8_t direction,
			int64_t ns, int64_t from, int64_t to,
			uint32_t interface, uint8_t flags)
{
	struct netobs_trace_event *event = add_at(world, host, direction,
						  NETOBS_TRACE_DROP, ns, from,
						  to, interface, flags);

	event->reason = 9;
	event->record.has |= NETOBS_TRACE_HAS_REASON;
	strcpy(event->cause, CAUSE);
	strcpy(event->function, "nf_hook_slow");
}

/* A packet leaves a host. @return when it was at the uplink's driver; -1: the host dropped it */
static int64_t leave(struct world *world, int host, uint8_t direction, int64_t ns,
		     int64_t from, int64_t to, bool is_dropped, uint8_t flags)
{
	world->buffer++;
	for (uint32_t i = first_interface(host); i < UPLINK; i++)
		ns = some_us(3) + pass(world, host, direction, ns, from, to, i,
				       i == HOST_SIDE, flags);
	if (is_dropped) {
		drop_packet(world, host, direction, ns, from, to,
			    host ? 0 : HOST_SIDE, flags);
		return -1;
	}
	return pass(world, host, direction, ns, from, to, UPLINK, false, flags);
}

/* A packet comes to a host. @return when TCP has it */
static int64_t come(struct world *world, int host, uint8_t direction,
		    int64_t ns, int64_t from, int64_t to, uint8_t flags)
{
	world->buffer++;
	for (uint32_t i = UPLINK; i >= first_interface(host); i--)
		ns = some_us(10) + pass(world, host, direction, ns, from, to, i,
					i != HOST_SIDE, flags);
	return ns;
}

/* An acknowledgment without data comes to the sender, and shows what limits it. */
static void add_limit(struct world *world, int host, uint8_t direction,
		      int64_t ns, uint8_t limit, struct truth *truth)
{
	struct netobs_trace_event *event =
		add(world, host, !direction, NETOBS_TRACE_SEGMENT, ns,
		    world->ends[!direction], world->ends[!direction]);

	event->record.has |= NETOBS_TRACE_HAS_LIMIT;
	event->limit = limit;
	truth->limits[limit] += (uint64_t)(ns - world->limit_ns[direction]);
	world->limit_ns[direction] = ns;
}

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

/* One end writes a message in calls, from now on. The other one reads it, at the time that is set then. */
static void talk(struct world *world, uint8_t direction)
{
	struct message *message =
		&world->messages[world->n_messages++ % MESSAGES_MAX];
	struct truth *sender = &message->at[0], *receiver = &message->at[1];
	struct segment segments[64];
	uint32_t n = 0, n_calls = 1 + test_below(world->most_calls);
	int64_t ns = world->now_ns, queued;

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
		struct netobs_trace_event *event =
			add(world, direction, direction, NETOBS_TRACE_SEND, ns,
			    at, at + bytes);

		event->record.has |= NETOBS_TRACE_HAS_LIMIT;
		event->limit = NETOBS_TURN_IDLE;
		sender->limits[NETOBS_TURN_IDLE] +=
			(uint64_t)(ns - world->limit_ns[direction]);
		world->limit_ns[direction] = ns;
		sender->called_ns = ns;
		for (int64_t end = at + bytes, next; at < end; at = next) {
			assert_true(n < ARRAY_SIZE(segments));
			next = at + MSS < end ? at + MSS : end;
			if (one_in(4)) {
				ns += some_us(2000);
				add_limit(world, direction, direction, ns,
					  (uint8_t)test_below(NETOBS_TURN_LIMITS),
					  sender);
			}
			ns += some_us(5);
			segments[n] = (struct segment){ .from = at, .to = next };
			sender->limits[NETOBS_TURN_OTHER] +=
				(uint64_t)(ns - world->limit_ns[direction]);
			world->limit_ns[direction] = ns;
			queued = ns;
			send_segment(world, message, &segments[n++], queued);
			ns += some_us(2);
		}
		ns += some_us(20);
		add(world, direction, direction, NETOBS_TRACE_SENT, ns,
		    at - bytes, at);
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

/* The SYN and its answer; @lost SYNs do not arrive. */
static void shake_hands(struct world *world, int lost)
{
	int64_t ns = world->now_ns, at = ns;

	for (; lost >= 0; lost--) {
		at = leave(world, 0, 0, ns, 0, 0, false, SYN);
		ns += lost ? 1000 * MS : 0;
	}
	at = come(world, 1, 0, at + MS, 0, 0, SYN);
	at = leave(world, 1, 1, at + US, 0, 0, false, SYN | ACK);
	at = come(world, 0, 1, at + MS, 0, 0, SYN | ACK);
	world->now_ns = at + some_us(100);
}

/* ---- The records --------------------------------------------------------------------------- */

static void keep_turn(struct netobs_turn *turn, void *ctx)
{
	struct host *host = ctx;

	assert_true(host->n_got < RECORDS_MAX);
	host->got[host->n_got++] = *turn;
}

static void join_journey(struct netobs_journey *journey, void *ctx)
{
	turns_join(((struct host *)ctx)->turns, journey);
}

/* All threads are stopped all the time. */
static bool be_stopped(void *ctx, uint32_t tid, int64_t from_ns,
		       int64_t until_ns, uint64_t ret_ns[NETOBS_THREAD_STATES])
{
	(void)ctx;
	assert_true(tid && until_ns > from_ns);
	memset(ret_ns, 0, NETOBS_THREAD_STATES * sizeof(*ret_ns));
	ret_ns[NETOBS_THREAD_STOP] = (uint64_t)(until_ns - from_ns);
	return true;
}

static void open_host(struct host *host)
{
	const struct turns_ops ops = { .on_turn = keep_turn,
				       .thread_time = be_stopped,
				       .ctx = host };

	host->n = host->n_got = 0;
	host->until_ns = 0;
	assert_int_equal(turns_new(&ops, &host->turns), 0);
	assert_int_equal(journeys_new(join_journey, host, &host->journeys), 0);
	journeys_watch(host->journeys, turns_take, host->turns);
}

static void sweep(const struct host *host, int64_t *swept_ns, int64_t until_ns)
{
	while (until_ns - *swept_ns >= 50 * MS) {
		*swept_ns += 50 * MS;
		journeys_advance(host->journeys, START_NS + *swept_ns);
		turns_advance(host->turns, START_NS + *swept_ns);
	}
}

/* @lost: one of so many events is missing; 0: none */
static void run_host(struct host *host, uint32_t lost)
{
	int64_t swept_ns = 0;

	sort_by_arrival(host->events, host->n);
	for (uint32_t i = 0; i < host->n; i++) {
		const struct timed *timed = &host->events[i];

		if (lost && one_in(lost))
			continue;
		assert_int_equal(turns_note(host->turns, &timed->event), 0);
		assert_int_equal(journeys_add(host->journeys, &timed->event), 0);
		sweep(host, &swept_ns, timed->arrives_ns);
	}
	sweep(host, &swept_ns, host->until_ns);
	journeys_end(host->journeys, 0);
	turns_end(host->turns, 0);
	journeys_free(host->journeys);
	turns_free(host->turns);
}

static void run_hosts(struct world *world)
{
	run_host(&world->hosts[0], 0);
	run_host(&world->hosts[1], 0);
}

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

static uint64_t sum_of(const uint64_t *ns, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += ns[i];
	return sum;
}

static int64_t since_start(int64_t ns)
{
	return ns ? ns - START_NS : 0;
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

static uint32_t count_kind(const struct host *host, uint8_t kind, uint32_t has)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < host->n_got; i++)
		n += host->got[i].kind == kind &&
		     (host->got[i].record.has & has) == has;
	return n;
}

static void begin(struct world *world)
{
	world->n_messages = 0;
	world->most_calls = 3;
	world->most_bytes = 8 * MSS;
	world->now_ns = some_us(1000);
	world->ends[0] = world->ends[1] = 0;
	world->first_seq[0] = (uint32_t)test_random();
	world->first_seq[1] = (uint32_t)test_random();
	open_host(&world->hosts[0]);
	open_host(&world->hosts[1]);
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

static void open_world(struct world *world)
{
	for (int i = 0; i < 2; i++) {
		world->hosts[i].events =
			calloc(EVENTS_MAX, sizeof(*world->hosts[i].events));
		assert_non_null(world->hosts[i].events);
	}
}

static void close_world(struct world *world)
{
	free(world->hosts[0].events);
	free(world->hosts[1].events);
}

TEST_FIXTURE(struct world, open_world, close_world)

#define CASE(name) TEST_OF(name, struct world *world, set_up, tear_down)

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

static void add_datagram(struct world *world, uint8_t direction, int64_t ns,
			 uint32_t id)
{
	const int from = direction, to = !direction;
	uint32_t n[2] = { world->hosts[0].n, world->hosts[1].n };
	const int64_t at = leave(world, from, direction, ns, 0, 100, false, 0);
	const int64_t got = come(world, to, direction, at + MS, 0, 100, 0);

	add(world, to, direction, NETOBS_TRACE_READY, got, 0, 100)->buffer =
		world->buffer;
	add(world, to, direction, NETOBS_TRACE_READ, got + 100 * US, 0, 0);
	for (int host = 0; host < 2; host++)
		for (; n[host] < world->hosts[host].n; n[host]++) {
			struct netobs_trace_event *event =
				&world->hosts[host].events[n[host]].event;

			event->protocol = 17;
			event->ip_id = id;
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
		add_datagram(world, 0, (1 + 50 * i) * (int64_t)MS, 100 + i);
		add_datagram(world, 1, (11 + 50 * i) * (int64_t)MS, 200 + i);
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

int main(void)
{
	return tests_run(NULL, NULL);
}
