// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * The programs' code sees what passes the point of a model of TCP. What it says is compared with
 * what the model knows: who received which transmission of a byte, and what passed the point
 * before. NETOBS_TEST_SEED repeats a run.
 */
#include "lib_seed.h"
#include "tcp_model.h"

enum { CONVERSATIONS = 400, CLIENT = 0 /* sends the SYN */ };

/* ---- The truth --------------------------------------------------------------------- */

/*
 * Whether data that the newest packet acknowledges was sent again, after the packet of the log at
 * @from: then the answer may be to that, as the acknowledgments before it may be lost.
 */
static bool is_ambiguous(const struct model *m, int dir, int from)
{
	const int ack = m->n_log - 1;
	uint32_t highest = end_of(&m->log[from]);

	for (int i = from + 1; i < ack; i++) {
		const struct packet_seen *p = &m->log[i];

		if (p->dir != dir || end_of(p) == p->off || p->is_keepalive)
			continue;
		if (p->off < highest && p->off < m->log[ack].ack)
			return true;
		if (end_of(p) > highest)
			highest = end_of(p);
	}
	return false;
}

static bool is_acked_before(const struct model *m, int dir, uint32_t off,
			    int from, int to)
{
	for (int i = from + 1; i < to; i++) {
		const struct packet_seen *p = &m->log[i];

		if (p->dir == !dir && p->has_ack && p->ack >= off)
			return true;
	}
	return false;
}

static bool was_seen_before(const struct model *m, int index)
{
	const struct packet_seen *p = &m->log[index];

	for (int i = m->first; i < index; i++) {
		const struct packet_seen *q = &m->log[i];

		if (q->dir == p->dir && q->off < end_of(p) &&
		    end_of(q) > p->off && end_of(q) > q->off && !q->is_keepalive)
			return true;
	}
	return false;
}

/* Of a buffer, the first segment is timed. */
static uint32_t first_end_of(const struct packet_seen *p)
{
	return p->mss ? p->off + p->mss : end_of(p);
}

/*
 * Whether a byte of the packet was received with it for the first time: if so, its end was not
 * acknowledged before it arrived (RFC 9293, 3.4), whether its last byte was held already or not.
 */
static bool is_awaited(const struct model *m, int index)
{
	const struct packet_seen *p = &m->log[index];

	for (uint32_t i = p->off; i < first_end_of(p); i++) {
		if (m->ends[!p->dir].index_of_byte[i] == 1 + index)
			return true;
	}
	return false;
}

/*
 * The newest packet of the log acknowledges one that passed @sample before, which its receiver
 * waited for, and nothing else that it may answer passed again since.
 */
static bool is_true_sample(const struct model *m, uint32_t sample)
{
	int ack = m->n_log - 1, dir = !m->log[ack].dir;

	for (int i = m->first; i < ack; i++) {
		const struct packet_seen *p = &m->log[i];
		uint32_t stop = first_end_of(p);

		if (p->dir != dir || stop == p->off || p->is_keepalive ||
		    latency_of(m->log[ack].at - p->at) != sample ||
		    m->log[ack].ack < stop)
			continue;
		if (is_awaited(m, i) && !was_seen_before(m, i) &&
		    !is_ambiguous(m, dir, i) &&
		    !is_acked_before(m, dir, stop, i, ack))
			return true;
	}
	return false;
}

/*
 * The newest packet of the log is the first that acknowledges one that passed @sample before,
 * and its sender says that it answers this one.
 */
static bool is_true_echo(const struct model *m, uint32_t sample)
{
	int ack = m->n_log - 1, dir = !m->log[ack].dir;
	int echoed = m->log[ack].echoes - 1;
	const struct packet_seen *p = &m->log[echoed];

	return m->has_stamps && echoed >= m->first && p->dir == dir &&
	       latency_of(m->log[ack].at - p->at) == sample &&
	       m->log[ack].ack >= end_of(p) &&
	       !is_acked_before(m, dir, end_of(p), m->first - 1, ack);
}

/*
 * The newest packet answers the one before it, of the other direction, that had data which was
 * not acknowledged yet: what was, its application has from an earlier one.
 */
static bool is_true_turn(const struct model *m, uint32_t sample)
{
	const struct packet_seen *answer = &m->log[m->n_log - 1];

	for (int i = m->n_log - 2; i >= m->first; i--) {
		const struct packet_seen *p = &m->log[i];

		if (p->dir == answer->dir || !p->len || p->is_keepalive ||
		    is_acked_before(m, p->dir, end_of(p), m->first - 1, i))
			continue;
		return answer->has_ack && end_of(p) <= answer->ack &&
		       latency_of(answer->at - p->at) == sample;
	}
	return false;
}

/*
 * One byte that was acknowledged: nothing that passes the point tells a keep-alive from a byte
 * whose acknowledgment was lost behind it.
 */
static bool is_probe(const struct model *m, const struct packet_seen *p)
{
	uint32_t stop = end_of(p);

	return p->len <= 1 && !(p->flags & (SYN | FIN)) &&
	       stop == m->highest[p->dir] &&
	       is_acked_before(m, p->dir, stop, m->first - 1, m->n_log - 1);
}

