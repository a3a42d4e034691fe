/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A model of TCP: two ends that lose, delay, reorder, repeat and merge segments, a point
 * between them that all segments pass, and queues behind that point.
 */
#ifndef TESTS_RTT_TCP_MODEL_H
#define TESTS_RTT_TCP_MODEL_H

#include "lib_test.h"

#include "bpf/rtt/leave.h"
#include "bpf/rtt/observe.h"

static __u64 read_exact_clock(const struct segment *segment)
{
	return segment->now;
}

/* ---- The model ------------------------------------------------------------------- */

enum {
	BYTES_MAX = 1 << 18, /* of each direction */
	LOG_MAX = 1 << 14,
	EVENTS_MAX = 1 << 12,
	RANGES_MAX = 256,
	PSH = 8,
	ACK = 16,
	SYN = 2,
	FIN = 1,
};

#define US 1000ULL
#define MS (1000 * US)
#define RTO_MAX (120 * 1000 * MS)

enum app { APP_PING_PONG, APP_BULK, APP_DUPLEX, APPS };

/* Offsets count from the SYN, which is byte 0. */
struct packet_seen {
	int dir;
	uint32_t off, len, ack; /* offsets */
	uint32_t mss;
	uint16_t window;
	uint8_t flags;
	bool has_ack;
	bool is_keepalive;
	uint32_t tsval, tsecr;
	int echoes; /* 1 + which packet of the log had `tsecr` */
	uint64_t at; /* when it passed the point, then when it left the queue behind it */
};

enum event_kind {
	EVENT_POINT,
	EVENT_LEAVE, /* the queue behind the point */
	EVENT_ARRIVE,
	EVENT_RTO,
	EVENT_DELACK,
	EVENT_APP
};

struct event {
	uint64_t at;
	enum event_kind kind;
	int end;		   /* the timers' */
	uint32_t number;	   /* of the timer that is not out of date */
	struct packet_seen packet; /* of EVENT_POINT, EVENT_LEAVE, EVENT_ARRIVE */
	int index;		   /* in the log, of what leaves or arrives */
	uint64_t order;		   /* of those at the same time */
};

struct range {
	uint32_t start, end;
};

struct end {
	uint32_t isn;
	uint32_t una, next, limit; /* limit: the application has given so much */
	uint32_t again, recover; /* after a timeout: sent again up to, and to be */
	uint32_t slow_window;	 /* how much of it at a time */
	uint32_t received;	 /* all below */
	bool has_received;
	struct range held[RANGES_MAX]; /* out of order */
	int n_held;
	uint32_t rto_number, delack_number;
	uint64_t rto;
	int in_order; /* segments that were not acknowledged yet */
	int duplicates;
	uint32_t wants;	 /* of the other's data, before it answers */
	uint64_t answer; /* bytes of an answer */
	bool is_done, has_sent_fin;
	uint32_t clock; /* of its timestamps */
	uint32_t ts_recent, last_ack_sent;
	int recent_index; /* 1 + which packet of the log brought ts_recent */
	uint16_t window;
	int index_of_byte[BYTES_MAX]; /* 1 + which packet of the log brought it first */
};

struct model {
	/* What differs between conversations. */
	enum app app;
	uint64_t delay[2]; /* from an end to the point, and back */
	uint64_t jitter;
	uint64_t queue[2],
		left_at[2]; /* the longest wait, and when the newest leaves */
	double loss_before, loss_behind;
	uint32_t mss, gso, cwnd;
	bool starts_slowly; /* a timeout sends all again, a window at a time */
	bool is_hasty;	    /* timeouts come before acknowledgments can */
	uint64_t think[2], delack;
	uint32_t exchanges;
	uint32_t skip; /* packets that pass before we look */
	bool has_stamps;
	uint64_t stamp_tick; /* of the ends' clocks */
	uint8_t scale;	     /* of the windows, if the SYNs have one */

	uint64_t now;
	struct end ends[2];
	struct event events[EVENTS_MAX];
	size_t n_events;
	uint64_t order;
	struct packet_seen log[LOG_MAX]; /* what passed the point */
	int n_log;
	int first; /* the first that we saw */

