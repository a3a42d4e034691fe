/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Mappings begin, end, and are known for a while after that. */
#include "nat/mappings.h"

#include "base/clock.h"
#include "bpf/parse/headers.h"
#include "host/conntrack.h"
#include "lib_addr.h"
#include "lib_test.h"

enum { EVENTS_MAX = 16, WALK = 4096, DUE_MAX = 64 };

struct state {
	struct translation_table table;
	struct mappings mappings;
	struct clock clock;
	struct netobs_mapping events[EVENTS_MAX]; /* the first ones */
	uint32_t n_events;
};

static void take_event(const struct netobs_record *record, void *user)
{
	const struct netobs_mapping *mapping = (const void *)record;
	struct state *state = user;

	if (state->n_events < EVENTS_MAX)
		state->events[state->n_events] = *mapping;
	state->n_events++;
}

static void begin(struct state *made)
{
	made->clock.wall_offset = 1000 * NSEC_PER_SEC;
	assert_int_equal(translation_table_init(&made->table), 0);
	mappings_init(&made->mappings, &made->table, &made->clock, NULL, true,
		      take_event, made);
	mappings_space(&made->mappings, 0)->complete_ns = NSEC_PER_SEC;
}

static void end(struct state *made)
{
	translation_table_done(&made->table);
	mappings_done(&made->mappings);
}

TEST_FIXTURE(struct state, begin, end)

/* 10.0.0.2:@port asks 192.0.2.1:80, which is 10.0.9.9:8080, as 198.51.100.1:@post */
static struct conntrack_entry entry_of(uint16_t port, uint16_t post)
{
	return (struct conntrack_entry){
		.tuples = { nat_tuple_of("10.0.0.2", port, "192.0.2.1", 80,
					 IP_PROTO_TCP),
			    nat_tuple_of("10.0.9.9", 8080, "198.51.100.1", post,
					 IP_PROTO_TCP) },
		.zone = 7,
		.timeout_s = 30,
	};
}

static void report(struct state *state, const struct conntrack_entry *entry,
		   int64_t at_s)
{
	const struct nat_event event = {
		.time_ns = (uint64_t)at_s * NSEC_PER_SEC,
		.tuples = { entry->tuples[0], entry->tuples[1] },
		.ifindex = 4,
		.from_ifindex = 3,
		.zone = entry->zone,
	};

	translation_table_note(&state->table, &event);
}

static void report_port(struct state *state, uint16_t port, int64_t at_s)
{
	const struct conntrack_entry entry = entry_of(port, port);

	report(state, &entry, at_s);
}

/* A packet of the reply direction, which leaves to the client. */
static void report_answer(struct state *state, uint16_t port, int64_t at_s)
{
	const struct conntrack_entry entry = entry_of(port, port);
	const struct nat_event event = {
		.time_ns = (uint64_t)at_s * NSEC_PER_SEC,
		.tuples = { entry.tuples[0], entry.tuples[1] },
		.ifindex = 3,
		.from_ifindex = 4,
		.zone = entry.zone,
		.dir = NAT_REPLY,
		.is_answered = true,
	};

	translation_table_note(&state->table, &event);
}

static uint32_t due_at(struct state *state, int64_t at_s,
		       struct translation *due[DUE_MAX])
{
	return mappings_due(&state->mappings, at_s * NSEC_PER_SEC, due, DUE_MAX);
}

/* The kernel has none of those that are due. */
static uint32_t end_due(struct state *state, int64_t at_s)
{
	struct translation *due[DUE_MAX];
	const uint32_t n = due_at(state, at_s, due);

	for (uint32_t i = 0; i < n; i++)
		mappings_end(&state->mappings, due[i], at_s * NSEC_PER_SEC);
	return n;
}

struct found {
	struct netobs_mapping list[8];
	uint32_t n;
};

static void take_found(const struct netobs_mapping *mapping, void *user)
{
	struct found *found = user;

	if (found->n < ARRAY_SIZE(found->list))
		found->list[found->n] = *mapping;
	found->n++;
}

static struct found find(const struct state *state, const char *text)
{
	struct netobs_mapping_query query = { .sz = sizeof(query) };
	struct found found = { .n = 0 };
	char error[100];
	uint32_t n;

