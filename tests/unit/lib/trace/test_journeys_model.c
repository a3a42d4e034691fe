// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Random connections, simulated byte by byte: what the model knows of each byte is compared with
 * the one journey that has it.
 */
#include "random_events.h"

#include "trace/journeys.h"

enum {
	CONNECTIONS = 260,
	AT_ONCE = 4,
	BYTES_MAX = 12000,
	HOPS_MAX = 4,
	/* How far events of two CPUs may be out of order. */
	DISORDER_NS = 2 * MS,
	FIRST_IFINDEX = 10,
};

enum end { HERE, RECEIVER_ELSEWHERE, SENDER_ELSEWHERE, ENDS };

struct truth {
	int64_t called_ns, copied_ns, first_ns, begin_ns, segment_ns, ready_ns,
		read_ns, acked_ns;
	int64_t qdisc_ns, device_ns, forward_ns, stack_ns, transmit_ns;
	uint32_t n_attempts, n_drops;
	uint32_t n_journeys;
};

struct link {
	bool has_qdisc;
	bool has_arrive;
	bool is_relay; /* its buffers are new ones, and it loses some without a trace */
};

struct model {
	uint64_t id;
	enum end end;
	int64_t base; /* offset of the first byte */
	uint32_t n_bytes;
	uint32_t n_links;
	struct link links[HOPS_MAX];
	bool reports_late; /* RETRANSMIT comes after the segment was sent */
	struct truth *bytes;
};

struct world {
	struct journeys *journeys;
	struct model models[AT_ONCE];
	struct timed *events;
	uint32_t n, capacity;
	uint64_t last_buffer;
	bool is_lossy; /* events are missing */
};

/* ---- Events -------------------------------------------------------------------------------- */

static struct netobs_trace_event *add(struct world *world,
				      const struct model *model, uint8_t point,
				      int64_t ns, uint32_t from, uint32_t to)
{
	struct timed *timed;

	assert_true(from < to);
	assert_true(array_reserve(&world->events, world->n, &world->capacity,
				  sizeof(*world->events), 4096));
	timed = &world->events[world->n++];
	*timed = (struct timed){
		.event = { .record = { .sz = sizeof(timed->event),
				       .time_ns = START_NS + ns },
			   .connection = model->id,
			   .direction = (uint8_t)(model->id % 2),
			   .offset = model->base + from,
			   .length = to - from,
			   .netns_inode = 1,
			   .point = point },
		.arrives_ns = ns + (one_in(3) ? test_below(DISORDER_NS) : 0),
	};
	return &timed->event;
}

static void add_hop(struct world *world, const struct model *model,
		    uint8_t point, int64_t ns, const uint32_t bytes[2],
		    uint32_t link, uint64_t buffer);

/* GSO and GRO: parts of the segment pass a point apart. */
static bool add_parts(struct world *world, const struct model *model,
		      uint8_t point, int64_t ns, const uint32_t bytes[2],
		      uint32_t link, uint64_t buffer)
{
	const uint32_t length = bytes[1] - bytes[0];
	uint32_t middle;

	if ((point != NETOBS_TRACE_TRANSMIT && point != NETOBS_TRACE_ARRIVE) ||
	    length < 2 || one_in(2))
		return false;
	middle = bytes[0] + 1 + test_below(length - 1);
	add_hop(world, model, point, ns, (uint32_t[]){ bytes[0], middle }, link,
		buffer);
	add_hop(world, model, point, ns, (uint32_t[]){ middle, bytes[1] }, link,
		buffer);
	return true;
}

static void add_hop(struct world *world, const struct model *model,
		    uint8_t point, int64_t ns, const uint32_t bytes[2],
		    uint32_t link, uint64_t buffer)
{
	const bool is_arrival = point == NETOBS_TRACE_ARRIVE ||
				point == NETOBS_TRACE_RECEIVE;
	struct netobs_trace_event *event;

	if (add_parts(world, model, point, ns, bytes, link, buffer))
		return;
	event = add(world, model, point, ns, bytes[0], bytes[1]);
	event->ifindex = FIRST_IFINDEX + 2 * link + is_arrival;
	event->netns_inode = 1 + link + is_arrival;
	event->buffer = buffer;
	/* NAT: addresses are of no use to tell connections. */
	event->src[15] = (uint8_t)link;
}

