// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Somebody who is not on the path sends segments with the addresses of a connection, and any flags and
 * numbers. Two entries see the same conversation of the model; one of them sees those segments as well,
 * of which the ends would accept none. Both are the same after each segment. NETOBS_TEST_SEED repeats a
 * run.
 */
#include "lib_seed.h"
#include "tcp_model.h"

enum { CONVERSATIONS = 400, FORGED_MAX = 3, RST = 4, WINDOW = 65535 };

struct entry {
	struct conn_head head;
	struct conn_rates rates;
	struct conn_body body;
};

static struct entry forged_entry;
static uint64_t n_forged, n_accepted;
static bool is_blind;		  /* any numbers, and no entry is changed */
static unsigned short chances[3]; /* of what is forged: the conversation has its own */

static uint32_t draw_below(uint32_t n)
{
	return (uint32_t)(erand48(chances) * n);
}

static struct connection connection_of(struct entry *entry)
{
	return (struct connection){ &entry->head, &entry->rates, &entry->body };
}

static void restart_entry(struct entry *entry)
{
	memset(entry, 0, sizeof(*entry));
	entry->head.talker = CONN_NEITHER;
	entry->head.opener = CONN_NEITHER;
}

/* As the programs do. False: it was refused. */
static bool show(struct entry *entry, int dir, struct segment *segment)
{
	const struct connection conn = connection_of(entry);

	switch (segment_judge(&conn, dir, segment)) {
	case SEGMENT_REFUSED:
		refuse(&conn, dir, segment);
		return false;
	case SEGMENT_ANOTHER:
		restart_entry(entry);
		break;
	case SEGMENT_ITS:
		break;
	}
	connection_observe(&conn, dir, segment);
	return true;
}

static struct segment segment_at(const struct model *m)
{
	return (struct segment){
		.now = m->now,
		.tick = m->now >> CONN_TICK_SHIFT,
		.may_time = 1,
		.window = WINDOW,
	};
}

/* ---- What is forged ---------------------------------------------------------------- */

/* Near @offset, or anywhere. */
static uint32_t guess(uint32_t isn, uint32_t offset, uint32_t window)
{
	switch (is_blind ? 0 : draw_below(4)) {
	case 0:
		return (uint32_t)jrand48(chances);
	case 1:
		return isn + offset + window + draw_below(4 * window);
	case 2:
		return isn + offset - window - draw_below(4 * window);
	}
	return isn + offset + draw_below(3) - 1;
}

static struct segment forge(const struct model *m, int dir)
{
	const struct end *from = &m->ends[dir], *to = &m->ends[!dir];
	struct segment segment = segment_at(m);
	const uint32_t window = (uint32_t)WINDOW << m->scale;

	segment.seq = guess(from->isn,
			    draw_below(2) ? from->next : to->received, window);
	segment.ack = guess(to->isn, draw_below(2) ? to->next : to->una, window);
	segment.flags = draw_below(2) ? ACK : draw_below(0x100);
	segment.len = draw_below(2) ? draw_below(3000) : 0;
	segment.window = draw_below(0x10000);
	segment.scale = draw_below(SCALE_0 + SCALE_BITS_MAX + 1);
	return segment;
}

/* ---- What the ends accept (RFC 9293, 3.10.7; RFC 5961) ------------------------------- */

static bool is_between(uint32_t number, uint32_t low, uint32_t high)
{
	return number - low <= high - low;
}

/*
 * Whether the receiver would accept it before or after what is on its way, or its sender may have sent
 * it, and sends it again.
 */
static bool is_plausible(const struct model *m, int dir,
			 const struct segment *segment)
{
	const struct end *from = &m->ends[dir], *to = &m->ends[!dir];
	const uint32_t window = (uint32_t)WINDOW << m->scale;
	const uint32_t sent = to->isn + to->next, held = from->isn + to->received;

	if (segment->flags & RST && !(from->una && to->una))
		return true;
	if (segment->flags & RST)
		return is_between(segment->seq, from->isn + from->una,
				  from->isn + from->next);
	if (segment->flags & SYN)
		return !(from->una && to->una) || segment->seq == from->isn;
	if (!(segment->flags & ACK))
		return false;
	if (!from->has_received) /* the answer may have taken another way */
		return is_between(segment->seq, from->isn - window,
				  from->isn + window);
	if (!is_between(segment->ack, to->isn + to->una - window, sent))
		return false;
	if (!(from->una && to->una)) /* as if the SYN were answered */
		return true;
	return is_between(segment->seq, from->isn + from->una - window,
			  held + window);
}