/* What the packet is, by which bytes passed before. */
static void count_truth(struct model *m, const struct packet_seen *p)
{
	uint32_t stop = end_of(p), again = 0, late = 0, old;

	if (stop == p->off || is_probe(m, p))
		return;
	old = min_u64(stop, m->highest[p->dir]);
	for (uint32_t i = p->off; i < old; i++) {
		again += m->seen[p->dir][i];
		late += !m->seen[p->dir][i];
	}
	memset(&m->seen[p->dir][p->off], 1, stop - p->off);
	if (stop > m->highest[p->dir])
		m->highest[p->dir] = stop;
	if (again && !(p->flags & SYN))
		m->retransmitted_bytes[p->dir] += again - !!(p->flags & FIN);
	if (late)
		m->out_of_order[p->dir] +=
			p->mss ? (late + p->mss - 1) / p->mss : 1;
}

static void restart(struct model *m)
{
	memset(&m->head, 0, sizeof(m->head));
	memset(&m->rates, 0, sizeof(m->rates));
	memset(&m->body, 0, sizeof(m->body));
	m->head.talker = CONN_NEITHER;
	m->head.opener = CONN_NEITHER;
}

/*
 * What the newest packet, which answers as the server, says of what that takes: without losses, think
 * time but for what packets vary on four ways. Where the handshake was not timed, it may be less.
 */
static void check_app_latency(struct model *m, const struct connection *conn)
{
	const uint32_t path = conn_path(conn, CLIENT);
	const uint64_t slack = 4 * m->jitter + 4 * 64;
	uint64_t found;

	m->answers++;
	if (!path)
		return;
	m->answers_known++;
	if (m->loss_before + m->loss_behind > 0)
		return;
	found = (uint64_t)conn_app_latency(m->body.stats[!CLIENT].turn.last, path)
		<< CONN_LATENCY_SHIFT;
	assert_true(found <= m->think[!CLIENT] + slack);
	if (m->body.stats[CLIENT].handshake)
		assert_true(found + slack >= m->think[!CLIENT]);
	m->answers_compared++;
}

/* Notes of earlier conversations stay. Few buckets forget notes of segments that wait. */
static struct leaving_bucket notes[256];
static uint32_t n_buckets;

static struct leaving_bucket *notes_of(uint32_t seq)
{
	return &notes[(seq * 0x9e3779b1U >> 24) % n_buckets];
}

static void put_note(const struct connection *conn, const struct leaving *note)
{
	struct leaving old;

	if (leaving_put(notes_of(note->seq), note, &old) &&
	    old.place >> LEAVING_INDEX_SHIFT == 1)
		leaving_forget(conn, &old);
}

/* Behind it, those of other connections follow. */
static void note(const struct connection *conn, const struct packet_seen *p,
		 const struct segment *segment)
{
	struct leaving leaving = {
		.seq = segment->seq,
		.ack = segment->ack,
		.place = leaving_place(1, p->dir, segment->leaves),
		.tick = segment->tick,
	};

	if (segment->leaves)
		put_note(conn, &leaving);
	leaving.place = leaving_place(2, p->dir, segment->leaves);
	while (n_buckets < ARRAY_SIZE(notes) && chance() < 0.7) {
		leaving.seq = mrand48();
		put_note(conn, &leaving);
	}
}

static void leave_queue(struct model *m, const struct packet_seen *p)
{
	const struct connection conn = { &m->head, &m->rates, &m->body };
	const uint32_t seq = m->ends[p->dir].isn + p->off;
	const uint32_t ack = p->has_ack ? m->ends[!p->dir].isn + p->ack : 0;
	const struct leaving_bucket *bucket = notes_of(seq);

	if (end_of(p) ==
	    p->off) /* an acknowledgment has the numbers of the data behind it */
		return;
	for (int i = 0; i < LEAVING_WAYS; i++) {
		const struct leaving *of = &bucket->of[i];

		/* Both ends may begin with nearly the same number, as real ones never do. */
		if (of->seq == seq && of->ack == ack &&
		    (of->place >> LEAVING_DIR_SHIFT & 1) == (uint32_t)p->dir)
			leave(&conn, of->place, seq, p->tsval, m->now);
	}
}