/* ---- Writing ------------------------------------------------------------------------------- */

static void write_all(struct world *world, struct model *model)
{
	uint32_t at = 0;
	int64_t ns = 0;

	while (at < model->n_bytes) {
		const uint32_t from = at;
		const uint32_t wanted =
			min_u64(1 + test_below(one_in(3) ? 5000 : 300),
				model->n_bytes - at);
		const uint32_t written = one_in(4) ? 1 + test_below(wanted) :
						     wanted;
		int64_t called_ns;

		/* One that cannot write at all. */
		if (one_in(8) && wanted > 1)
			add(world, model, NETOBS_TRACE_SEND, ns += some_us(50),
			    at, at + wanted - 1);
		called_ns = ns += some_us(500);
		while (at < from + written) {
			const uint32_t n = (uint32_t)min_u64(
				1 + test_below(1500), from + written - at);

			add(world, model, NETOBS_TRACE_SEND, ns, at,
			    from + wanted);
			/* It waits for memory of the socket. */
			if (one_in(10))
				add(world, model, NETOBS_TRACE_SEND,
				    ns += some_us(900), at, from + wanted);
			for (uint32_t i = 0; i < n; i++, at++) {
				model->bytes[at].called_ns = called_ns;
				model->bytes[at].copied_ns = ns;
			}
			ns += some_us(40);
		}
		add(world, model, NETOBS_TRACE_SENT, ns, from, at);
	}
}

/* ---- The way ------------------------------------------------------------------------------- */

/* Bytes of one segment on their way. */
struct copy {
	uint32_t bytes[2];
	uint32_t attempt; /* 0: the first */
	uint64_t buffer;
	int64_t ns; /* now */
	int64_t begin_ns, transmit_ns;
	int64_t qdisc_ns, device_ns, forward_ns;
	/* Where it is lost: a link, on one of its sides. */
	uint32_t lost_link;
	bool is_lost, is_lost_after, is_lost_in_relay;
};

static void drop_copy(struct world *world, struct model *model,
		      struct copy *copy, uint32_t link)
{
	const uint8_t point = copy->is_lost_after ? NETOBS_TRACE_RECEIVE :
						    NETOBS_TRACE_QUEUE;

	/* As the event before, but for the point. */
	add_hop(world, model, point, copy->ns += some_us(5), copy->bytes, link,
		copy->buffer);
	world->events[world->n - 1].event.point = NETOBS_TRACE_DROP;
	for (uint32_t i = copy->bytes[0]; i < copy->bytes[1]; i++)
		model->bytes[i].n_drops++;
}

static void pass_queue(struct world *world, struct model *model,
		       struct copy *copy, uint32_t link)
{
	const int64_t start_ns = copy->ns;

	if (model->links[link].has_qdisc) {
		add_hop(world, model, NETOBS_TRACE_ENQUEUE,
			copy->ns += some_us(3), copy->bytes, link, copy->buffer);
		add_hop(world, model, NETOBS_TRACE_DEQUEUE,
			copy->ns += some_us(300), copy->bytes, link,
			copy->buffer);
	}
	copy->ns += some_us(3);
	if (model->links[link].has_qdisc && one_in(12)) {
		add_hop(world, model, NETOBS_TRACE_TRANSMIT, copy->ns,
			copy->bytes, link, copy->buffer);
		add_hop(world, model, NETOBS_TRACE_BUSY, copy->ns += some_us(3),
			copy->bytes, link, copy->buffer);
		add_hop(world, model, NETOBS_TRACE_DEQUEUE,
			copy->ns += some_us(50), copy->bytes, link, copy->buffer);
		copy->ns += some_us(3);
	}
	add_hop(world, model, NETOBS_TRACE_TRANSMIT, copy->ns, copy->bytes,
		link, copy->buffer);
	copy->transmit_ns = copy->ns;
	copy->qdisc_ns += copy->ns - start_ns;
}

