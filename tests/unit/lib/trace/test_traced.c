// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Connections by what the programs report: offsets in streams, ends, tuples, and what is kept. */
#include "random_events.h"

#include "trace/traced.h"

enum { FIN = 1, SYN = 2, RST = 4, ACK = 16 };

#define CLOSED_NS (200ULL * MS)
#define HALF_CLOSED_NS (5000ULL * MS)
#define UNANSWERED_NS (3000ULL * MS)

static void begin(struct traced *traced)
{
	traced_begin(traced, 7, START_NS, true);
}

TEST_FIXTURE(struct traced, begin, traced_clear)

static struct trace_report make_report(uint8_t point, uint8_t direction,
				       uint32_t seq, uint8_t flags)
{
	return (struct trace_report){
		.time_ns = START_NS,
		.id = 7,
		.point = point,
		.direction = direction,
		.seq = seq,
		.tcp_flags = flags,
		.src_port = 1,
	};
}

static int64_t note(struct traced *traced, uint8_t direction, uint32_t seq,
		    uint8_t flags)
{
	const struct trace_report report =
		make_report(TRACE_QUEUE, direction, seq, flags);

	return traced_note(traced, &report);
}

#define CASE(name) TEST_OF(name, struct traced *traced, set_up, tear_down)

/* ---- Offsets --------------------------------------------------------------------------- */

/* A segment of up to 2^31 - 1 bytes before or behind the last one: numbers wrap, and some are sent again. */
static int64_t next_offset(int64_t offset)
{
	return offset + (int32_t)test_random() / (one_in(2) ? 1 << 20 : 1);
}

CASE(offsets_are_from_the_first_byte_across_all_wraps)
{
	enum { STREAMS = 200, SEGMENTS = 200 };

	for (int i = 0; i < STREAMS; i++) {
		const bool has_syn[2] = { one_in(2), one_in(2) };
		const uint32_t firsts[2] = { (uint32_t)test_random(),
					     one_in(2) ? UINT32_MAX : 0 };
		int64_t offsets[2] = { 0, 0 };

		traced_begin(traced, 7, START_NS, true);
		for (uint8_t way = 0; way < 2; way++)
			assert_int_equal(note(traced, way,
					      firsts[way] - has_syn[way],
					      has_syn[way] ? SYN : ACK),
					 0);
		for (int n = 0; n < SEGMENTS; n++) {
			const uint8_t way = (uint8_t)test_below(2);

			offsets[way] = next_offset(offsets[way]);
			assert_int_equal(
				note(traced, way,
				     firsts[way] + (uint32_t)offsets[way], ACK),
				offsets[way]);
		}
		for (uint8_t way = 0; way < 2; way++)
			assert_int_equal(traced->streams[way].has_first,
					 has_syn[way]);
	}
}

static void note_call(struct traced *traced, uint8_t point, uint8_t direction,
		      uint32_t pid, bool has_process)
{
	struct trace_report report = make_report(point, direction, 100, ACK);

	report.pid_tgid = (uint64_t)pid << 32 | (pid + 1);
	report.has_process = has_process;
	strcpy(report.command, pid == 7 ? "seven" : "other");
	traced_note(traced, &report);
}

/* A process reads from the socket that sends the other way. */
CASE(the_owner_is_the_process_that_used_the_socket_last)
{
	assert_null(traced_owner(traced, 0));
	note_call(traced, TRACE_QUEUE, 0, 9, false);
	assert_null(traced_owner(traced, 0));
	note_call(traced, TRACE_READ, 0, 7, true);
	assert_int_equal(traced_owner(traced, 1)->pid, 7);
	assert_int_equal(traced_owner(traced, 0)->pid, 7); /* of the other end */
	note_call(traced, TRACE_SENT, 0, 8, true);
	assert_int_equal(traced_owner(traced, 0)->pid, 8);
	assert_int_equal(traced_owner(traced, 1)->pid, 7);
	assert_string_equal(traced_owner(traced, 1)->command, "seven");
	note_call(traced, TRACE_SEND, 1, 5, true);
	assert_int_equal(traced_owner(traced, 1)->pid, 5);
	assert_string_equal(traced_owner(traced, 1)->command, "other");
}