	assert_int_equal(netobs_mapping_query_parse(text, &query, error,
						    sizeof(error)),
			 0);
	n = mappings_find(&state->mappings, &query, 0, take_found, &found);
	assert_int_equal(n, found.n);
	return found;
}

static void assert_addr4(const uint8_t addr[16], const char *text)
{
	uint8_t wanted[16];

	set_addr(wanted, text);
	assert_memory_equal(addr, wanted, sizeof(wanted));
}

#define CASE(name) TEST_OF(name, struct state *s, set_up, tear_down)

CASE(a_begin_has_both_faces)
{
	const struct netobs_mapping *event = &s->events[0];

	report_port(s, 40000, 10);
	report_port(s, 40000, 11);
	assert_int_equal(s->n_events, 1);
	assert_int_equal(event->event, NETOBS_MAPPING_BEGIN);
	assert_int_equal(event->nat_event, 4);
	assert_int_equal(event->record.time_ns, 1010 * NSEC_PER_SEC);
	assert_int_equal(event->start_ns, 1010 * NSEC_PER_SEC);
	assert_addr4(event->src, "10.0.0.2");
	assert_addr4(event->dst, "192.0.2.1");
	assert_addr4(event->post_src, "198.51.100.1");
	assert_addr4(event->post_dst, "10.0.9.9");
	assert_int_equal(event->src_port, 40000);
	assert_int_equal(event->dst_port, 80);
	assert_int_equal(event->post_src_port, 40000);
	assert_int_equal(event->post_dst_port, 8080);
	assert_int_equal(event->translated,
			 NETOBS_MAPPING_SOURCE | NETOBS_MAPPING_DESTINATION);
	assert_int_equal(event->zone, 7);
	assert_int_equal(event->in_ifindex, 3);
	assert_int_equal(event->out_ifindex, 4);
	assert_int_equal(event->ethertype, 0x0800);
}

CASE(an_entry_without_nat_is_no_mapping)
{
	const struct conntrack_entry plain = {
		.tuples = { nat_tuple_of("10.0.0.2", 40000, "10.0.9.9", 80,
					 IP_PROTO_TCP),
			    nat_tuple_of("10.0.9.9", 80, "10.0.0.2", 40000,
					 IP_PROTO_TCP) },
	};
	struct netobs_mapping mapping;

	report(s, &plain, 10);
	mappings_list(&s->mappings, 0, &plain, 10 * NSEC_PER_SEC);
	assert_false(mapping_of_entry(&plain, 1, 0, &mapping));
	assert_int_equal(s->n_events, 0);
	assert_int_equal(find(s, "10.0.0.2").n, 0);
	assert_int_equal(end_due(s, 100), 0);
}

CASE(every_face_finds_it)
{
	static const char *const faces[] = {
		"10.0.0.2:40000 > 192.0.2.1:80/tcp",
		"198.51.100.1:40000>10.0.9.9:8080 / tcp",
		"10.0.9.9:8080 > 198.51.100.1:40000/tcp",
		"192.0.2.1:80 > 10.0.0.2:40000/tcp",
		"10.0.9.9:8080",
		"198.51.100.1",
		"* > 10.0.9.9:8080",
		"*:40000 > *:80/tcp",
		"10.0.0.2:40000 -> 192.0.2.1:80/TCP",
		"10.0.0.2:40000 \u2192 192.0.2.1:80",
		"192.0.2.1:80/tcp",
		"[::ffff:192.0.2.1]:80",
		"tcp",
	};
	static const char *const others[] = {
		"10.0.0.2:40000 > 192.0.2.1:80/udp",
		"10.0.0.2:40000 > 192.0.2.1:81/tcp",
		"10.0.0.2:40000 > 10.0.9.9:8080/tcp",
		"192.0.2.1:8080",
		"udp",
		"fd00::1",
	};

	report_port(s, 40000, 10);
	for (size_t i = 0; i < ARRAY_SIZE(faces); i++)
		assert_int_equal(find(s, faces[i]).n, 1);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_int_equal(find(s, others[i]).n, 0);
}

