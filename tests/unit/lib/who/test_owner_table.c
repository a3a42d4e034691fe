// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Sockets by address and time, compared with a list of all sockets that there were. What
 * happens is random; NETOBS_TEST_SEED repeats it.
 */
#include "lib_seed.h"
#include "lib_test.h"

#include "who/owners.h"

#include <netinet/in.h>

enum { ROOM = 20000, SOCKETS = 400, ADDRESSES = 12, STEPS = 4000 };

/* Longer than the slack for coarse clocks, so that times are clearly apart. */
#define STEP_NS (100 * NSEC_PER_MSEC)

struct truth {
	uint64_t cookie;
	uint32_t address, pid;
	int64_t from_ns, to_ns; /* INT64_MAX: open */
};

static struct owner_key key_of(uint32_t address)
{
	struct owner_key key = { .local_port = (uint16_t)(1000 + address),
				 .remote_port = 80,
				 .netns = 1 + address % 3,
				 .protocol = IPPROTO_TCP };

	key.local[15] = (uint8_t)address;
	key.remote[15] = 9;
	return key;
}

static struct session_event event_at(const struct truth *truth, int64_t now_ns)
{
	const struct owner_key key = key_of(truth->address);
	struct session_event event = {
		.time_ns = (uint64_t)now_ns,
		.start_ns = (uint64_t)truth->from_ns,
		.local_port = key.local_port,
		.remote_port = key.remote_port,
		.netns = key.netns,
		.protocol = IPPROTO_TCP,
		.cookie = truth->cookie,
		.owner = { .pid_tgid = truth->pid * (UINT64_C(1) << 32),
			   .by = SESSION_BY_USING },
	};

	memcpy(event.local, key.local, sizeof(event.local));
	memcpy(event.remote, key.remote, sizeof(event.remote));
	if (truth->to_ns != INT64_MAX)
		event.end.time_ns = (uint64_t)truth->to_ns;
	return event;
}

static void count(const struct owner_entry *entry, void *user)
{
	uint32_t *n = user;

	(void)entry;
	++*n;
}

static void end_round(struct owner_table *table, int64_t now_ns, int64_t before_ns)
{
	uint32_t cursor = 0, n = 0;

	while (owner_table_sweep(table, &cursor, now_ns, before_ns, count, &n))
		;
	assert_int_equal(n, table->count);
}

/* The pid that the sockets say which were open at that moment; 0: none, or several. */
static uint32_t pid_at(const struct truth *sockets, size_t n, uint32_t address,
		       int64_t at_ns)
{
	uint32_t pid = 0;

	for (size_t i = 0; i < n; i++) {
		if (sockets[i].address != address ||
		    sockets[i].from_ns > at_ns || sockets[i].to_ns < at_ns)
			continue;
		if (pid && pid != sockets[i].pid)
			return 0;
		pid = sockets[i].pid;
	}
	return pid;
}

static bool was_any_open(const struct truth *sockets, size_t n,
			 uint32_t address, int64_t at_ns)
{
	for (size_t i = 0; i < n; i++)
		if (sockets[i].address == address &&
		    sockets[i].from_ns <= at_ns && sockets[i].to_ns >= at_ns)
			return true;
	return false;
}

static void note_open(struct owner_table *table, const struct truth *sockets,
		      size_t n, int64_t now_ns)
{
	owner_table_begin_round(table, now_ns);
	for (size_t i = 0; i < n; i++) {
		struct session_event event = event_at(&sockets[i], now_ns);

		if (sockets[i].to_ns == INT64_MAX)
			owner_table_note(table, &event);
	}
}

/* Of the socket that is open from then on. */
static struct truth open_from(uint64_t cookie, uint32_t pid, int64_t from_ns)
{
	return (struct truth){ .cookie = cookie,
			       .pid = pid,
			       .from_ns = from_ns,
			       .to_ns = INT64_MAX };
}

struct fixture {
	struct owner_table table;
	struct owner_key key;
	const struct owner_entry *entry; /* that was found last */
};