	struct conn_head head;
	struct conn_rates rates;
	struct conn_body body;
	uint8_t seen[2][BYTES_MAX]; /* bytes that passed the point, also before we looked */
	uint32_t highest[2];
	uint64_t retransmitted_bytes[2], out_of_order[2];
	uint32_t samples, echoes, turns, refused;
	uint32_t answers, answers_known, answers_compared; /* of the server */
};

static double chance(void)
{
	return drand48();
}

static uint64_t between(uint64_t low, uint64_t high)
{
	return low + (uint64_t)(drand48() * (double)(high - low + 1));
}

static struct event *add_event(struct model *m, uint64_t at, enum event_kind kind)
{
	struct event *event;

	assert_in_range(m->n_events, 0, EVENTS_MAX - 1);
	event = &m->events[m->n_events++];
	*event = (struct event){ .at = at, .kind = kind, .order = m->order++ };
	return event;
}

static void start_timer(struct model *m, int end, enum event_kind kind,
			uint64_t in)
{
	struct end *e = &m->ends[end];
	struct event *event = add_event(m, m->now + in, kind);

	event->end = end;
	event->number = kind == EVENT_RTO ? ++e->rto_number : ++e->delack_number;
}

static uint64_t way(const struct model *m, int end)
{
	return m->delay[end] + (m->jitter ? between(0, m->jitter) : 0);
}

static uint32_t stamp_of(const struct model *m, int end)
{
	return m->ends[end].clock + (uint32_t)(m->now / m->stamp_tick);
}

/* Send, from the end's side: loss and delay up to the point. */
static void transmit(struct model *m, int end, uint32_t off, uint32_t len,
		     uint8_t flags)
{
	struct end *e = &m->ends[end];
	struct event *event;

	e->delack_number++;
	e->in_order = 0;
	if (chance() < m->loss_before)
		return;
	event = add_event(m, m->now + way(m, end), EVENT_POINT);
	event->packet = (struct packet_seen){
		.dir = end,
		.off = off,
		.len = len,
		.ack = e->received,
		.has_ack = e->has_received,
		.mss = len > m->mss ? m->mss : 0,
		.window = e->window,
		.flags = flags | (e->has_received ? ACK : 0),
		.tsval = stamp_of(m, end),
		.tsecr = e->ts_recent,
		.echoes = e->recent_index,
	};
	e->last_ack_sent = e->received;
}

static void send_ack(struct model *m, int end)
{
	transmit(m, end, m->ends[end].next, 0, 0);
}

/* RFC 5681, 3.1: after a timeout, without SACK. */
static void send_again(struct model *m, int end)
{
	struct end *e = &m->ends[end];

	if (e->again < e->una)
		e->again = e->una;
	while (e->again < e->recover && e->again - e->una < e->slow_window) {
		uint32_t len = min_u64(e->recover - e->again,
				       (uint64_t)m->mss * between(1, m->gso));

		transmit(m, end, e->again, len, 0);
		e->again += len;
	}
}

static void pump(struct model *m, int end)
{
	struct end *e = &m->ends[end];
	uint32_t before = e->next;

	if (!e->una) /* the handshake is not over */
		return;
	if (e->again < e->recover)
		return;
	while (e->next < e->limit && e->next - e->una < m->cwnd * m->mss) {
		uint32_t len = min_u64(e->limit - e->next,
				       (uint64_t)m->mss * between(1, m->gso));
		bool is_last = e->next + len == e->limit;

		transmit(m, end, e->next, len,
			 is_last || chance() < 0.1 ? PSH : 0);
		e->next += len;
	}
	if (e->is_done && !e->has_sent_fin && e->next == e->limit) {
		transmit(m, end, e->next, 0, FIN);
		e->has_sent_fin = true;
		e->next++;
	}
	if (before != e->next && before == e->una)
		start_timer(m, end, EVENT_RTO, e->rto);
}