static void observe(struct model *m, const struct packet_seen *p)
{
	struct segment segment = {
		.seq = m->ends[p->dir].isn + p->off,
		.ack = p->has_ack ? m->ends[!p->dir].isn + p->ack : 0,
		.len = p->len,
		.mss = p->mss,
		.window = p->window,
		.flags = p->flags,
		.now = p->at,
		.tick = p->at >> CONN_TICK_SHIFT,
		.may_time = 1,
	};
	const struct connection conn = { &m->head, &m->rates, &m->body };
	struct conn_stats before[2] = { m->body.stats[0], m->body.stats[1] };

	switch (segment_judge(&conn, p->dir, &segment)) {
	case SEGMENT_REFUSED:
		refuse(&conn, p->dir, &segment);
		m->refused++;
		return;
	case SEGMENT_ANOTHER:
		restart(m);
		break;
	case SEGMENT_ITS:
		break;
	}
	if (m->has_stamps && stamps_are_needed(&m->head, p->dir, &segment)) {
		segment.has_stamps = true;
		segment.tsval = p->tsval;
		segment.tsecr = p->tsecr;
	}
	connection_observe(&conn, p->dir, &segment);
	note(&conn, p, &segment);
	for (int d = 0; d < 2; d++) {
		const struct conn_stats *stats = &m->body.stats[d];

		if (stats->rtt.n != before[d].rtt.n) {
			assert_int_equal(d, !p->dir);
			if (!is_true_sample(m, stats->rtt.last)) {
				assert_true(is_true_echo(m, stats->rtt.last));
				m->echoes++;
			}
			m->samples++;
		}
		if (stats->turn.n != before[d].turn.n) {
			assert_int_equal(d, p->dir);
			assert_true(is_true_turn(m, stats->turn.last));
			m->turns++;
			if (d != CLIENT)
				check_app_latency(m, &conn);
		}
	}
}

static void look(struct model *m, const struct packet_seen *p, bool is_observed)
{
	if (is_observed)
		observe(m, p);
	count_truth(m, p);
}

/*
 * What is unknown is in neither count; nor is what passed before we looked. Returns of how many
 * directions all is known.
 */
static int compare_counts(const struct model *m)
{
	int n_known = 0;

	for (int d = 0; d < 2; d++) {
		const struct conn_stats *stats = &m->body.stats[d];

		assert_in_range(stats->retransmitted_bytes, 0,
				m->retransmitted_bytes[d]);
		assert_in_range(stats->out_of_order, 0, m->out_of_order[d]);
		if (m->first || stats->late_unknown)
			continue;
		assert_int_equal(stats->retransmitted_bytes,
				 m->retransmitted_bytes[d]);
		assert_int_equal(stats->out_of_order, m->out_of_order[d]);
		n_known++;
	}
	return n_known;
}

static void is_calm(const struct model *m)
{
	if (m->loss_before + m->loss_behind > 0 || m->jitter || m->first ||
	    m->is_hasty || n_buckets < ARRAY_SIZE(notes))
		return;
	assert_true(m->samples > 0);
}

/* ---- Tests ------------------------------------------------------------------------ */

TEST(what_is_measured_is_true)
{
	static struct model m;
	uint64_t samples = 0, echoes = 0, turns = 0, packets = 0, compared = 0;
	uint64_t answers = 0, known = 0, answers_compared = 0, refused = 0;

	srand48(test_seed());
	for (int i = 0; i < CONVERSATIONS; i++) {
		draw(&m);
		restart(&m);
		n_buckets = chance() < 0.3 ? between(1, 4) : ARRAY_SIZE(notes);
		converse(&m);
		compared += compare_counts(&m);
		is_calm(&m);
		samples += m.samples;
		echoes += m.echoes;
		turns += m.turns;
		answers += m.answers;
		known += m.answers_known;
		answers_compared += m.answers_compared;
		packets += m.n_log;
		refused += m.refused;
	}
	assert_true(samples > CONVERSATIONS);
	assert_true(refused < packets / 1000); /* all are of the ends */
	assert_true(echoes > 0);
	assert_true(turns > CONVERSATIONS / 2);
	assert_true(compared > CONVERSATIONS);
	assert_true(known > answers / 2);
	assert_true(answers_compared > CONVERSATIONS / 4);
}

TEST(a_note_is_needed_until_its_segment_is_acknowledged)
{
	static struct model m;
	const struct connection conn = { &m.head, &m.rates, &m.body };
	const struct leaving note = {
		.seq = 100,
		.place = leaving_place(0, CLIENT, LEAVES_TIMER),
	};
	__u64 *armed_ns = m.body.timers[CLIENT].armed_ns;

	m.head.state[!CLIENT] = CONN_ACKED;
	m.body.timers[CLIENT].targets[0] = 200;
	for (uint32_t acked = 100; acked < 102; acked++) {
		m.head.sides[!CLIENT].acked = acked;
		armed_ns[0] = 1;
		leaving_forget(&conn, &note);
		assert_int_equal(armed_ns[0] == LEAVING_NEVER, acked == 100);
	}
}

TEST(an_echo_request_without_its_note_gives_no_sample)
{
	static struct model m;
	const struct connection conn = { &m.head, &m.rates, &m.body };
	const struct leaving note = {
		.seq = 100,
		.place = leaving_place(0, CLIENT, LEAVES_ECHO),
	};
	struct segment segment = { .seq = 100, .now = MS, .may_time = 1 };

	echo_observe(&conn, CLIENT, &segment, ECHO_REQUEST);
	leaving_forget(&conn, &note);
	segment.now = 2 * MS;
	echo_observe(&conn, !CLIENT, &segment, ECHO_REPLY);
	assert_int_equal(m.body.stats[CLIENT].rtt.n, 0);
}