/* Clients of DHCP send from it, and NAT may give such a packet another source. */
CASE(the_address_zero_of_ipv4_is_one_as_any_other)
{
	const struct conntrack_entry entry = {
		.tuples = { nat_tuple_of("0.0.0.0", 68, "255.255.255.255", 67,
					 IP_PROTO_TCP),
			    nat_tuple_of("255.255.255.255", 67, "10.0.0.9", 68,
					 IP_PROTO_TCP) },
	};

	report_port(s, 40000, 10);
	report(s, &entry, 10);
	assert_int_equal(find(s, "0.0.0.0").n, 1);
	assert_int_equal(find(s, "0.0.0.0:68 > 255.255.255.255:67").n, 1);
	assert_int_equal(find(s, "0.0.0.0:40000").n, 0);
}

TEST(a_query_that_is_wrong_is_refused)
{
	static const char *const wrong[] = {
		"",
		"  ",
		"nonsense",
		"10.0.0.2:x",
		"10.0.0.2:0",
		"1.2.3.4:70000",
		"1.2.3.4/foo",
		"1.2.3.4/6",
		"1.2.3.4 > ",
		"1.2.3.4/",
		"10.0.0.2 >> 1.2.3.4",
		"10.0.0.2 -> -> 1.2.3.4",
		"[::1]x",
		"[::1]x > [::2]:80",
		"[::1",
		"10.0.0.0/24",
		"10.0.0.1:5 > 10.0.0.0/24",
		"fd00::/64",
		"[fd00::]/64",
		"::",
		"[::]:80",
		"10.0.0.2 > [0::0]:80/tcp",
	};
	struct netobs_mapping_query query = { .sz = sizeof(query) };
	char error[100];

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		*error = '\0';
		assert_int_equal(netobs_mapping_query_parse(wrong[i], &query,
							    error, sizeof(error)),
				 -EINVAL);
		assert_true(*error);
	}
	assert_int_equal(netobs_mapping_query_parse(NULL, &query, NULL, 0),
			 -EINVAL);
	assert_int_equal(netobs_mapping_matches(NULL, &query), 0);
}

CASE(the_kernel_is_asked_when_it_may_have_ended)
{
	struct translation *due[DUE_MAX];

	report_port(s, 40000, 10);
	assert_int_equal(due_at(s, 10, due), 0);
	assert_int_equal(due_at(s, 14, due), 0);
	assert_int_equal(due_at(s, 15, due), 1);
	assert_memory_equal(mapping_question(due[0]).tuples,
			    entry_of(40000, 40000).tuples,
			    sizeof(struct nat_tuple));
	mappings_go_on(due[0], 15 * NSEC_PER_SEC, 30);
	assert_int_equal(due_at(s, 45, due), 0);
	assert_int_equal(due_at(s, 46, due), 1);
	mappings_go_on(due[0], 46 * NSEC_PER_SEC, 432000);
	assert_int_equal(due_at(s, 105, due), 0);
	assert_int_equal(due_at(s, 106, due), 1);
	assert_int_equal(s->n_events, 1);
}

CASE(an_end_is_reported_once)
{
	report_port(s, 40000, 10);
	end_due(s, 10);
	assert_int_equal(end_due(s, 15), 1);
	assert_int_equal(end_due(s, 30), 0);
	assert_int_equal(s->n_events, 2);
	assert_int_equal(s->events[1].event, NETOBS_MAPPING_END);
	assert_int_equal(s->events[1].nat_event, 5);
	assert_int_equal(s->events[1].state, NETOBS_MAPPING_ENDED);
	assert_int_equal(s->events[1].record.time_ns, 1015 * NSEC_PER_SEC);
	assert_int_equal(s->mappings.active, 0);
}

CASE(what_ended_a_minute_ago_is_found_behind_what_is_in_use)
{
	struct found found;

	report_port(s, 40000, 10);
	end_due(s, 10);
	end_due(s, 15);
	report_port(s, 40001, 74);
	end_due(s, 75);
	found = find(s, "192.0.2.1:80");
	assert_int_equal(found.n, 2);
	assert_int_equal(found.list[0].src_port, 40001);
	assert_int_equal(found.list[0].state, NETOBS_MAPPING_ACTIVE);
	assert_int_equal(found.list[1].src_port, 40000);
	assert_int_equal(found.list[1].state, NETOBS_MAPPING_ENDED);
	assert_true(found.list[1].record.has & NETOBS_MAPPING_HAS_END);
	/* A later look makes room. */
	due_at(s, 76, (struct translation *[DUE_MAX]){ NULL });
	assert_int_equal(find(s, "192.0.2.1:80").n, 1);
	assert_int_equal(s->table.known, 1);
}

