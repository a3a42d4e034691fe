/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A record names what the process asked for whose socket has such packets, or nothing. */
#include "nat/translations.h"

#include "base/clock.h"
#include "bpf/parse/headers.h"
#include "host/host.h"
#include "lib_addr.h"
#include "lib_test.h"

#include <netobs/flow.h>

enum { LOCAL_PORT = 40000, SERVICE_PORT = 80, BACKEND_PORT = 8080 };
enum { SECOND = 1000, SPACE = 4026531992, COOKIE = 7, ANOTHER = 8 };

static const char *const LOCAL = "10.0.0.2", *const BACKEND = "10.0.2.2",
			 *const SERVICE = "10.96.0.1", *const OTHER = "10.96.0.2";

static uint8_t proto = IP_PROTO_UDP;

static struct translations translations;

static void open_table(void)
{
	assert_int_equal(translations_init(&translations,
					   &(struct translations_options){
						   .knows_zones = true }),
			 0);
	translations.sockets.table = &translations.table;
}

static int set_up(void **state)
{
	(void)state;
	proto = IP_PROTO_UDP;
	open_table();
	return 0;
}

static int set_up_tcp(void **state)
{
	set_up(state);
	proto = IP_PROTO_TCP;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	translations_close(&translations);
	return 0;
}

#define UDP_TEST(name) TEST_WITH(name, set_up, tear_down)
#define TCP_TEST(name) TEST_WITH(name, set_up_tcp, tear_down)

static void note(enum connect_kind kind, const char *asked, uint64_t cookie,
		 int64_t ms, const char *local)
{
	struct connect_event event = {
		.time_ns = (uint64_t)ms * NSEC_PER_MSEC,
		.cookie = cookie,
		.tuple = { .local_port = LOCAL_PORT,
			   .remote_port = BACKEND_PORT,
			   .netns = SPACE,
			   .protocol = proto },
		.asked_port = asked == BACKEND ? BACKEND_PORT : SERVICE_PORT,
		.kind = (uint8_t)kind,
	};

	set_addr(event.tuple.local, local);
	set_addr(event.tuple.remote, BACKEND);
	set_addr(event.asked, asked);
	socket_translations_note(&translations.sockets, &event);
}

static void begin(const char *asked, uint64_t cookie, int64_t ms)
{
	note(CONNECT_BEGIN, asked, cookie, ms, LOCAL);
}

static void end(const char *asked, uint64_t cookie, int64_t ms)
{
	note(CONNECT_END, asked, cookie, ms, LOCAL);
}

struct packets {
	const char *local;
	bool is_answer; /* from the backend, instead of to it */
	int64_t first_ms, last_ms;
};

static struct flow_entry entry_of(const struct packets *packets)
{
	const bool is_answer = packets->is_answer;
	struct flow_entry entry = {
		.key = { .src_port = is_answer ? BACKEND_PORT : LOCAL_PORT,
			 .dst_port = is_answer ? LOCAL_PORT : BACKEND_PORT,
			 .ifindex = 3,
			 .netns = 1,
			 .proto = proto,
			 .flags = is_answer ? 0 : KEY_EGRESS },
		.tally = { .first_ns = (uint64_t)packets->first_ms * NSEC_PER_MSEC,
			   .last_ns = (uint64_t)packets->last_ms * NSEC_PER_MSEC },
	};

	set_addr(entry.key.src.bytes, is_answer ? BACKEND : packets->local);
	set_addr(entry.key.dst.bytes, is_answer ? packets->local : BACKEND);
	return entry;
}

/* Of a flow with entries. */
static struct netobs_flow record_of(const struct packets *packets, int n)
{
	uint64_t data[FLOW_EXTRA_BYTES_MAX / sizeof(uint64_t)] = { 0 };
	const struct flow_extra *extra = &translations.extra;
	const struct flow_entry first = entry_of(packets);
	struct netobs_flow record = { .sz = sizeof(record),
				      .proto = proto,
				      .has = NETOBS_HAS_PORTS,
				      .src_port = first.key.src_port,
				      .dst_port = first.key.dst_port };

	memcpy(record.src, first.key.src.bytes, sizeof(record.src));
	memcpy(record.dst, first.key.dst.bytes, sizeof(record.dst));
	for (int i = 0; i < n; i++) {
		const struct flow_entry entry = entry_of(&packets[i]);

		extra->note(data, &entry, extra->ctx);
	}
	extra->fill(data, &record, extra->ctx);
	return record;
}