/* @return false: it is lost */
static bool pass_link(struct world *world, struct model *model,
		      struct copy *copy, uint32_t link)
{
	const struct link *at = &model->links[link];
	const bool is_last = link + 1 == model->n_links;
	const bool is_lost = copy->is_lost && copy->lost_link == link;
	const bool begins_here = !(link == 0 && model->end == SENDER_ELSEWHERE);

	if (begins_here) {
		add_hop(world, model, NETOBS_TRACE_QUEUE, copy->ns, copy->bytes,
			link, copy->buffer);
		if (is_lost && !copy->is_lost_after && !copy->is_lost_in_relay) {
			drop_copy(world, model, copy, link);
			return false;
		}
		pass_queue(world, model, copy, link);
	}
	if (is_lost && copy->is_lost_in_relay)
		return false;
	if (is_last && model->end == RECEIVER_ELSEWHERE)
		return true;
	if (at->is_relay)
		copy->buffer = ++world->last_buffer;
	if (begins_here) {
		const int64_t on_link_ns = some_us(at->is_relay ? 2000 : 5);

		copy->ns += on_link_ns;
		copy->device_ns += on_link_ns;
	}
	if (link == 0 && model->end == SENDER_ELSEWHERE)
		copy->begin_ns = copy->ns;
	return true;
}

static void finish_link(struct world *world, struct model *model,
			struct copy *copy, uint32_t link)
{
	const int64_t start_ns = copy->ns;

	if (model->links[link].has_arrive) {
		add_hop(world, model, NETOBS_TRACE_ARRIVE, copy->ns,
			copy->bytes, link, copy->buffer);
		copy->ns += some_us(20);
	}
	add_hop(world, model, NETOBS_TRACE_RECEIVE, copy->ns, copy->bytes, link,
		copy->buffer);
	if (link + 1 < model->n_links) {
		copy->ns += some_us(20);
		copy->forward_ns += copy->ns - start_ns;
	}
}

static void arrive(struct world *world, struct model *model, struct copy *copy)
{
	struct netobs_trace_event *event;

	copy->ns += some_us(10);
	event = add(world, model, NETOBS_TRACE_SEGMENT, copy->ns,
		    copy->bytes[0], copy->bytes[1]);
	event->netns_inode = 1 + model->n_links;
	event->buffer = copy->buffer;
}

/* The first copy that comes is the one that TCP takes. */
static void keep_arrival(struct model *model, const struct copy *copy,
			 int64_t received_ns)
{
	for (uint32_t i = copy->bytes[0]; i < copy->bytes[1]; i++) {
		struct truth *byte = &model->bytes[i];

		if (byte->segment_ns && byte->segment_ns <= copy->ns)
			continue;
		byte->begin_ns = copy->begin_ns;
		byte->segment_ns = copy->ns;
		byte->transmit_ns = copy->transmit_ns;
		byte->qdisc_ns = copy->qdisc_ns;
		byte->device_ns = copy->device_ns;
		byte->forward_ns = copy->forward_ns;
		byte->stack_ns = copy->ns - received_ns;
	}
}

/* @return when it has arrived or was lost */
static int64_t send_copy(struct world *world, struct model *model,
			 struct copy copy)
{
	int64_t received_ns = copy.ns;

	copy.begin_ns = copy.ns;
	for (uint32_t i = copy.bytes[0]; i < copy.bytes[1]; i++) {
		struct truth *byte = &model->bytes[i];

		if (!byte->first_ns || copy.ns < byte->first_ns)
			byte->first_ns = copy.ns;
	}
	for (uint32_t link = 0; link < model->n_links; link++) {
		if (!pass_link(world, model, &copy, link))
			return copy.ns;
		if (link + 1 == model->n_links && model->end == RECEIVER_ELSEWHERE)
			break;
		received_ns = copy.ns;
		finish_link(world, model, &copy, link);
		if (copy.is_lost && copy.lost_link == link && copy.is_lost_after) {
			drop_copy(world, model, &copy, link);
			return copy.ns;
		}
	}
	if (model->end == RECEIVER_ELSEWHERE)
		copy.ns += some_us(3000);
	else
		arrive(world, model, &copy);
	keep_arrival(model, &copy, received_ns);
	return copy.ns;
}