CASE(reports_without_numbers_leave_offsets)
{
	static const uint8_t points[] = { TRACE_OPENS, TRACE_FACE, TRACE_CLOSES };

	note(traced, 0, 100, SYN);
	note(traced, 0, 151, ACK);
	for (size_t i = 0; i < ARRAY_SIZE(points); i++) {
		const struct trace_report report =
			make_report(points[i], 0, 0, 0);

		assert_int_equal(traced_note(traced, &report), 50);
	}
	assert_int_equal(note(traced, 0, 161, ACK), 60);
}

/* ---- The end --------------------------------------------------------------------------- */

static bool is_over_after(const struct traced *traced, uint64_t idle_ns)
{
	return traced_is_over(traced, traced->last_ns + idle_ns);
}

CASE(an_open_connection_is_never_over)
{
	note(traced, 0, 100, SYN);
	note(traced, 1, 500, SYN | ACK);
	note(traced, 0, 101, ACK | FIN);
	assert_false(is_over_after(traced, 1000 * HALF_CLOSED_NS));
}

CASE(a_syn_without_an_answer_is_over_soon)
{
	note(traced, 0, 100, SYN);
	assert_false(is_over_after(traced, UNANSWERED_NS - 1));
	assert_true(is_over_after(traced, UNANSWERED_NS));
	note(traced, 1, 500, SYN | ACK);
	assert_false(is_over_after(traced, UNANSWERED_NS));
}

/* Of a socket that is connected to itself, all is of direction 0. */
CASE(one_direction_may_be_all)
{
	struct trace_report report = make_report(TRACE_QUEUE, 0, 100, SYN);

	report.dst_port = report.src_port;
	traced_note(traced, &report);
	assert_false(is_over_after(traced, UNANSWERED_NS));
	report.tcp_flags = FIN;
	traced_note(traced, &report);
	assert_true(is_over_after(traced, HALF_CLOSED_NS));
}

CASE(it_is_over_some_time_after_both_ends)
{
	static const struct {
		uint8_t flags[2]; /* of a segment of each direction */
		uint8_t closes;
		uint64_t idle_ns;
	} cases[] = {
		{ { FIN, FIN }, 0, HALF_CLOSED_NS },
		{ { RST, 0 }, 0, HALF_CLOSED_NS },
		{ { 0, RST | ACK }, 0, HALF_CLOSED_NS },
		{ { 0, 0 }, 1, HALF_CLOSED_NS },
		{ { FIN, FIN }, 1, HALF_CLOSED_NS },
		{ { 0, 0 }, 2, CLOSED_NS },
		{ { FIN, FIN }, 2, CLOSED_NS },
		{ { RST, 0 }, 3, CLOSED_NS },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		traced_begin(traced, 7, START_NS, true);
		for (uint8_t way = 0; way < 2; way++)
			note(traced, way, 100, cases[i].flags[way]);
		traced->n_closes = cases[i].closes;
		assert_false(is_over_after(traced, cases[i].idle_ns - 1));
		assert_true(is_over_after(traced, cases[i].idle_ns));
	}
}

CASE(each_report_defers_the_end)
{
	struct trace_report report = make_report(TRACE_READ, 0, 101, 0);

	traced->n_closes = 2;
	report.time_ns = START_NS + 150 * MS;
	traced_note(traced, &report);
	assert_false(traced_is_over(traced, START_NS + CLOSED_NS));
	/* Another CPU reports what was before. */
	report.time_ns = START_NS;
	traced_note(traced, &report);
	assert_false(traced_is_over(traced, START_NS + CLOSED_NS));
	assert_true(traced_is_over(traced, START_NS + 150 * MS + CLOSED_NS));
}

CASE(a_clock_that_is_behind_ends_nothing)
{
	traced->n_closes = 2;
	assert_false(traced_is_over(traced, START_NS - 1));
	assert_false(traced_is_over(traced, 0));
}

/* ---- Tuples and candidates ------------------------------------------------------------- */