static void assert_asked_from(const char *local, const char *asked,
			      int64_t first_ms, int64_t last_ms)
{
	const struct packets packets[] = { { local, false, first_ms, last_ms },
					   { local, true, first_ms, last_ms } };
	const struct netobs_flow there = record_of(&packets[0], 1);
	const struct netobs_flow back = record_of(&packets[1], 1);
	uint8_t wanted[16];

	assert_int_equal(!!(there.has & NETOBS_HAS_ORIG), asked != NULL);
	assert_int_equal(!!(back.has & NETOBS_HAS_XLAT), asked != NULL);
	assert_false(there.has & (NETOBS_HAS_XLAT | NETOBS_HAS_ZONE));
	assert_false(back.has & (NETOBS_HAS_ORIG | NETOBS_HAS_ZONE));
	if (!asked)
		return;
	set_addr(wanted, asked);
	assert_memory_equal(there.orig_dst, wanted, sizeof(wanted));
	assert_int_equal(there.orig_dst_port, SERVICE_PORT);
	assert_int_equal(there.orig_src_port, LOCAL_PORT);
	assert_memory_equal(back.xlat_src, wanted, sizeof(wanted));
	assert_int_equal(back.xlat_src_port, SERVICE_PORT);
	assert_int_equal(there.conversation_id, back.conversation_id);
}

static void assert_asked(const char *asked, int64_t first_ms, int64_t last_ms)
{
	assert_asked_from(LOCAL, asked, first_ms, last_ms);
}

/* Namespaces may have the same addresses. */
UDP_TEST(packets_of_another_namespace_are_of_other_sockets)
{
	struct netns netns[] = { { .domain = 0 },
				 { .inode = SPACE, .domain = 1 } };
	const struct host host = { .netns = netns, .n_netns = ARRAY_SIZE(netns) };

	translations.host = &host;
	begin(SERVICE, COOKIE, 1000);
	assert_asked(SERVICE, 1000, 1100);
	netns[1].inode++;
	assert_asked(NULL, 1000, 1100);
}

UDP_TEST(calls_that_are_not_known_are_told_apart_from_lost_reports)
{
	const struct connect_counters counters = { .lost = 1, .missed = 2 };
	const struct connects connects = { .ring = (void *)&translations,
					   .counters = &counters };

	assert_int_equal(connects_lost(&connects), 1);
	assert_int_equal(connects_missed(&connects), 2);
}

UDP_TEST(an_open_socket_may_be_silent)
{
	const int64_t hour = 3600 * SECOND;

	assert_asked(NULL, 1000, 1100);
	begin(SERVICE, COOKIE, 1000);
	/* A flood pushes out others first. */
	assert_int_equal(translations.table.stages[STAGE_SETTLED].n, 1);
	assert_asked(SERVICE, hour, hour);
	end(SERVICE, COOKIE, hour);
	assert_asked(SERVICE, hour - SECOND, hour + 10);
	assert_asked(NULL, hour + SECOND, hour + 2 * SECOND);
}

UDP_TEST(packets_behind_its_end_are_of_others)
{
	begin(SERVICE, COOKIE, 1000);
	end(SERVICE, COOKIE, 2000);
	assert_asked(SERVICE, 1500, 2010);
	assert_asked(NULL, 1500, 2500);
	assert_asked(NULL, 2500, 2600);
}

TCP_TEST(the_kernel_goes_on_after_a_socket_of_tcp)
{
	begin(SERVICE, COOKIE, 1000);
	end(SERVICE, COOKIE, 2000);
	assert_asked(SERVICE, 1500, 5000);
	assert_asked(SERVICE, 2100, 5000);
	assert_asked(NULL, 13 * SECOND, 14 * SECOND);
}

static void assert_record(const char *asked, const struct packets *packets, int n)
{
	const struct netobs_flow record = record_of(packets, n);

	assert_int_equal(!!(record.has & NETOBS_HAS_ORIG), asked != NULL);
}

/* Other interfaces, or an interval before, may have packets of which nothing is known. */
UDP_TEST(a_record_with_packets_of_others_names_nothing)
{
	const struct packets before[] = { { LOCAL, false, 100, 200 },
					  { LOCAL, false, 1000, 1100 } };
	const struct packets after[] = { { LOCAL, false, 1000, 1100 },
					 { LOCAL, false, 3000, 3100 } };

	begin(SERVICE, COOKIE, 1000);
	assert_record(SERVICE, &before[1], 1);
	assert_record(NULL, before, 2);
	assert_record(SERVICE, after, 2);
	end(SERVICE, COOKIE, 2000);
	assert_record(NULL, after, 2);
}

/* It is connected to the service, and sends to its end as well. */
UDP_TEST(datagrams_to_the_end_itself_are_told_apart)
{
	const int64_t hour = 3600 * SECOND;

	begin(SERVICE, COOKIE, 1000);
	note(CONNECT_SENT, BACKEND, COOKIE, 3000, LOCAL);
	assert_asked(SERVICE, 1000, 2900);
	assert_asked(NULL, 3000, 3100);
	assert_asked(NULL, 1000, 3100);
	assert_asked(NULL, hour, hour + 10);
}