/* TCP may cut what it sends at other places than before. */
static int64_t send_pieces(struct world *world, struct model *model,
			   struct copy copy, bool is_again)
{
	const uint32_t end = copy.bytes[1];
	const uint64_t reused = copy.buffer;
	int64_t last_ns = copy.ns;

	while (copy.bytes[0] < end) {
		copy.bytes[1] =
			copy.bytes[0] +
			(uint32_t)min_u64(1 + test_below(is_again ? 4000 : 9000),
					  end - copy.bytes[0]);
		copy.buffer = reused ?: ++world->last_buffer;
		if (is_again && !model->reports_late)
			add(world, model, NETOBS_TRACE_RETRANSMIT, copy.ns - 1,
			    copy.bytes[0], copy.bytes[1]);
		if (is_again && model->reports_late)
			add(world, model, NETOBS_TRACE_RETRANSMIT, copy.ns + 1,
			    copy.bytes[0], copy.bytes[1]);
		last_ns = max_i64(last_ns, send_copy(world, model, copy));
		copy.bytes[0] = copy.bytes[1];
		copy.ns += some_us(2);
	}
	return last_ns;
}

static void lose(const struct model *model, struct copy *copy)
{
	const bool is_elsewhere = model->end == SENDER_ELSEWHERE;

	copy->is_lost = true;
	copy->lost_link = test_below(model->n_links);
	copy->is_lost_after = one_in(2);
	copy->is_lost_in_relay = false;
	if (model->end == RECEIVER_ELSEWHERE &&
	    copy->lost_link + 1 == model->n_links) {
		copy->is_lost_after = false;
		copy->is_lost_in_relay = one_in(2);
	} else if (is_elsewhere && !copy->lost_link) {
		copy->is_lost_after = true;
	} else if (model->links[copy->lost_link].is_relay && one_in(2)) {
		copy->is_lost_after = false;
		copy->is_lost_in_relay = true;
	}
}

static int64_t send_segment(struct world *world, struct model *model,
			    uint32_t from, uint32_t to, int64_t ns)
{
	struct copy copy = { .bytes = { from, to }, .ns = ns };
	const bool has_relay =
		model->links[0].is_relay || model->links[1].is_relay ||
		model->links[2].is_relay || model->links[3].is_relay;
	const uint32_t n_lost = one_in(5) ? 1 + test_below(3) : 0;
	bool is_again = false;

	for (uint32_t i = 0; i < n_lost; i++, is_again = true) {
		lose(model, &copy);
		/* The address of the buffer that was freed is used again. */
		copy.buffer = one_in(3) ? ++world->last_buffer : 0;
		copy.ns = send_pieces(world, model, copy, is_again) +
			  some_us(20000);
	}
	copy.is_lost = false;
	copy.buffer = 0;
	ns = send_pieces(world, model, copy, is_again);
	if (one_in(10) && model->end == HERE && !n_lost && !has_relay) {
		/* TCP sends it once more, though the first copy is still on its way. */
		copy.ns += some_us(20);
		send_pieces(world, model, copy, true);
	} else if (one_in(10) && model->end != RECEIVER_ELSEWHERE) {
		copy.ns = ns + some_us(3000);
		if (one_in(3))
			lose(model, &copy);
		send_pieces(world, model, copy, true);
	}
	return ns;
}

static void send_all(struct world *world, struct model *model)
{
	uint32_t to;
	int64_t ns = 0;

	for (uint32_t at = 0; at < model->n_bytes; at = to) {
		to = at + (uint32_t)min_u64(1 + test_below(9000),
					    model->n_bytes - at);
		ns = max_i64(ns, model->bytes[to - 1].copied_ns) + some_us(300);
		send_segment(world, model, at, to, ns);
	}
}