/* Retransmit the first outstanding segment. */
static void retransmit(struct model *m, int end)
{
	struct end *e = &m->ends[end];
	uint32_t len;

	if (!e->una) {
		transmit(m, end, 0, 0, SYN);
		return;
	}
	len = min_u64(min_u64(e->limit, e->next) - e->una,
		      (uint64_t)m->mss * between(1, 2));
	if (!len && e->has_sent_fin)
		transmit(m, end, e->una, 0, FIN);
	else if (len)
		transmit(m, end, e->una, len, PSH);
}

/* ---- What arrives ---------------------------------------------------------------- */

static void hold(struct end *e, uint32_t start, uint32_t stop, int index)
{
	bool grew = true;

	for (uint32_t i = start; i < stop; i++) {
		if (!e->index_of_byte[i])
			e->index_of_byte[i] = 1 + index;
	}
	assert_in_range(e->n_held, 0, RANGES_MAX - 1);
	e->held[e->n_held++] = (struct range){ start, stop };
	while (grew) {
		grew = false;
		for (int i = 0; i < e->n_held; i++) {
			if (e->held[i].start > e->received)
				continue;
			if (e->held[i].end > e->received)
				e->received = e->held[i].end;
			e->held[i] = e->held[--e->n_held];
			grew = true;
			break;
		}
	}
}

/* The application reads, and may answer. */
static void on_data(struct model *m, int end)
{
	struct end *e = &m->ends[end];

	if (m->app == APP_PING_PONG && e->wants && e->received >= e->wants) {
		struct event *event =
			add_event(m, m->now + m->think[end], EVENT_APP);

		event->end = end;
		e->wants = 0;
	}
}

static void arrive_data(struct model *m, int end, const struct event *event)
{
	const struct packet_seen *p = &event->packet;
	struct end *e = &m->ends[end];
	uint32_t span = p->len + !!(p->flags & (SYN | FIN));
	uint32_t before = e->received;

	if (p->off + span > e->received || p->off > e->received)
		hold(e, p->off, p->off + span, event->index);
	on_data(m, end);
	if (p->flags & (SYN | FIN) || e->n_held || before == e->received ||
	    ++e->in_order >= 2) {
		if (p->flags & SYN && !e->una) /* also if both ends open */
			transmit(m, end, 0, 0, SYN);
		else
			send_ack(m, end);
		return;
	}
	start_timer(m, end, EVENT_DELACK, m->delack);
}

static void arrive_ack(struct model *m, int end, const struct packet_seen *p)
{
	struct end *e = &m->ends[end];

	if (p->ack > e->una) {
		e->una = p->ack;
		e->duplicates = 0;
		e->rto_number++;
		e->slow_window += m->mss;
		if (e->una < e->next)
			start_timer(m, end, EVENT_RTO, e->rto);
		send_again(m, end);
		pump(m, end);
	} else if (p->ack == e->una && !p->len && !(p->flags & (SYN | FIN)) &&
		   e->una < e->next && ++e->duplicates == 3) {
		retransmit(m, end);
	}
}

/* RFC 7323, 4.3 and 5.3. False: it is older than received data (PAWS). */
static bool take_stamp(struct end *e, const struct event *event)
{
	const struct packet_seen *p = &event->packet;

	if (e->recent_index && (int32_t)(p->tsval - e->ts_recent) < 0)
		return false;
	if (p->off <= e->last_ack_sent) {
		e->ts_recent = p->tsval;
		e->recent_index = 1 + event->index;
	}
	return true;
}

static void arrive(struct model *m, const struct event *event)
{
	const struct packet_seen *p = &event->packet;
	int end = !p->dir;

	if (!m->ends[end].has_received && !(p->flags & SYN))
		return; /* RFC 9293, 3.10.7.3 */
	if (!take_stamp(&m->ends[end], event)) {
		send_ack(m, end);
		return;
	}
	if (p->is_keepalive) {
		send_ack(m, end);
		return;
	}
	if (p->flags & SYN && !m->ends[end].has_received) {
		m->ends[end].has_received = true;
		hold(&m->ends[end], 0, 1, event->index);
	}
	if (p->has_ack)
		arrive_ack(m, end, p);
	if (p->len || p->flags & (SYN | FIN))
		arrive_data(m, end, event);
}

/* ---- The point ------------------------------------------------------------------- */