/* A SYN may begin another connection unless this one is open. */
static bool is_harmless(const struct model *m, int dir,
			const struct segment *segment)
{
	const struct connection conn = connection_of(&forged_entry);

	if (conn.body->stats[dir].refused_run > REFUSED_RUN - FORGED_MAX)
		return false; /* one more would be believed */
	if (segment->flags & SYN && !(segment->flags & RST) &&
	    conn_class(&conn) != CONN_OPEN)
		return false;
	if (segment->flags & SYN && segment->flags & ACK &&
	    segment->ack == forged_entry.body.stats[!dir].refused_end)
		return false; /* it answers a SYN that was forged before */
	return !is_plausible(m, dir, segment);
}

static void send_forged(const struct model *m)
{
	const struct connection conn = connection_of(&forged_entry);
	int dir = (int)draw_below(2);
	struct segment segment = forge(m, dir);

	if (!is_harmless(m, dir, &segment))
		return;
	for (uint32_t n = 1 + draw_below(FORGED_MAX); n; n--) {
		n_forged++;
		if (is_blind)
			n_accepted += segment_judge(&conn, dir, &segment) !=
				      SEGMENT_REFUSED;
		else
			n_accepted += show(&forged_entry, dir, &segment);
	}
}

/* ---- Comparison ---------------------------------------------------------------------- */

/* All but what is noted of refused segments. */
static void compare(const struct model *m)
{
	struct conn_body body = forged_entry.body;

	for (int dir = 0; dir < 2; dir++) {
		const struct conn_stats *stats = &m->body.stats[dir];

		body.stats[dir].refused_end = stats->refused_end;
		body.stats[dir].refused_run = stats->refused_run;
		body.stats[dir].refused_mark = stats->refused_mark;
	}
	assert_memory_equal(&forged_entry.head, &m->head, sizeof(m->head));
	assert_memory_equal(&forged_entry.rates, &m->rates, sizeof(m->rates));
	assert_memory_equal(&body, &m->body, sizeof(body));
}

/* Times do not matter here. */
static void leave_queue(struct model *m, const struct packet_seen *p)
{
	(void)m;
	(void)p;
}

static void look(struct model *m, const struct packet_seen *p, bool is_observed)
{
	struct segment segment = segment_at(m), same;
	struct entry entry = { m->head, m->rates, m->body };

	if (!is_observed)
		return;
	segment.seq = m->ends[p->dir].isn + p->off;
	segment.ack = p->has_ack ? m->ends[!p->dir].isn + p->ack : 0;
	segment.len = p->len;
	segment.mss = p->mss;
	segment.flags = p->flags;
	if (p->flags & SYN)
		segment.scale = SCALE_0 + m->scale;
	if (m->has_stamps && stamps_are_needed(&m->head, p->dir, &segment)) {
		segment.has_stamps = true;
		segment.tsval = p->tsval;
		segment.tsecr = p->tsecr;
	}
	same = segment;
	if (!show(&entry, p->dir, &segment))
		m->refused++;
	m->head = entry.head;
	m->rates = entry.rates;
	m->body = entry.body;
	show(&forged_entry, p->dir, &same);
	compare(m);
	send_forged(m);
	if (!is_blind)
		compare(m);
}

/* ---- Tests --------------------------------------------------------------------------- */

static void converse_with_forger(struct model *m)
{
	struct entry entry;

	for (int i = 0; i < 2; i++)
		m->ends[i].window = WINDOW;
	m->scale = (uint8_t)draw_below(5);
	restart_entry(&entry);
	restart_entry(&forged_entry);
	m->head = entry.head;
	m->rates = entry.rates;
	m->body = entry.body;
	converse(m);
}

static void begin(unsigned int seed, bool blind)
{
	srand48(seed);
	chances[0] = (unsigned short)seed;
	chances[1] = (unsigned short)(seed >> 16);
	is_blind = blind;
	n_forged = n_accepted = 0;
}

TEST(what_the_ends_refuse_changes_nothing)
{
	static struct model m;
	uint64_t refused = 0, packets = 0;

	begin(test_seed(), false);
	for (int i = 0; i < CONVERSATIONS; i++) {
		draw(&m);
		m.first = 0;
		converse_with_forger(&m);
		refused += m.refused;
		packets += m.n_log;
	}
	assert_int_equal(n_accepted, 0);
	assert_true(n_forged > packets / 2);
	assert_true(refused < packets / 1000);
}

/* Without the handshake the scale of windows is unknown, and the range to guess in is larger. */
TEST(few_guesses_are_accepted_in_a_connection_found_open)
{
	static struct model m;

	begin(test_seed(), true);
	for (int i = 0; i < CONVERSATIONS; i++) {
		draw(&m);
		m.first = (int)draw_below(20) + 4;
		converse_with_forger(&m);
	}
	assert_true(n_accepted < n_forged / 1000);
}