CASE(one_that_is_used_again_begins_again)
{
	report_port(s, 40000, 10);
	end_due(s, 10);
	end_due(s, 15);
	report_port(s, 40000, 12); /* it was late */
	assert_int_equal(s->n_events, 2);
	report_port(s, 40000, 20);
	assert_int_equal(s->n_events, 3);
	assert_int_equal(s->events[2].event, NETOBS_MAPPING_BEGIN);
	assert_int_equal(s->events[2].start_ns, 1020 * NSEC_PER_SEC);
	assert_int_equal(s->mappings.active, 1);
	assert_int_equal(find(s, "192.0.2.1:80").list[0].state,
			 NETOBS_MAPPING_ACTIVE);
}

CASE(a_listed_one_has_no_start_and_is_not_for_flows)
{
	struct conntrack_entry entry = entry_of(40000, 40000);
	const struct netobs_mapping *event = &s->events[0];

	mappings_list(&s->mappings, 0, &entry, 10 * NSEC_PER_SEC);
	mappings_list(&s->mappings, 0, &entry, 11 * NSEC_PER_SEC);
	assert_int_equal(s->n_events, 1);
	assert_int_equal(event->event, NETOBS_MAPPING_BEGIN);
	assert_false(event->record.has &
		     (NETOBS_MAPPING_HAS_START | NETOBS_MAPPING_HAS_LAST));
	assert_int_equal(event->in_ifindex, 0);
	assert_int_equal(find(s, "10.0.0.2:40000").n, 1);
	report_port(s, 40000, 12);
	assert_int_equal(s->n_events, 1);
	assert_int_equal(s->table.list[0].first_ns, 12 * NSEC_PER_SEC);
	assert_int_equal(find(s, "10.0.0.2:40000").list[0].in_ifindex, 3);
	/* Unless the kernel knows when it began. */
	entry = entry_of(40001, 40001);
	entry.start_ns = 1003 * NSEC_PER_SEC;
	mappings_list(&s->mappings, 0, &entry, 13 * NSEC_PER_SEC);
	assert_int_equal(s->events[1].start_ns, 1003 * NSEC_PER_SEC);
}

CASE(one_from_before_the_list_was_complete_may_be_older)
{
	mappings_space(&s->mappings, 0)->complete_ns = 10 * NSEC_PER_SEC;
	report_port(s, 40000, 10);
	report_port(s, 40001, 11);
	assert_int_equal(s->n_events, 2);
	assert_int_equal(s->events[0].record.time_ns, 1010 * NSEC_PER_SEC);
	assert_false(s->events[0].record.has & NETOBS_MAPPING_HAS_START);
	assert_true(s->events[1].record.has & NETOBS_MAPPING_HAS_START);
}

static void report_many(struct state *state, uint32_t n, int64_t at_s)
{
	for (uint32_t i = 0; i < n; i++) {
		struct conntrack_entry entry = entry_of((uint16_t)i, (uint16_t)i);

		entry.tuples[0].src[0] = htonl(0x0a000000 + i);
		report(state, &entry, at_s);
	}
}

CASE(a_full_table_forgets_the_oldest_and_says_so)
{
	report_many(s, TRANSLATIONS_MAX, 10);
	assert_int_equal(s->table.known, TRANSLATIONS_MAX);
	assert_int_equal(s->mappings.active, TRANSLATIONS_MAX);
	s->n_events = 0;
	report_port(s, 40000, 11);
	assert_int_equal(s->n_events, 2);
	assert_int_equal(s->events[0].event, NETOBS_MAPPING_END);
	assert_int_equal(s->events[0].state, NETOBS_MAPPING_FORGOTTEN);
	assert_int_equal(s->events[0].src_port, 0);
	assert_int_equal(s->events[1].event, NETOBS_MAPPING_BEGIN);
	assert_int_equal(s->table.refused, 0);
	assert_int_equal(s->mappings.active + s->mappings.n_forgotten,
			 s->mappings.n_begun);
	assert_int_equal(s->mappings.active, s->table.known);
}