static enum owner_found find_at(struct fixture *f, int64_t at_ns)
{
	return owner_table_find(&f->table, &f->key, at_ns, at_ns, &f->entry);
}

static void begin(struct fixture *f)
{
	f->key = key_of(0);
	assert_int_equal(owner_table_init(&f->table, ROOM), 0);
}

static void end(struct fixture *f)
{
	owner_table_done(&f->table);
}

TEST_FIXTURE(struct fixture, begin, end)

#define CASE(name) TEST_OF(name, struct fixture *f, set_up, tear_down)

CASE(sockets_are_found_by_the_time_of_their_packets)
{
	static struct truth sockets[SOCKETS];
	size_t n = 0;
	int64_t now_ns = STEP_NS;

	for (int step = 0; step < STEPS; step++, now_ns += STEP_NS) {
		struct truth *one = &sockets[test_below(SOCKETS)];
		const uint32_t address = test_below(ADDRESSES);
		const int64_t at_ns =
			now_ns - test_below(40) * STEP_NS - STEP_NS / 2;
		enum owner_found found;
		uint32_t pid;

		if (n < SOCKETS && test_below(4) == 0) {
			sockets[n] = (struct truth){
				.cookie = n + 1,
				.address = test_below(ADDRESSES),
				.pid = 1 + test_below(5),
				.from_ns = now_ns,
				.to_ns = INT64_MAX,
			};
			n++;
		} else if ((size_t)(one - sockets) < n &&
			   one->to_ns == INT64_MAX) {
			struct session_event event;

			one->to_ns = now_ns;
			event = event_at(one, now_ns);
			owner_table_note(&f->table, &event);
		}
		note_open(&f->table, sockets, n, now_ns);
		end_round(&f->table, now_ns, 0);
		if (at_ns < 0)
			continue;
		f->key = key_of(address);
		found = find_at(f, at_ns);
		pid = pid_at(sockets, n, address, at_ns);
		if (was_any_open(sockets, n, address, at_ns))
			assert_int_equal(found == OWNER_FOUND ?
						 f->entry->owner.pid_tgid >> 32 :
						 0,
					 pid);
	}
}

/* Of UDP: no event says that they have ended. */
CASE(what_is_in_no_list_any_more_has_ended)
{
	const struct truth was = open_from(1, 7, STEP_NS);
	const struct truth is = open_from(2, 8, 9 * STEP_NS);

	note_open(&f->table, &was, 1, 2 * STEP_NS);
	end_round(&f->table, 2 * STEP_NS, 0);
	note_open(&f->table, &is, 1, 10 * STEP_NS);
	end_round(&f->table, 10 * STEP_NS, 0);
	/* Both may have been open between the lists. */
	assert_int_equal(find_at(f, 9 * STEP_NS), OWNER_SEVERAL);
	assert_int_equal(find_at(f, 5 * STEP_NS), OWNER_FOUND);
	assert_int_equal(f->entry->owner.pid_tgid >> 32, 7);
	assert_int_equal(find_at(f, 12 * STEP_NS), OWNER_FOUND);
	assert_int_equal(f->entry->owner.pid_tgid >> 32, 8);
	/* And are forgotten in time. */
	note_open(&f->table, &is, 1, 20 * STEP_NS);
	end_round(&f->table, 20 * STEP_NS, 15 * STEP_NS);
	assert_int_equal(f->table.count, 1);
}

/* Tables of flows may be older than the programs that follow sockets. */
CASE(who_had_a_socket_before_the_programs_is_not_known)
{
	const struct truth is = open_from(1, 7, 0);

	f->table.since_ns = 5 * STEP_NS;
	note_open(&f->table, &is, 1, 6 * STEP_NS);
	end_round(&f->table, 6 * STEP_NS, 0);
	assert_int_equal(find_at(f, 4 * STEP_NS), OWNER_SEVERAL);
	assert_int_equal(find_at(f, 5 * STEP_NS), OWNER_FOUND);
}