/* ---- Reading ------------------------------------------------------------------------------- */

static void make_ready(struct world *world, struct model *model)
{
	uint32_t from = 0;
	int64_t ns = 0;

	for (uint32_t i = 0; i < model->n_bytes; i++) {
		const int64_t next_ns = model->bytes[i].segment_ns + 2 * US;

		if (i && next_ns > ns) {
			add(world, model, NETOBS_TRACE_READY, ns, from, i);
			from = i;
		}
		ns = max_i64(ns, next_ns);
		model->bytes[i].ready_ns = ns;
	}
	add(world, model, NETOBS_TRACE_READY, ns, from, model->n_bytes);
}

static void read_all(struct world *world, struct model *model)
{
	uint32_t to;
	int64_t ns = 0;

	for (uint32_t at = 0; at < model->n_bytes; at = to) {
		to = at +
		     (uint32_t)min_u64(1 + test_below(one_in(2) ? 4000 : 100),
				       model->n_bytes - at);
		ns = max_i64(ns, model->bytes[to - 1].ready_ns) + some_us(2000);
		add(world, model, NETOBS_TRACE_READ, ns, at, to);
		for (uint32_t i = at; i < to; i++)
			model->bytes[i].read_ns = ns;
		if (one_in(10))
			add(world, model, NETOBS_TRACE_READ, ns + some_us(9000),
			    at, to);
	}
}

static void acknowledge_all(struct world *world, struct model *model)
{
	uint32_t to;
	int64_t ns = 0;

	for (uint32_t at = 0; at < model->n_bytes; at = to) {
		to = at + (uint32_t)min_u64(1 + test_below(6000),
					    model->n_bytes - at);
		for (uint32_t i = at; i < to; i++)
			ns = max_i64(ns, model->bytes[i].segment_ns);
		ns += some_us(500);
		add(world, model, NETOBS_TRACE_ACKED, ns, at, to);
		for (uint32_t i = at; i < to; i++)
			model->bytes[i].acked_ns = ns;
	}
}

/* ---- A connection --------------------------------------------------------------------------- */

static void count_attempts(const struct world *world, struct model *model,
			   uint32_t first_event)
{
	const bool is_elsewhere = model->end == SENDER_ELSEWHERE;
	const uint8_t point = !is_elsewhere		 ? NETOBS_TRACE_QUEUE :
			      model->links[0].has_arrive ? NETOBS_TRACE_ARRIVE :
							   NETOBS_TRACE_RECEIVE;

	for (uint32_t e = first_event; e < world->n; e++) {
		const struct netobs_trace_event *event = &world->events[e].event;
		const uint32_t from = (uint32_t)(event->offset - model->base);

		if (event->point != point ||
		    event->ifindex != (uint32_t)FIRST_IFINDEX + is_elsewhere)
			continue;
		for (uint32_t i = from; i < from + event->length; i++) {
			struct truth *byte = &model->bytes[i];

			byte->n_attempts += event->record.time_ns - START_NS <=
					    (byte->read_ns ?: byte->acked_ns);
		}
	}
}

static void simulate(struct world *world, struct model *model, uint64_t id)
{
	const uint32_t first_event = world->n;

	*model = (struct model){
		.id = id,
		.end = (enum end)(one_in(2) ? HERE : test_below(ENDS)),
		.base = one_in(2) ? -(int64_t)test_below(BYTES_MAX) :
				    (int64_t)test_below(1000) << 32,
		.n_bytes = 1 + test_below(one_in(2) ? BYTES_MAX : 500),
		.n_links = 1 + test_below(HOPS_MAX),
		.reports_late = one_in(2),
	};
	for (uint32_t i = 0; i < model->n_links; i++)
		model->links[i] = (struct link){
			.has_qdisc = one_in(2),
			.has_arrive = one_in(2),
			.is_relay = one_in(4),
		};
	model->bytes = calloc(model->n_bytes, sizeof(*model->bytes));
	assert_non_null(model->bytes);
	if (model->end != SENDER_ELSEWHERE)
		write_all(world, model);
	send_all(world, model);
	if (model->end != RECEIVER_ELSEWHERE) {
		make_ready(world, model);
		read_all(world, model);
	}
	if (model->end != SENDER_ELSEWHERE)
		acknowledge_all(world, model);
	count_attempts(world, model, first_event);
}

