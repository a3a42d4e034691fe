/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A record names what the process asked for whose socket has such packets, or nothing. */
#include "flows/translations.h"

#include "base/clock.h"
#include "bpf/parse/headers.h"
#include "lib_test.h"

#include <arpa/inet.h>
#include <netobs/flow.h>
#include <string.h>

enum { LOCAL_PORT = 40000, SERVICE_PORT = 80, BACKEND_PORT = 8080 };
enum { SECOND = 1000, SPACE = 4026531992, COOKIE = 7, ANOTHER = 8 };

static const char *const LOCAL = "10.0.0.2", *const BACKEND = "10.0.2.2",
			 *const SERVICE = "10.96.0.1", *const OTHER = "10.96.0.2";

static void set_address(uint8_t to[16], const char *text)
{
	memset(to, 0, 16);
	to[10] = to[11] = 0xff;
	assert_int_equal(inet_pton(AF_INET, text, to + 12), 1);
}

static void note(struct translations *translations, enum connect_kind kind,
		 const char *asked, uint64_t cookie, int64_t ms,
		 const char *local)
{
	struct connect_event event = {
		.time_ns = (uint64_t)ms * NSEC_PER_MSEC,
		.cookie = cookie,
		.tuple = { .local_port = LOCAL_PORT,
			   .remote_port = BACKEND_PORT,
			   .netns = SPACE,
			   .protocol = IP_PROTO_UDP },
		.asked_port = asked == BACKEND ? BACKEND_PORT : SERVICE_PORT,
		.kind = (uint8_t)kind,
	};

	set_address(event.tuple.local, local);
	set_address(event.tuple.remote, BACKEND);
	set_address(event.asked, asked);
	socket_translations_note(&translations->sockets, &event);
}

static void begin(struct translations *translations, const char *asked,
		  uint64_t cookie, int64_t ms)
{
	note(translations, CONNECT_BEGIN, asked, cookie, ms, LOCAL);
}

static void end(struct translations *translations, const char *asked,
		uint64_t cookie, int64_t ms)
{
	note(translations, CONNECT_END, asked, cookie, ms, LOCAL);
}

/* Of packets to the backend, or from it. */
static struct netobs_flow record_of(struct translations *translations,
				    bool is_answer, int64_t first_ms,
				    int64_t last_ms)
{
	uint64_t data[FLOW_EXTRA_BYTES_MAX / sizeof(uint64_t)] = { 0 };
	const struct flow_extra *extra = &translations->extra;
	struct flow_entry entry = {
		.key = { .src_port = is_answer ? BACKEND_PORT : LOCAL_PORT,
			 .dst_port = is_answer ? LOCAL_PORT : BACKEND_PORT,
			 .ifindex = 3,
			 .netns = 1,
			 .proto = IP_PROTO_UDP,
			 .flags = is_answer ? 0 : KEY_EGRESS },
		.tally = { .first_ns = (uint64_t)first_ms * NSEC_PER_MSEC,
			   .last_ns = (uint64_t)last_ms * NSEC_PER_MSEC },
	};
	struct netobs_flow record = { .sz = sizeof(record),
				      .proto = IP_PROTO_UDP,
				      .has = NETOBS_HAS_PORTS,
				      .src_port = entry.key.src_port,
				      .dst_port = entry.key.dst_port };

	set_address(entry.key.src.bytes, is_answer ? BACKEND : LOCAL);
	set_address(entry.key.dst.bytes, is_answer ? LOCAL : BACKEND);
	memcpy(record.src, entry.key.src.bytes, sizeof(record.src));
	memcpy(record.dst, entry.key.dst.bytes, sizeof(record.dst));
	extra->note(data, &entry, extra->ctx);
	extra->fill(data, &record, extra->ctx);
	return record;
}

static void assert_asked(struct translations *translations, const char *asked,
			 int64_t first_ms, int64_t last_ms)
{
	const struct netobs_flow there =
		record_of(translations, false, first_ms, last_ms);
	const struct netobs_flow back =
		record_of(translations, true, first_ms, last_ms);
	uint8_t wanted[16];

	assert_int_equal(!!(there.has & NETOBS_HAS_ORIG), asked != NULL);
	assert_int_equal(!!(back.has & NETOBS_HAS_XLAT), asked != NULL);
	assert_false(there.has & (NETOBS_HAS_XLAT | NETOBS_HAS_ZONE));
	assert_false(back.has & (NETOBS_HAS_ORIG | NETOBS_HAS_ZONE));
	if (!asked)
		return;
	set_address(wanted, asked);
	assert_memory_equal(there.orig_dst, wanted, sizeof(wanted));
	assert_int_equal(there.orig_dst_port, SERVICE_PORT);
	assert_int_equal(there.orig_src_port, LOCAL_PORT);
	assert_memory_equal(back.xlat_src, wanted, sizeof(wanted));
	assert_int_equal(back.xlat_src_port, SERVICE_PORT);
	assert_int_equal(there.conversation_id, back.conversation_id);
}

static void open_table(struct translations *translations)
{
	assert_int_equal(translations_init(translations,
					   &(struct translations_options){
						   .knows_zones = true }),
			 0);
	translations->sockets.table = &translations->table;
}