UDP_TEST(the_next_socket_with_its_tuple_names_its_own)
{
	begin(SERVICE, COOKIE, 1000);
	end(SERVICE, COOKIE, 2000);
	begin(OTHER, ANOTHER, 3000);
	assert_asked(SERVICE, 1000, 1900);
	assert_asked(OTHER, 3000, 3100);
	/* Packets of both, or of neither alone. */
	assert_asked(NULL, 1500, 3100);
}

/* The time of packets may be some milliseconds too early. */
UDP_TEST(packets_of_another_socket_just_before_are_not_taken)
{
	struct connect_event event = {
		.time_ns = 1000 * NSEC_PER_MSEC,
		.cookie = COOKIE,
		.tuple = { .local_port = LOCAL_PORT,
			   .remote_port = BACKEND_PORT,
			   .netns = SPACE,
			   .protocol = IP_PROTO_UDP },
		.asked_port = SERVICE_PORT,
		.kind = CONNECT_BEGIN,
	};

	set_addr(event.tuple.local, LOCAL);
	set_addr(event.tuple.remote, BACKEND);
	set_addr(event.asked, SERVICE);
	socket_translations_note(&translations.sockets, &event);
	assert_asked(SERVICE, 990, 1100);
	translations_close(&translations);
	open_table();
	event.is_another = 1;
	socket_translations_note(&translations.sockets, &event);
	assert_asked(NULL, 990, 1100);
	assert_asked(SERVICE, 1000, 1100);
}

UDP_TEST(the_end_of_another_socket_ends_nothing)
{
	begin(SERVICE, COOKIE, 1000);
	end(SERVICE, ANOTHER, 1500);
	assert_asked(SERVICE, 60 * SECOND, 61 * SECOND);
}

/* Both are asked from the same socket, and have one backend. */
UDP_TEST(a_second_service_is_not_taken_for_the_first_one)
{
	note(CONNECT_SENT, SERVICE, COOKIE, 1000, "0.0.0.0");
	assert_asked(SERVICE, 1000, 1100);
	note(CONNECT_SENT, OTHER, COOKIE, 3000, "0.0.0.0");
	assert_asked(SERVICE, 1200, 1300);
	assert_asked(NULL, 3000, 3100);
	assert_asked(NULL, 1500, 3100);
}

UDP_TEST(the_next_socket_that_sends_from_any_address_is_whole)
{
	note(CONNECT_SENT, SERVICE, COOKIE, 1000, "0.0.0.0");
	assert_asked(SERVICE, 1000, 1100);
	note(CONNECT_END, SERVICE, COOKIE, 2000, "0.0.0.0");
	note(CONNECT_SENT, SERVICE, ANOTHER, 3000, "0.0.0.0");
	assert_asked(SERVICE, 60 * SECOND, 61 * SECOND);
	assert_int_equal(translations.table.list[1].ended_ns, 0);
	/* Meanwhile, the port may have been another one's. */
	assert_asked(NULL, 2500, 2600);
	note(CONNECT_END, SERVICE, ANOTHER, 62 * SECOND, "0.0.0.0");
	assert_asked(SERVICE, 60 * SECOND, 61 * SECOND);
	assert_asked(NULL, 70 * SECOND, 71 * SECOND);
}

/* Of each that is completed, the end has to be known. */
UDP_TEST(no_more_addresses_are_taken_than_end)
{
	static const char *const locals[] = { "10.0.0.2", "10.0.0.3", "10.0.0.4",
					      "10.0.0.5", "10.0.0.6" };
	const int64_t hour = 3600 * SECOND;

	note(CONNECT_SENT, SERVICE, COOKIE, 1000, "0.0.0.0");
	for (size_t i = 0; i < ARRAY_SIZE(locals); i++)
		assert_asked_from(locals[i], i < 4 ? SERVICE : NULL, 1000, 1100);
	note(CONNECT_END, SERVICE, COOKIE, 2000, "0.0.0.0");
	for (size_t i = 0; i < ARRAY_SIZE(locals); i++)
		assert_asked_from(locals[i], NULL, hour, hour);
	/* The next one has their places. */
	note(CONNECT_SENT, SERVICE, ANOTHER, hour, "0.0.0.0");
	assert_asked_from(locals[4], SERVICE, hour, hour);
}