/* The last packets come when a connection has ended, the first ones before it is accepted. */
CASE(packets_around_a_connection_are_its_own)
{
	const struct truth one = { .cookie = 1,
				   .pid = 7,
				   .from_ns = 10 * STEP_NS,
				   .to_ns = 20 * STEP_NS };
	const struct session_event event = event_at(&one, one.to_ns);

	owner_table_note(&f->table, &event);
	for (int64_t at_ns = 5 * STEP_NS; at_ns < 40 * STEP_NS; at_ns += STEP_NS)
		assert_int_equal(find_at(f, at_ns), OWNER_FOUND);
	assert_int_equal(find_at(f, -100 * STEP_NS), OWNER_NONE);
}

/* As those of subflows of MPTCP. */
CASE(a_list_without_start_and_owner_leaves_them)
{
	const struct truth one = open_from(1, 7, 5 * STEP_NS);
	struct session_event event = event_at(&one, 6 * STEP_NS);

	owner_table_note(&f->table, &event);
	event.time_ns = 20 * STEP_NS;
	event.start_ns = 0;
	event.owner = (struct session_owner){ 0 };
	owner_table_note(&f->table, &event);
	assert_int_equal(find_at(f, 20 * STEP_NS), OWNER_FOUND);
	assert_int_equal(f->entry->owner.pid_tgid >> 32, 7);
	assert_int_equal(f->entry->from_ns, 5 * STEP_NS);
}

CASE(dual_sockets_have_both_families)
{
	struct session_event event = { .local_port = 53,
				       .protocol = IPPROTO_UDP,
				       .cookie = 1,
				       .is_dual = 1,
				       .owner = { .pid_tgid = 7ULL << 32,
						  .by = SESSION_BY_USING } };

	f->key = (struct owner_key){ .local_port = 53, .protocol = IPPROTO_UDP };
	owner_table_note(&f->table, &event);
	assert_int_equal(find_at(f, 1), OWNER_FOUND);
	f->key.local[10] = f->key.local[11] = 0xff;
	assert_int_equal(find_at(f, 1), OWNER_FOUND);
	event.cookie = 2;
	event.local_port = 54;
	event.is_dual = 0;
	owner_table_note(&f->table, &event);
	f->key.local_port = 54;
	assert_int_equal(find_at(f, 1), OWNER_NONE);
}

/* An event of the ring buffer may be read in a later round, and behind the list. */
CASE(only_what_is_seen_in_a_round_was_open_in_it)
{
	const struct truth one = open_from(1, 7, STEP_NS);
	struct session_event early = event_at(&one, 2 * STEP_NS),
			     late = event_at(&one, 5 * STEP_NS);

	note_open(&f->table, NULL, 0, 4 * STEP_NS);
	owner_table_note(&f->table, &early);
	end_round(&f->table, 6 * STEP_NS, 0);
	assert_int_equal(find_at(f, 3 * STEP_NS), OWNER_FOUND);
	assert_true(f->entry->to_ns == 6 * STEP_NS);
	assert_true(owner_was_open_throughout(f->entry, STEP_NS, STEP_NS));
	assert_false(owner_was_open_throughout(f->entry, STEP_NS, 3 * STEP_NS));
	assert_false(owner_was_open_throughout(f->entry, 0, STEP_NS));
	/* Opened while the list is read, or in it. */
	late.owner.pid_tgid = 8ULL << 32;
	owner_table_note(&f->table, &late);
	owner_table_note(&f->table, &early);
	end_round(&f->table, 6 * STEP_NS, 0);
	assert_true(f->entry->to_ns == INT64_MAX);
	assert_int_equal(f->entry->owner.pid_tgid >> 32, 8);
}

/* Packets are stamped up to a tick early: those around the end may be of the next socket. */
CASE(at_its_end_a_socket_is_not_certain)
{
	struct truth one = open_from(1, 7, STEP_NS);
	struct session_event event = event_at(&one, 3 * STEP_NS);

	owner_table_note(&f->table, &event);
	for (int has_ended = 0; has_ended < 2; has_ended++) {
		event.end.time_ns = has_ended ? event.time_ns : 0;
		owner_table_note(&f->table, &event);
		assert_int_equal(find_at(f, 2 * STEP_NS), OWNER_FOUND);
		assert_true(owner_was_open_throughout(f->entry, STEP_NS,
						      2 * STEP_NS));
		for (int ms = -10; ms <= 10; ms += 5)
			assert_int_equal(owner_was_open_throughout(
						 f->entry, STEP_NS,
						 3 * STEP_NS + ms * NSEC_PER_MSEC),
					 !has_ended);
	}
}