/* SENDER_ELSEWHERE: what the sender did is not seen. */
static bool is_seen(const struct world *world, const struct timed *timed)
{
	const uint64_t id = timed->event.connection;
	const struct model *model = &world->models[id % AT_ONCE];

	if (world->is_lossy && one_in(8))
		return false;
	return model->end != SENDER_ELSEWHERE ||
	       timed->event.point != NETOBS_TRACE_RETRANSMIT;
}

/* ---- Comparing ------------------------------------------------------------------------------ */

static const struct netobs_journey_step *
find_step(const struct netobs_journey *journey, uint8_t point, bool is_last)
{
	const struct netobs_journey_step *found = NULL;

	for (int i = 0; i < journey->n_steps; i++) {
		const struct netobs_journey_step *step = &journey->steps[i];

		if (step->point == point && !step->attempt && (is_last || !found))
			found = step;
	}
	return found;
}

static void expect_time(const struct netobs_journey_step *step, int64_t ns)
{
	assert_non_null(step);
	assert_int_equal(step->time_ns - START_NS, ns);
}

static void expect_part(const struct netobs_journey *journey,
			enum netobs_journey_part part, int64_t ns)
{
	if (!(journey->record.has & NETOBS_JOURNEY_HAS_CUT) ||
	    part != NETOBS_JOURNEY_RECOVERY)
		assert_int_equal(journey->part_ns[part], ns);
}

static void check_sender(const struct netobs_journey *journey,
			 const struct truth *byte)
{
	expect_time(find_step(journey, NETOBS_TRACE_SEND, false),
		    byte->called_ns);
	expect_time(find_step(journey, NETOBS_TRACE_SEND, true), byte->copied_ns);
	expect_time(find_step(journey, NETOBS_TRACE_QUEUE, false),
		    byte->begin_ns);
	expect_part(journey, NETOBS_JOURNEY_WRITE,
		    byte->copied_ns - byte->called_ns);
	expect_part(journey, NETOBS_JOURNEY_TCP,
		    byte->first_ns - byte->copied_ns);
	expect_part(journey, NETOBS_JOURNEY_RECOVERY,
		    byte->begin_ns - byte->first_ns);
}

static void check_receiver(const struct netobs_journey *journey,
			   const struct truth *byte)
{
	assert_int_equal(journey->end_ns - START_NS, byte->read_ns);
	expect_time(find_step(journey, NETOBS_TRACE_SEGMENT, false),
		    byte->segment_ns);
	expect_time(find_step(journey, NETOBS_TRACE_READY, false),
		    byte->ready_ns);
	expect_part(journey, NETOBS_JOURNEY_STACK, byte->stack_ns);
	expect_part(journey, NETOBS_JOURNEY_GAP,
		    byte->ready_ns - byte->segment_ns);
	expect_part(journey, NETOBS_JOURNEY_READER,
		    byte->read_ns - byte->ready_ns);
}

static void check_sum(const struct netobs_journey *journey)
{
	uint64_t sum = journey->unknown_ns;

	for (int part = 0; part < NETOBS_JOURNEY_PARTS; part++)
		sum += journey->part_ns[part];
	assert_int_equal(sum, journey->end_ns - journey->record.time_ns);
	for (int i = 1; i < journey->n_steps; i++)
		assert_true(journey->steps[i].time_ns >=
			    journey->steps[i - 1].time_ns);
}