UDP_TEST(what_completes_it_renews_it)
{
	const struct translation *partial;

	note(CONNECT_SENT, SERVICE, COOKIE, 1000, "0.0.0.0");
	partial = &translations.table.list[0];
	for (int64_t ms = 2000; ms < 10000; ms += 1000) {
		translations.table.drains++;
		assert_asked(SERVICE, ms, ms + 100);
		translations.table.drains++;
		assert_int_equal(translation_last(&translations.table, partial),
				 (ms + 100) * NSEC_PER_MSEC);
	}
}

/* That one may have been another one's. */
UDP_TEST(a_tuple_for_which_there_was_no_room_is_unclear)
{
	const struct face_key key = { .tuple = { .src_port = LOCAL_PORT,
						 .dst_port = BACKEND_PORT },
				      .proto = IP_PROTO_UDP,
				      .side = AFTER };
	struct face_key of_nat = key;

	set_addr(of_nat.tuple.src.bytes, LOCAL);
	set_addr(of_nat.tuple.dst.bytes, BACKEND);
	begin(SERVICE, COOKIE, 1000);
	assert_asked(SERVICE, 1500, 1600);
	translations.table.max = 1;
	translations.table.is_held = true;
	begin(OTHER, ANOTHER, 1400);
	assert_int_equal(translations.table.refused, 1);
	assert_asked(NULL, 1500, 1600);
	/* For NAT, that changes nothing. */
	assert_int_equal(translations.table.lost_ns, 0);
	assert_false(translation_table_has_lost(&translations.table, &of_nat));
}

/* A conversation of another host, whose answers NAT sends on; zones are not known of packets. */
static void forward(const char *client, uint16_t zone)
{
	const struct nat_event event = {
		.time_ns = 1000 * NSEC_PER_MSEC,
		.tuples = { nat_tuple_of(client, 1000, BACKEND, BACKEND_PORT,
					 IP_PROTO_UDP),
			    nat_tuple_of(BACKEND, BACKEND_PORT, LOCAL,
					 LOCAL_PORT, IP_PROTO_UDP) },
		.netns = 1,
		.zone = zone,
		.dir = NAT_REPLY,
		.from_ifindex = 3,
		.ifindex = 4,
	};

	translations_note(&translations, &event);
}

UDP_TEST(answers_that_nat_may_send_to_several_are_no_sockets)
{
	const struct packets answer = { LOCAL, true, 1000, 1100 };

	begin(SERVICE, COOKIE, 1000);
	assert_true(record_of(&answer, 1).has & NETOBS_HAS_XLAT);
	forward("10.1.0.1", 1);
	forward("10.1.0.2", 2);
	assert_false(record_of(&answer, 1).has & NETOBS_HAS_XLAT);
}

/* Of any of them, the end may be among these, or another one with its tuple. */
UDP_TEST(lost_reports_leave_nothing_of_sockets)
{
	begin(SERVICE, COOKIE, 1000);
	end(SERVICE, COOKIE, 2000);
	begin(OTHER, ANOTHER, 3000);
	/* Entries that are read find the same as before. */
	translations.table.is_held = true;
	socket_translations_note_lost(&translations.sockets, 1);
	assert_asked(SERVICE, 1500, 1600);
	translations.table.is_held = false;
	socket_translations_note_lost(&translations.sockets, 1);
	assert_int_equal(translations.table.known, 0);
	assert_asked(NULL, 1500, 1600);
	begin(SERVICE, COOKIE, 5000);
	socket_translations_note_lost(&translations.sockets, 1);
	assert_int_equal(translations.table.known, 1);
}

UDP_TEST(missed_calls_leave_nothing_of_udp)
{
	begin(SERVICE, COOKIE, 1000);
	socket_translations_note_missed(&translations.sockets, 1);
	assert_int_equal(translations.table.known, 0);
	assert_asked(NULL, 1500, 1600);
}

/* Such a call may be reported with the address of an earlier one, also after the kernel has counted it. */
UDP_TEST(skipped_calls_leave_nothing_of_udp_twice)
{
	struct socket_translations *sockets = &translations.sockets;

	for (uint64_t n = 1; n <= 2; n++) {
		begin(SERVICE, COOKIE, 1000);
		socket_translations_note_skipped(sockets, n);
		assert_asked(NULL, 1500, 1600);
		begin(OTHER, COOKIE, 2000);
		socket_translations_note_skipped(sockets, n);
		assert_asked(NULL, 2500, 2600);
		begin(SERVICE, COOKIE, 3000);
		socket_translations_note_skipped(sockets, n);
		assert_asked(SERVICE, 3500, 3600);
		end(SERVICE, COOKIE, 4000);
	}
}

TCP_TEST(missed_calls_leave_tcp_alone)
{
	begin(SERVICE, COOKIE, 1000);
	socket_translations_note_missed(&translations.sockets, 1);
	assert_int_equal(translations.table.known, 1);
	assert_asked(SERVICE, 1500, 1600);
}