/* The last packet of UDP does not come behind the end of its socket. */
CASE(a_closed_socket_of_udp_has_no_more_packets)
{
	const struct truth one = open_from(1, 7, 10 * STEP_NS);
	struct session_event event = event_at(&one, 10 * STEP_NS);

	f->key.protocol = event.protocol = IPPROTO_UDP;
	owner_table_note(&f->table, &event);
	note_open(&f->table, NULL, 0, 20 * STEP_NS);
	end_round(&f->table, 21 * STEP_NS, 0);
	for (int at = 1; at < 40; at++)
		assert_int_equal(find_at(f, at * STEP_NS),
				 at >= 10 && at <= 21 ? OWNER_FOUND : OWNER_NONE);
}

/* SO_REUSEPORT: the table does not get slow. */
CASE(of_a_crowd_few_are_told_apart)
{
	for (int round = 1; round <= 3; round++) {
		owner_table_begin_round(&f->table, round * STEP_NS);
		for (uint32_t i = 0; i < 20000; i++) {
			const struct truth one = open_from(
				i + 1, round == 3 && i == 19999 ? 8 : 7, STEP_NS);
			const struct session_event event =
				event_at(&one, round * STEP_NS);

			owner_table_note(&f->table, &event);
		}
		end_round(&f->table, round * STEP_NS, 0);
		assert_in_range(f->table.count, 64, 65);
		assert_int_equal(find_at(f, round * STEP_NS),
				 round < 3 ? OWNER_FOUND : OWNER_SEVERAL);
	}
	/* It ends, too. */
	note_open(&f->table, NULL, 0, 10 * STEP_NS);
	end_round(&f->table, 11 * STEP_NS, 0);
	assert_in_range(f->table.count, 64, 65);
	note_open(&f->table, NULL, 0, 20 * STEP_NS);
	end_round(&f->table, 20 * STEP_NS, 19 * STEP_NS);
	assert_int_equal(f->table.count, 0);
	assert_int_equal(f->table.refused, 0);
}

CASE(more_than_there_is_room_for_are_counted)
{
	for (uint32_t i = 0; i < ROOM + 1000; i++) {
		const struct truth one = {
			.cookie = i, .address = i, .pid = 1, .to_ns = INT64_MAX
		};
		const struct session_event event = event_at(&one, STEP_NS);

		owner_table_note(&f->table, &event);
	}
	assert_int_equal(f->table.count, ROOM);
	assert_int_equal(f->table.refused, 1000);
}

/* A key of its own for each. */
static struct session_event event_of(uint32_t number, int64_t now_ns)
{
	const struct truth one = { .cookie = number,
				   .pid = 1 + number,
				   .to_ns = INT64_MAX };
	struct session_event event = event_at(&one, now_ns);

	event.netns = number;
	return event;
}

/* Buckets are split one by one, while there are more and more of them, and in between. */
CASE(all_are_found_while_the_table_grows)
{
	for (uint32_t i = 0; i < ROOM; i++) {
		const struct session_event event = event_of(i, STEP_NS);

		owner_table_note(&f->table, &event);
		assert_in_range(f->table.n_buckets, i + 1 < 1024 ? 1024 : i + 1,
				i + 2 < 1024 ? 1024 : i + 2);
		f->key.netns = test_below(i + 1);
		assert_int_equal(find_at(f, STEP_NS), OWNER_FOUND);
		assert_int_equal(f->entry->owner.pid_tgid >> 32,
				 1 + f->key.netns);
	}
	assert_int_equal(f->table.count, ROOM);
	end_round(&f->table, STEP_NS, 0);
	assert_int_equal(f->table.count, ROOM);
}
