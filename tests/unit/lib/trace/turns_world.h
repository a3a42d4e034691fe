/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Two hosts, each with a tracer: events, and the turns that these make. The client is in a container behind NAT. */
#ifndef TESTS_TRACE_TURNS_WORLD_H
#define TESTS_TRACE_TURNS_WORLD_H

#include "random_events.h"

#include "trace/journeys.h"
#include "trace/turns.h"

enum {
	MESSAGES_MAX = 12,
	EVENTS_MAX = 1 << 16,
	RECORDS_MAX = 4096,
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
	uint32_t unseen;  /* 1 << point: its kernel lacks the tracepoint */
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
	bool is_queued[2];   /* it said that bytes wait in queues */
	uint8_t after; /* enum netobs_turn_limit, plus 1: of what is sent, to be said at interfaces; 0: nothing */
	uint64_t buffer;
	uint32_t first_seq[2];
	int64_t ends[2]; /* of the streams */
};

/* ---- Events -------------------------------------------------------------------------------- */

/* The client's address and port are translated at its uplink. */
static inline void fill_tuple(struct netobs_trace_event *event, bool is_wire)
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

static inline struct netobs_trace_event *add(struct world *world, int host,
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

static inline struct netobs_trace_event *
add_at(struct world *world, int host, uint8_t direction, uint8_t point,
       int64_t ns, int64_t from, int64_t to, uint32_t interface, uint8_t flags)
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
static inline uint32_t first_interface(int host)
{
	return host ? UPLINK : IN_CONTAINER;
}

/* Of an interface, the two points that a packet passes there. @return when it is behind it */
static inline int64_t pass(struct world *world, int host, uint8_t direction,
			   int64_t ns, int64_t from, int64_t to,
			   uint32_t interface, bool is_arrival, uint8_t flags)
{
	struct netobs_trace_event *event =
		add_at(world, host, direction,
		       is_arrival ? NETOBS_TRACE_ARRIVE : NETOBS_TRACE_QUEUE,
		       ns, from, to, interface, flags);

	if (!is_arrival && world->after) {
		event->record.has |= NETOBS_TRACE_HAS_LIMIT;
		event->limit = world->after - 1;
	}
	ns += some_us(is_arrival ? 5 : 20);
	add_at(world, host, direction,
	       is_arrival ? NETOBS_TRACE_RECEIVE : NETOBS_TRACE_TRANSMIT, ns,
	       from, to, interface, flags);
	return ns;
}

/* Netfilter drops a packet. */
static inline void drop_packet(struct world *world, int host, uint8_t direction,
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
static inline int64_t leave(struct world *world, int host, uint8_t direction,
			    int64_t ns, int64_t from, int64_t to,
			    bool is_dropped, uint8_t flags)
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
static inline int64_t come(struct world *world, int host, uint8_t direction,
			   int64_t ns, int64_t from, int64_t to, uint8_t flags)
{
	world->buffer++;
	for (uint32_t i = UPLINK; i >= first_interface(host); i--)
		ns = some_us(10) + pass(world, host, direction, ns, from, to, i,
					i != HOST_SIDE, flags);
	return ns;
}

/* An acknowledgment without data comes to the sender, and shows what limits it. */
static inline void add_limit(struct world *world, int host, uint8_t direction,
			     int64_t ns, uint8_t limit, struct truth *truth)
{
	struct netobs_trace_event *event =
		add(world, host, !direction, NETOBS_TRACE_SEGMENT, ns,
		    world->ends[!direction], world->ends[!direction]);

	event->record.has |= NETOBS_TRACE_HAS_LIMIT;
	event->limit = limit;
	truth->limits[limit] += (uint64_t)(ns - world->limit_ns[direction]);
	world->limit_ns[direction] = ns;
	world->is_queued[direction] = limit == NETOBS_TURN_QUEUED;
}

/* New bytes are sent: room in queues came without an event. What TCP waits for then is said, or not. */
static inline void add_sent(struct world *world, uint8_t direction, int64_t ns,
			    struct truth *truth)
{
	const bool was_queued = world->is_queued[direction];

	truth->limits[was_queued ? NETOBS_TURN_QUEUED : NETOBS_TURN_OTHER] +=
		(uint64_t)(ns - world->limit_ns[direction]);
	world->limit_ns[direction] = ns;
	world->after =
		one_in(2) ? 0 : (uint8_t)(1 + test_below(NETOBS_TURN_LIMITS));
	if (world->after)
		world->is_queued[direction] = world->after ==
					      NETOBS_TURN_QUEUED + 1;
}

/* The SYN and its answer; @lost SYNs do not arrive. */
static inline void shake_hands(struct world *world, int lost)
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

static inline void keep_turn(struct netobs_turn *turn, void *ctx)
{
	struct host *host = ctx;

	assert_true(host->n_got < RECORDS_MAX);
	host->got[host->n_got++] = *turn;
}

static inline void join_journey(struct netobs_journey *journey, void *ctx)
{
	turns_join(((struct host *)ctx)->turns, journey);
}

/* All threads are stopped all the time. */
static inline bool be_stopped(void *ctx, uint32_t tid, int64_t from_ns,
			      int64_t until_ns,
			      uint64_t ret_ns[NETOBS_THREAD_STATES])
{
	(void)ctx;
	assert_true(tid && until_ns > from_ns);
	memset(ret_ns, 0, NETOBS_THREAD_STATES * sizeof(*ret_ns));
	ret_ns[NETOBS_THREAD_STOP] = (uint64_t)(until_ns - from_ns);
	return true;
}

static inline bool sees(void *ctx, uint32_t points)
{
	return (((struct host *)ctx)->unseen & points) != points;
}

static inline void open_host(struct host *host)
{
	const struct turns_ops ops = { .on_turn = keep_turn,
				       .thread_time = be_stopped,
				       .sees = sees,
				       .ctx = host };

	host->n = host->n_got = host->unseen = 0;
	host->until_ns = 0;
	assert_int_equal(turns_new(&ops, &host->turns), 0);
	assert_int_equal(journeys_new(join_journey, host, &host->journeys), 0);
	journeys_watch(host->journeys, turns_take, host->turns);
}

static inline void sweep(const struct host *host, int64_t *swept_ns,
			 int64_t until_ns)
{
	while (until_ns - *swept_ns >= 50 * MS) {
		*swept_ns += 50 * MS;
		journeys_advance(host->journeys, START_NS + *swept_ns);
		turns_advance(host->turns, START_NS + *swept_ns);
	}
}

/* @lost: one of so many events is missing; 0: none */
static inline void run_host(struct host *host, uint32_t lost)
{
	int64_t swept_ns = 0;

	sort_by_arrival(host->events, host->n);
	for (uint32_t i = 0; i < host->n; i++) {
		const struct timed *timed = &host->events[i];

		if ((lost && one_in(lost)) ||
		    host->unseen >> timed->event.point & 1)
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

static inline void run_hosts(struct world *world)
{
	run_host(&world->hosts[0], 0);
	run_host(&world->hosts[1], 0);
}

static inline uint64_t sum_of(const uint64_t *ns, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += ns[i];
	return sum;
}

static inline int64_t since_start(int64_t ns)
{
	return ns ? ns - START_NS : 0;
}

static inline uint32_t count_kind(const struct host *host, uint8_t kind,
				  uint32_t has)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < host->n_got; i++)
		n += host->got[i].kind == kind &&
		     (host->got[i].record.has & has) == has;
	return n;
}

static inline void begin(struct world *world)
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

static inline void open_world(struct world *world)
{
	for (int i = 0; i < 2; i++) {
		world->hosts[i].events =
			calloc(EVENTS_MAX, sizeof(*world->hosts[i].events));
		assert_non_null(world->hosts[i].events);
	}
}

static inline void close_world(struct world *world)
{
	free(world->hosts[0].events);
	free(world->hosts[1].events);
}

TEST_FIXTURE(struct world, open_world, close_world)

#define CASE(name) TEST_OF(name, struct world *world, set_up, tear_down)

#endif
