// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Round-trip times of echo requests, against a model of two ends of which each sends requests to
 * the other: random delays, loss, order and copies. A sample is the time from the request that its
 * reply answers, or there is none; and none is missing where nothing is ambiguous.
 */
#include "lib_seed.h"
#include "lib_test.h"

#include "bpf/rtt/echoes.h"

static __u64 read_exact_clock(const struct segment *segment)
{
	return segment->now;
}

#define US 1000ULL
#define MS (1000 * US)
#define S (1000 * MS)

enum { CONVERSATIONS = 4000, REQUESTS_MAX = 80, EVENTS_MAX = 8 * REQUESTS_MAX };

/* A packet that passes. */
struct event {
	uint64_t at;
	uint64_t requested_at; /* of a reply: when the request that it answers passed */
	uint32_t number;
	uint32_t order; /* as it was made */
	int dir;
	enum echo_kind kind;
};

struct model {
	struct event events[EVENTS_MAX];
	uint32_t n;
	uint32_t requests[2];
	double loss, copies;
	uint64_t interval, round_trip, jitter;
	bool is_constant; /* all requests of an end have one number */
	struct conn_head head;
	struct conn_rates rates;
	struct conn_body body;
};

static double chance(void)
{
	return drand48();
}

static uint64_t between(uint64_t low, uint64_t high)
{
	return low + (uint64_t)(chance() * (double)(high - low));
}

static void add(struct model *m, int dir, enum echo_kind kind, uint32_t number,
		uint64_t at, uint64_t requested_at)
{
	assert_true(m->n < EVENTS_MAX);
	m->events[m->n] = (struct event){ .at = at,
					  .requested_at = requested_at,
					  .number = number,
					  .order = m->n,
					  .dir = dir,
					  .kind = kind };
	m->n++;
}

/* One that passes at @at, and what answers it. */
static void send(struct model *m, int dir, uint32_t number, uint64_t at)
{
	uint64_t replied_at = at + m->round_trip + between(0, m->jitter);

	add(m, dir, ECHO_REQUEST, number, at, 0);
	if (chance() < m->loss)
		return;
	add(m, !dir, ECHO_REPLY, number, replied_at, at);
	if (chance() < m->copies)
		add(m, !dir, ECHO_REPLY, number, replied_at + between(0, S), at);
}

static int compare_events(const void *a, const void *b)
{
	const struct event *one = a, *other = b;

	if (one->at != other->at)
		return one->at < other->at ? -1 : 1;
	return one->order < other->order ? -1 : 1;
}

static void draw(struct model *m)
{
	memset(m, 0, sizeof(*m));
	m->loss = chance() < 0.5 ? 0 : chance() * 0.5;
	m->copies = chance() < 0.5 ? 0 : chance() * 0.5;
	m->interval = between(100 * US, chance() < 0.3 ? 20 * S : 200 * MS);
	m->round_trip = between(10 * US, chance() < 0.3 ? 4 * S : 100 * MS);
	m->jitter = chance() < 0.5 ? 0 :
				     between(0, 2 * m->interval + m->round_trip);
	if (m->jitter > S)
		m->jitter = S;
	m->is_constant = chance() < 0.1;
	for (int dir = 0; dir < 2; dir++) {
		uint64_t at = 1000 * S + between(0, m->interval);
		uint32_t number = (uint32_t)mrand48();

		m->requests[dir] = (uint32_t)between(dir, REQUESTS_MAX);
		for (uint32_t i = 0; i < m->requests[dir]; i++) {
			send(m, dir, number, at);
			if (chance() < m->copies) /* with nothing in between */
				send(m, dir, number, at + 1);
			at += m->interval + between(2, m->interval / 4 + 3);
			if (!m->is_constant) /* a few processes, of which each counts */
				number = (number & 0xffff0000) +
					 ((uint32_t)between(0, 3) << 16) +
					 ((number + 1) & 0xffff);
		}
	}
	qsort(m->events, m->n, sizeof(*m->events), compare_events);
}

static void observe(struct model *m, const struct event *event)
{
	const struct connection conn = { &m->head, &m->rates, &m->body };
	uint32_t before[2] = { m->body.stats[0].rtt.n, m->body.stats[1].rtt.n };
	struct segment segment = {
		.seq = event->number,
		.now = event->at,
		.tick = event->at >> CONN_TICK_SHIFT,
		.may_time = 1,
	};

	echo_observe(&conn, event->dir, &segment, event->kind);
	for (int dir = 0; dir < 2; dir++) {
		const struct conn_latency *rtt = &m->body.stats[dir].rtt;

		if (rtt->n == before[dir])
			continue;
		assert_int_equal(rtt->n, before[dir] + 1);
		assert_int_equal(event->kind, ECHO_REPLY);
		assert_int_equal(dir, !event->dir);
		/* Two bits of a time are for marks. */
		assert_in_range(
			rtt->last, latency_of(event->at - event->requested_at),
			latency_of(event->at - event->requested_at + ECHO_MARKS));
	}
}

/* Nothing is lost or copied, and there is room for all that are awaited. */
static bool is_plain(const struct model *m)
{
	return m->loss == 0 && m->copies == 0 && !m->is_constant &&
	       m->round_trip + m->jitter < (CONN_TIMERS - 1) * m->interval;
}

TEST(samples_are_of_the_request_that_is_answered)
{
	static struct model m;
	uint64_t samples = 0, requests = 0, plain = 0;

	srand48(test_seed());
	for (int i = 0; i < CONVERSATIONS; i++) {
		draw(&m);
		for (uint32_t e = 0; e < m.n; e++)
			observe(&m, &m.events[e]);
		for (int dir = 0; dir < 2; dir++) {
			if (is_plain(&m))
				assert_int_equal(m.body.stats[dir].rtt.n,
						 m.requests[dir]);
			samples += m.body.stats[dir].rtt.n;
			requests += m.requests[dir];
		}
		plain += is_plain(&m);
	}
	assert_true(samples > requests / 10);
	assert_true(plain > CONVERSATIONS / 20);
}

TEST(flows_of_echoes_are_known_by_protocol_and_type)
{
	static const struct {
		uint8_t proto, flags;
		uint16_t type_code;
		enum echo_kind kind;
	} cases[] = {
		{ 1, 0, 8 << 8, ECHO_REQUEST },
		{ 1, 0, 0, ECHO_REPLY },
		{ 1, 0, 8 << 8 | 1, ECHO_NONE },
		{ 1, 0, 3 << 8, ECHO_NONE },
		{ 1, 0, 128 << 8, ECHO_NONE },
		{ 1, KEY_IPV6, 8 << 8, ECHO_NONE },
		{ 1, KEY_IPV6, 0, ECHO_NONE },
		{ 58, KEY_IPV6, 128 << 8, ECHO_REQUEST },
		{ 58, KEY_IPV6, 129 << 8, ECHO_REPLY },
		{ 58, KEY_IPV6, 8 << 8, ECHO_NONE },
		{ 58, 0, 128 << 8, ECHO_NONE },
		{ 6, 0, 8 << 8, ECHO_NONE },
		{ 17, 0, 0, ECHO_NONE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct flow_key key = { .proto = cases[i].proto,
					      .flags = cases[i].flags,
					      .dst_port = cases[i].type_code };

		assert_int_equal(echo_kind(&key), cases[i].kind);
	}
}