static inline uint32_t end_of(const struct packet_seen *p)
{
	return p->off + p->len + !!(p->flags & (SYN | FIN));
}

/* The includer's: a segment that passes, the newest one of the log, and whether we look. */
static void look(struct model *m, const struct packet_seen *p, bool is_observed);

/* The includer's: a packet leaves the queue behind the point. */
static void leave_queue(struct model *m, const struct packet_seen *p);

/* Segments of a buffer go on each for itself. */
static void go_on(struct model *m, const struct packet_seen *p, int index)
{
	uint32_t done = 0;

	do {
		uint32_t len = p->mss ? min_u64(p->mss, p->len - done) : p->len;

		if (chance() >= m->loss_behind) {
			struct event *event = add_event(
				m, m->now + way(m, !p->dir), EVENT_ARRIVE);

			event->packet = *p;
			event->packet.off += done;
			event->packet.len = len;
			event->index = index;
		}
		done += len;
	} while (done < p->len);
}

static void wait_in_queue(struct model *m, const struct packet_seen *p, int index)
{
	uint64_t *at = &m->left_at[p->dir];
	struct event *event;

	*at = max_u64(*at, m->now + between(0, m->queue[p->dir]));
	event = add_event(m, *at, EVENT_LEAVE);
	event->packet = *p;
	event->index = index;
}

static void pass(struct model *m, struct packet_seen packet)
{
	int index = m->n_log;

	assert_in_range(index, 0, LOG_MAX - 1);
	packet.at = m->now;
	m->log[m->n_log++] = packet;
	if (index == m->first && m->first && packet.flags & SYN)
		m->first++; /* a SYN that was sent again looks like the first one */
	look(m, &packet, index >= m->first);
	if (m->queue[packet.dir])
		wait_in_queue(m, &packet, index);
	else
		go_on(m, &packet, index);
}

/* ---- Conversations ---------------------------------------------------------------- */

static void on_app(struct model *m, int end)
{
	struct end *e = &m->ends[end];

	if (end == 0 && !m->exchanges) {
		e->is_done = true;
		m->ends[1].is_done = true;
		pump(m, 0);
		return;
	}
	if (end == 0)
		m->exchanges--;
	e->limit += between(2, m->mss * 5);
	m->ends[!end].wants = e->limit;
	pump(m, end);
}

static void on_timeout(struct model *m, int end)
{
	struct end *e = &m->ends[end];

	if (!m->starts_slowly || !e->una || e->una >= e->limit) {
		retransmit(m, end);
		return;
	}
	e->again = e->una;
	e->recover = min_u64(e->next, e->limit);
	e->slow_window = m->mss;
	send_again(m, end);
}

static void on_event(struct model *m, const struct event *event)
{
	struct end *e = &m->ends[event->end];

	m->now = event->at;
	switch (event->kind) {
	case EVENT_POINT:
		pass(m, event->packet);
		break;
	case EVENT_LEAVE:
		m->log[event->index].at = m->now;
		leave_queue(m, &event->packet);
		go_on(m, &event->packet, event->index);
		break;
	case EVENT_ARRIVE:
		arrive(m, event);
		break;
	case EVENT_RTO:
		if (event->number == e->rto_number && e->una < e->next) {
			on_timeout(m, event->end);
			e->rto = min_u64(e->rto * 2, RTO_MAX);
			start_timer(m, event->end, EVENT_RTO, e->rto);
		}
		break;
	case EVENT_DELACK:
		if (event->number == e->delack_number)
			send_ack(m, event->end);
		break;
	case EVENT_APP:
		on_app(m, event->end);
		break;
	}
}

static struct event take_event(struct model *m)
{
	size_t first = 0;
	struct event event;

	for (size_t i = 1; i < m->n_events; i++) {
		const struct event *a = &m->events[i], *b = &m->events[first];

		if (a->at < b->at || (a->at == b->at && a->order < b->order))
			first = i;
	}
	event = m->events[first];
	m->events[first] = m->events[--m->n_events];
	return event;
}