/* Unless nothing of it can be from before: it is new then. */
CASE(one_that_was_forgotten_comes_back_without_a_start)
{
	const struct netobs_mapping *event;

	s->table.max = 2;
	for (uint16_t port = 40000; port < 40003; port++)
		report_port(s, port, 10);
	report_port(s, 40000, 12);
	event = &s->events[s->n_events - 1];
	assert_int_equal(event->event, NETOBS_MAPPING_BEGIN);
	assert_int_equal(event->src_port, 40000);
	assert_false(event->record.has & NETOBS_MAPPING_HAS_START);
	/* Of entries without an answer, the kernel has forgotten all earlier ones. */
	s->table.max = 8;
	report_port(s, 40001, 700);
	event = &s->events[s->n_events - 1];
	assert_true(event->record.has & NETOBS_MAPPING_HAS_START);
	report_answer(s, 40003, 701);
	event = &s->events[s->n_events - 1];
	assert_int_equal(event->src_port, 40003);
	assert_false(event->record.has & NETOBS_MAPPING_HAS_START);
}

CASE(the_kernel_knows_the_start_of_one_that_was_reported_first)
{
	struct conntrack_entry entry = entry_of(40000, 40000);
	struct translation *due[DUE_MAX];

	mappings_space(&s->mappings, 0)->complete_ns = 0;
	report_port(s, 40000, 10);
	report_port(s, 40001, 10);
	assert_false(find(s, "192.0.2.1").list[0].record.has &
		     NETOBS_MAPPING_HAS_START);
	entry.start_ns = 1003 * NSEC_PER_SEC;
	mappings_list(&s->mappings, 0, &entry, 11 * NSEC_PER_SEC);
	assert_int_equal(find(s, "10.0.0.2:40000").list[0].start_ns,
			 1003 * NSEC_PER_SEC);
	assert_int_equal(s->n_events, 2);
	/* An answer to a question, too; not one of a later entry. */
	due_at(s, 10, due);
	assert_int_equal(due_at(s, 15, due), 2);
	entry.start_ns = 1014 * NSEC_PER_SEC;
	mappings_answer(&s->mappings, due[1], &entry, 15 * NSEC_PER_SEC);
	assert_false(find(s, "10.0.0.2:40001").list[0].record.has &
		     NETOBS_MAPPING_HAS_START);
	entry.start_ns = 1009 * NSEC_PER_SEC;
	mappings_answer(&s->mappings, due[1], &entry, 15 * NSEC_PER_SEC);
	assert_int_equal(find(s, "10.0.0.2:40001").list[0].start_ns,
			 1009 * NSEC_PER_SEC);
}

CASE(an_idle_one_is_kept_while_there_is_room)
{
	report_many(s, 1000, 10);
	report_port(s, 40000, 1000);
	due_at(s, 1000, (struct translation *[DUE_MAX]){ NULL });
	assert_int_equal(s->mappings.active, 1001);
	/* Without answers, it is not known to be there. */
	mappings_space(&s->mappings, 0)->cannot_ask = true;
	for (int i = 0; i < 2; i++)
		due_at(s, 1001, (struct translation *[DUE_MAX]){ NULL });
	assert_int_equal(s->mappings.active, 1);
	assert_int_equal(s->mappings.n_forgotten, 1000);
}

CASE(each_is_passed_on_once)
{
	struct found found = { .n = 0 };
	uint32_t at = 0, n = 0;

	report_many(s, 500, 10);
	while ((at = mappings_next(&s->mappings, at, 0, take_found, &found)))
		n++;
	assert_int_equal(n, 500);
	assert_int_equal(found.n, 500);
}

CASE(work_at_a_time_is_bounded)
{
	struct translation *due[DUE_MAX];
	uint32_t n = 0;

	report_many(s, 3 * WALK, 10);
	for (int i = 0; i < 3; i++)
		assert_int_equal(due_at(s, 10, due), 0);
	assert_int_equal(due_at(s, 15, due), DUE_MAX);
	for (int i = 0; i < 10000 && n < 3 * WALK; i++)
		n += end_due(s, 15);
	assert_int_equal(n, 3 * WALK);
	assert_int_equal(s->mappings.active, 0);
}