static void check_byte(const struct netobs_journey *journey,
		       const struct model *model, const struct truth *byte)
{
	assert_int_equal(!(journey->record.has & NETOBS_JOURNEY_HAS_SEND),
			 model->end == SENDER_ELSEWHERE);
	assert_int_equal(!(journey->record.has & NETOBS_JOURNEY_HAS_READ),
			 model->end == RECEIVER_ELSEWHERE);
	if (model->end != SENDER_ELSEWHERE)
		check_sender(journey, byte);
	if (model->end != RECEIVER_ELSEWHERE)
		check_receiver(journey, byte);
	expect_part(journey, NETOBS_JOURNEY_QDISC, byte->qdisc_ns);
	expect_part(journey, NETOBS_JOURNEY_DEVICE, byte->device_ns);
	expect_part(journey, NETOBS_JOURNEY_FORWARD, byte->forward_ns);
	assert_int_equal(journey->n_attempts, byte->n_attempts);
	if (model->end == RECEIVER_ELSEWHERE) {
		assert_int_equal(journey->end_ns - START_NS, byte->acked_ns);
		expect_part(journey, NETOBS_JOURNEY_NETWORK,
			    byte->acked_ns - byte->transmit_ns);
	}
	/* Of earlier attempts: that of a later one may come before the end. */
	assert_true(journey->n_drops <= byte->n_drops);
	if (journey->acked_ns)
		assert_int_equal(journey->acked_ns - START_NS, byte->acked_ns);
}

static void check_journey(struct netobs_journey *journey, void *ctx)
{
	struct world *world = ctx;
	struct model *model = &world->models[journey->connection % AT_ONCE];
	const uint32_t from = (uint32_t)(journey->offset - model->base);

	assert_int_equal(journey->connection, model->id);
	assert_int_equal(journey->direction, model->id % 2);
	assert_true(journey->offset >= model->base);
	assert_true(from + journey->length <= model->n_bytes);
	check_sum(journey);
	if (!world->is_lossy) {
		assert_int_equal(journey->unknown_ns, 0);
		assert_int_equal(journey->unknown_parts, 0);
	}
	for (uint32_t i = from; i < from + journey->length; i++) {
		assert_int_equal(model->bytes[i].n_journeys++, 0);
		if (!world->is_lossy)
			check_byte(journey, model, &model->bytes[i]);
	}
}

/* Without holes; bytes of which all events are missing may be left out at both ends. */
static void check_model(const struct world *world, struct model *model)
{
	uint32_t from = 0, to = model->n_bytes;

	while (world->is_lossy && from < to && !model->bytes[from].n_journeys)
		from++;
	while (world->is_lossy && to > from && !model->bytes[to - 1].n_journeys)
		to--;
	for (; from < to; from++)
		assert_int_equal(model->bytes[from].n_journeys, 1);
	free(model->bytes);
}

static void run_connections(struct world *world, uint64_t id)
{
	world->n = 0;
	for (uint64_t i = 0; i < AT_ONCE; i++)
		simulate(world, &world->models[i], id + i);
	sort_by_arrival(world->events, world->n);
	assert_int_equal(journeys_new(check_journey, world, &world->journeys), 0);
	for (uint32_t e = 0; e < world->n; e++)
		if (is_seen(world, &world->events[e]))
			journeys_add(world->journeys, &world->events[e].event);
	journeys_advance(world->journeys, START_NS + 3600 * NSEC_PER_SEC);
	for (uint64_t i = 0; world->is_lossy && i < AT_ONCE; i++)
		journeys_end(world->journeys, one_in(4) ? 0 : id + i);
	for (int i = 0; i < AT_ONCE; i++)
		check_model(world, &world->models[i]);
	journeys_free(world->journeys);
}

TEST(each_byte_has_the_journey_that_it_made)
{
	struct world world = { 0 };

	for (uint64_t id = AT_ONCE; id < CONNECTIONS; id += AT_ONCE)
		run_connections(&world, id);
	free(world.events);
}

TEST(events_that_are_missing_make_no_holes)
{
	struct world world = { .is_lossy = true };

	for (uint64_t id = AT_ONCE; id < CONNECTIONS; id += AT_ONCE)
		run_connections(&world, id);
	free(world.events);
}