static void packets_and_answers_name_it(void **state)
{
	struct translations translations;

	(void)state;
	open_table(&translations);
	assert_asked(&translations, NULL, 1000, 1100);
	begin(&translations, SERVICE, COOKIE, 1000);
	assert_asked(&translations, SERVICE, 1000, 1100);
	translations_close(&translations);
}

static void an_open_socket_may_be_silent(void **state)
{
	const int64_t hour = 3600 * SECOND;
	struct translations translations;

	(void)state;
	open_table(&translations);
	begin(&translations, SERVICE, COOKIE, 1000);
	assert_asked(&translations, SERVICE, hour, hour);
	end(&translations, SERVICE, COOKIE, hour);
	assert_asked(&translations, SERVICE, hour + 10, hour + 5 * SECOND);
	assert_asked(&translations, NULL, hour + 11 * SECOND, hour + 12 * SECOND);
	translations_close(&translations);
}

static void the_next_socket_with_its_tuple_names_its_own(void **state)
{
	struct translations translations;

	(void)state;
	open_table(&translations);
	begin(&translations, SERVICE, COOKIE, 1000);
	end(&translations, SERVICE, COOKIE, 2000);
	begin(&translations, OTHER, ANOTHER, 3000);
	assert_asked(&translations, SERVICE, 1000, 1900);
	assert_asked(&translations, OTHER, 3000, 3100);
	/* Packets of both, or of neither alone. */
	assert_asked(&translations, NULL, 1500, 3100);
	translations_close(&translations);
}

static void the_next_socket_may_be_direct(void **state)
{
	struct translations translations;

	(void)state;
	open_table(&translations);
	begin(&translations, SERVICE, COOKIE, 1000);
	end(&translations, SERVICE, COOKIE, 2000);
	note(&translations, CONNECT_DIRECT, BACKEND, ANOTHER, 3000, LOCAL);
	assert_asked(&translations, NULL, 3000, 3100);
	assert_asked(&translations, NULL, 1500, 3100);
	assert_asked(&translations, SERVICE, 1000, 1900);
	translations_close(&translations);
}

static void earlier_packets_are_of_others(void **state)
{
	struct translations translations;

	(void)state;
	open_table(&translations);
	begin(&translations, SERVICE, COOKIE, 1000);
	assert_asked(&translations, NULL, 100, 1100);
	assert_asked(&translations, NULL, 100, 200);
	translations_close(&translations);
}

/* The time of packets may be some milliseconds too early. */
static void packets_of_another_socket_just_before_are_not_taken(void **state)
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
	struct translations translations;

	(void)state;
	set_address(event.tuple.local, LOCAL);
	set_address(event.tuple.remote, BACKEND);
	set_address(event.asked, SERVICE);
	open_table(&translations);
	socket_translations_note(&translations.sockets, &event);
	assert_asked(&translations, SERVICE, 990, 1100);
	translations_close(&translations);
	open_table(&translations);
	event.is_another = 1;
	socket_translations_note(&translations.sockets, &event);
	assert_asked(&translations, NULL, 990, 1100);
	assert_asked(&translations, SERVICE, 1000, 1100);
	translations_close(&translations);
}

static void the_end_of_another_socket_ends_nothing(void **state)
{
	struct translations translations;

	(void)state;
	open_table(&translations);
	begin(&translations, SERVICE, COOKIE, 1000);
	end(&translations, SERVICE, ANOTHER, 1500);
	assert_asked(&translations, SERVICE, 60 * SECOND, 61 * SECOND);
	translations_close(&translations);
}

static void packets_complete_what_sends_from_any_address(void **state)
{
	const struct translation *whole;
	struct translations translations;

	(void)state;
	open_table(&translations);
	note(&translations, CONNECT_SENT, SERVICE, COOKIE, 1000, "0.0.0.0");
	assert_int_equal(translations.table.known, 1);
	assert_true(translations.table.list[0].is_partial);
	assert_false(translation_changes(&translations.table.list[0]));
	assert_asked(&translations, SERVICE, 1000, 1100);
	assert_int_equal(translations.table.known, 2);
	whole = &translations.table.list[1];
	assert_true(translation_changes(whole));
	assert_int_equal(whole->ended_ns, 0);
	note(&translations, CONNECT_END, SERVICE, COOKIE, 2000, "0.0.0.0");
	assert_int_equal(whole->ended_ns, 2000 * NSEC_PER_MSEC);
	assert_asked(&translations, NULL, 20 * SECOND, 21 * SECOND);
	translations_close(&translations);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_and_answers_name_it),
		cmocka_unit_test(an_open_socket_may_be_silent),
		cmocka_unit_test(the_next_socket_with_its_tuple_names_its_own),
		cmocka_unit_test(the_next_socket_may_be_direct),
		cmocka_unit_test(earlier_packets_are_of_others),
		cmocka_unit_test(
			packets_of_another_socket_just_before_are_not_taken),
		cmocka_unit_test(the_end_of_another_socket_ends_nothing),
		cmocka_unit_test(packets_complete_what_sends_from_any_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