static void keep_alive(struct model *m, int end)
{
	struct end *e = &m->ends[end];
	struct event *event;

	if (e->una != e->next || !e->una)
		return;
	event = add_event(m, m->now + way(m, end), EVENT_POINT);
	event->packet = (struct packet_seen){
		.dir = end,
		.off = e->next - 1,
		.len = between(0, 1),
		.ack = e->received,
		.has_ack = true,
		.window = e->window,
		.flags = ACK,
		.is_keepalive = true,
		.tsval = stamp_of(m, end),
		.tsecr = e->ts_recent,
		.echoes = e->recent_index,
	};
}

static void draw_network(struct model *m)
{
	bool is_lossy = chance() < 0.6;

	for (int i = 0; i < 2; i++) {
		m->delay[i] = chance() < 0.5 ? between(10 * US, 200 * US) :
					       between(200 * US, 50 * MS);
		m->queue[i] = chance() < 0.3 ? between(1, 50 * MS) : 0;
		m->think[i] = chance() < 0.2 ? 0 :
			      chance() < 0.5 ? between(0, 300 * US) :
			      chance() < 0.8 ? between(1 * MS, 60 * MS) :
					       between(60 * MS, 400 * MS);
	}
	m->jitter = chance() < 0.3 ? between(1, m->delay[0]) : 0;
	m->loss_before = is_lossy && chance() < 0.5 ? chance() * 0.1 : 0;
	m->loss_behind = is_lossy ? chance() * 0.1 : 0;
	m->delack = between(1 * MS, 40 * MS);
}

static void draw(struct model *m)
{
	memset(m, 0, sizeof(*m));
	draw_network(m);
	m->app = lrand48() % APPS;
	m->mss = between(100, 1448);
	m->gso = chance() < 0.5 ? 1 : between(2, 10);
	m->cwnd = between(2, 20);
	m->starts_slowly = chance() < 0.5;
	m->is_hasty = chance() < 0.2;
	m->exchanges = between(1, 20);
	m->has_stamps = chance() < 0.7;
	m->stamp_tick = chance() < 0.6 ? 1 * MS :
			chance() < 0.5 ? 10 * MS :
					 100 * US;
	if (m->jitter >= STAMPS_OVERTAKEN * m->stamp_tick)
		m->stamp_tick = 1 * MS;
	m->first = chance() < 0.3 ? (int)between(1, 40) : 0;
	for (int i = 0; i < 2; i++) {
		struct end *e = &m->ends[i];

		e->isn = chance() < 0.5 ? (uint32_t)mrand48() :
					  0U - (uint32_t)between(0, 5000);
		e->rto = 4 * (m->delay[0] + m->delay[1] + m->jitter +
			      m->queue[0] + m->queue[1]) +
			 m->delack + 1 * MS;
		if (m->is_hasty)
			e->rto = e->rto / 4 * chance() + 100 * US;
		e->window = between(1, 65535);
		e->clock = (uint32_t)mrand48();
		e->limit = 1;
	}
	m->now = 1000 * MS + between(0, 1000 * MS);
}

static void start(struct model *m)
{
	struct end *a = &m->ends[0], *b = &m->ends[1];

	transmit(m, 0, 0, 0, SYN);
	a->next = b->next = 1;
	start_timer(m, 0, EVENT_RTO, a->rto);
	start_timer(m, 1, EVENT_RTO, b->rto * 2);
	if (m->app == APP_PING_PONG) {
		add_event(m, m->now + 3 * a->rto, EVENT_APP)->end = 0;
	} else {
		a->limit += between(2, 40000);
		a->is_done = chance() < 0.5;
		if (m->app == APP_DUPLEX)
			b->limit += between(2, 40000);
	}
}

static void converse(struct model *m)
{
	start(m);
	while (m->n_events && m->n_events < EVENTS_MAX - 100 &&
	       m->n_log < LOG_MAX - 100 && m->ends[0].limit < BYTES_MAX - 10000 &&
	       m->ends[1].limit < BYTES_MAX - 10000) {
		struct event event = take_event(m);

		on_event(m, &event);
		if (chance() < 0.01)
			keep_alive(m, lrand48() & 1);
	}
}

#endif