static struct trace_report make_ends(uint8_t src, uint16_t src_port,
				     uint8_t dst, uint16_t dst_port)
{
	struct trace_report report = { .src_port = src_port,
				       .dst_port = dst_port };

	report.src.bytes[15] = src;
	report.dst.bytes[15] = dst;
	return report;
}

CASE(both_directions_have_the_same_tuple)
{
	static const struct {
		uint8_t src, dst;
		uint16_t src_port, dst_port;
	} cases[] = {
		{ 1, 2, 80, 40000 },
		{ 2, 1, 80, 40000 },
		{ 1, 1, 80, 40000 },
		{ 1, 1, 80, 80 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct trace_report there =
			make_ends(cases[i].src, cases[i].src_port, cases[i].dst,
				  cases[i].dst_port);
		const struct trace_report back =
			make_ends(cases[i].dst, cases[i].dst_port, cases[i].src,
				  cases[i].src_port);
		const struct trace_tuple one = traced_tuple(&there);
		const struct trace_tuple other = traced_tuple(&back);

		assert_memory_equal(&one, &other, sizeof(one));
	}
}

CASE(faces_beyond_the_limit_are_left_out)
{
	for (int i = 0; i < TRACED_FACES_MAX + 3; i++)
		assert_int_equal(
			traced_add_face(traced,
					&(struct trace_tuple){
						.ports = { (uint16_t)i, 80 } }),
			i < TRACED_FACES_MAX);
	assert_int_equal(traced->n_faces, TRACED_FACES_MAX);
	for (int i = 0; i < TRACED_FACES_MAX; i++)
		assert_int_equal(traced->faces[i].ports[0], i);
}

/* As many of both kinds, so that neither leaves the other without room. */
CASE(what_is_kept_is_bounded_and_in_order)
{
	enum {
		BEYOND = 5,
		COUNTED = TRACE_CANDIDATE_EVENTS + TRACE_BOUND_EVENTS,
		ALL = COUNTED + TRACE_CANDIDATE_EVENTS
	};

	for (uint32_t i = 0; i < ALL; i++) {
		const bool is_counted = i >= TRACE_CANDIDATE_EVENTS;
		const struct trace_report report =
			make_report(TRACE_QUEUE, 0, i, ACK);

		assert_true(traced_keep(traced, &report, is_counted));
	}
	for (uint32_t i = 0; i < BEYOND; i++) {
		const struct trace_report report =
			make_report(TRACE_QUEUE, 0, ALL + i, ACK);

		assert_false(traced_keep(traced, &report, i % 2));
	}
	assert_int_equal(traced->n_pending, ALL);
	for (uint32_t i = 0; i < ALL; i++)
		assert_int_equal(traced->pending[i].seq, i);
	traced_drop_pending(traced);
	assert_true(traced_keep(traced, &(struct trace_report){ 0 }, false));
}

CASE(what_begins_or_ends_a_stream_is_known_by_its_flags)
{
	static const struct {
		uint8_t flags;
		bool is_bound;
	} cases[] = { { SYN, true }, { SYN | ACK, true }, { FIN | ACK, true },
		      { RST, true }, { ACK, false },	  { 0, false } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct trace_report report =
			make_report(TRACE_QUEUE, 0, 0, cases[i].flags);

		assert_int_equal(traced_is_bound(&report), cases[i].is_bound);
	}
}

CASE(a_slot_that_begins_again_has_nothing_of_before)
{
	const struct trace_report report = make_report(TRACE_QUEUE, 0, 100, RST);

	note(traced, 0, 100, SYN | RST);
	traced_keep(traced, &report, true);
	traced_add_face(traced, &(struct trace_tuple){ 0 });
	traced->n_closes = 2;
	traced_begin(traced, 8, START_NS, false);
	assert_int_equal(traced->id, 8);
	assert_int_equal(traced->n_pending + traced->n_faces, 0);
	assert_false(is_over_after(traced, HALF_CLOSED_NS));
	assert_int_equal(note(traced, 0, 70, ACK), 0);
	assert_false(traced->streams[0].has_first || traced->has_initiator);
}
