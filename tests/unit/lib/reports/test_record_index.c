/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Conversations that records of netobs tell of, and those that several could be. */
#include "lib_addr.h"
#include "lib_test.h"

#include <stdarg.h>

#include "reports/record_index.h"

enum { SLACK_MS = 1000 };

static int set_up(void **state)
{
	struct netobs_annotator *index;
	const int r = netobs_annotator_new(&index);

	*state = index;
	return r;
}

static int tear_down(void **state)
{
	netobs_annotator_free(*state);
	return 0;
}

static void add(struct netobs_annotator *index, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void add(struct netobs_annotator *index, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	assert_non_null(json_parse(text).at);
	assert_int_equal(record_index_add(index, json_parse(text)), 0);
}

/* "10.0.0.1", 5 > "192.0.2.1", 80 as members of TCP */
#define FROM_TO(src, sport, dst, dport)                                     \
	"\"SrcAddr\":\"" src "\",\"SrcPort\":" #sport ",\"DstAddr\":\"" dst \
	"\",\"DstPort\":" #dport ",\"Proto\":6"
#define XLAT(src, sport, dst, dport)                          \
	"\"XlatSrcAddr\":\"" src "\",\"XlatSrcPort\":" #sport \
	",\"XlatDstAddr\":\"" dst "\",\"XlatDstPort\":" #dport
#define ORIG(src, sport, dst, dport)                          \
	"\"OrigSrcAddr\":\"" src "\",\"OrigSrcPort\":" #sport \
	",\"OrigDstAddr\":\"" dst "\",\"OrigDstPort\":" #dport
#define AT(start, end) "\"TimeFlowStartMs\":" #start ",\"TimeFlowEndMs\":" #end

#define MAPPING_BEGIN \
	"{\"type\":\"mapping\",\"Event\":\"begin\",\"State\":\"active\","
#define MAPPING_END \
	"{\"type\":\"mapping\",\"Event\":\"end\",\"State\":\"ended\","

#define INNER FROM_TO("10.0.0.1", 5000, "192.0.2.9", 80)
#define TO_OUTER XLAT("198.51.100.1", 20000, "192.0.2.9", 80)
#define BACK FROM_TO("192.0.2.9", 80, "198.51.100.1", 20000)
#define TO_INNER XLAT("192.0.2.9", 80, "10.0.0.1", 5000)

static struct flow_face make_face(const char *src, uint16_t src_port,
				  const char *dst, uint16_t dst_port)
{
	struct flow_face face = { .src_port = src_port,
				  .dst_port = dst_port,
				  .proto = 6 };

	set_addr(face.src, src);
	set_addr(face.dst, dst);
	return face;
}

#define OUTER_FACE make_face("198.51.100.1", 20000, "192.0.2.9", 80)
#define INNER_FACE make_face("10.0.0.1", 5000, "192.0.2.9", 80)

static struct conversation_facts find(const struct netobs_annotator *index,
				      struct flow_face face, int64_t start_ms,
				      int64_t end_ms, enum record_answer wanted)
{
	struct conversation_facts facts = { 0 };

	assert_int_equal(record_index_find(index, &face,
					   (struct flow_span){ start_ms, end_ms },
					   &facts),
			 wanted);
	return facts;
}

static void assert_face(bool is_known, struct flow_face found,
			struct flow_face wanted)
{
	assert_true(is_known);
	assert_true(flow_face_equal(&found, &wanted));
}

#define CASE(name) \
	TEST_OF(name, struct netobs_annotator *index, set_up, tear_down)

CASE(either_side_is_found_from_the_other_in_both_directions)
{
	struct conversation_facts facts;
	struct flow_face outer = OUTER_FACE, inner = INNER_FACE;

	add(index, "{" INNER "," TO_OUTER
		   "," AT(1000, 2000) ",\"ZoneId\":0"
				      ",\"ConversationId\":\"00000000000000ab\""
				      ",\"SrcPid\":7,\"SrcProcess\":\"curl\"}");
	facts = find(index, outer, 1500, 1600, RECORD_FOUND);
	assert_face(facts.has_before, facts.before, inner);
	assert_false(facts.has_after);
	assert_int_equal(facts.id, 0xab);
	assert_int_equal(facts.zone, 1);
	assert_string_equal(facts.ends[0]->members[0],
			    ",\"SrcPid\":7,\"SrcProcess\":\"curl\"");
	assert_null(facts.ends[1]);

	facts = find(index, flow_face_back(&outer), 1500, 1600, RECORD_FOUND);
	assert_face(facts.has_after, facts.after, flow_face_back(&inner));
	assert_false(facts.has_before);
	assert_string_equal(facts.ends[1]->members[1],
			    ",\"DstPid\":7,\"DstProcess\":\"curl\"");
	assert_null(facts.ends[0]);

	facts = find(index, inner, 1500, 1600, RECORD_FOUND);
	assert_face(facts.has_after, facts.after, outer);
}

CASE(times_that_are_apart_by_more_than_the_slack_do_not_fit)
{
	static const struct {
		int64_t start_ms, end_ms;
		enum record_answer answer;
	} rows[] = {
		{ 10, 3999, RECORD_NONE },     { 10, 4000, RECORD_FOUND },
		{ 7000, 7001, RECORD_FOUND },  { 7001, 9000, RECORD_NONE },
		{ 1000, 20000, RECORD_FOUND },
	};

	add(index, "{" INNER "," TO_OUTER "," AT(5000, 6000) "}");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		find(index, OUTER_FACE, rows[i].start_ms, rows[i].end_ms,
		     rows[i].answer);
}

CASE(two_that_used_one_port_are_told_apart_by_time_only)
{
	struct conversation_facts facts;

	add(index, "{" INNER "," TO_OUTER "," AT(1000, 2000) "}");
	add(index, "{" FROM_TO("10.0.0.2", 6000, "192.0.2.9",
			       80) "," TO_OUTER "," AT(9000, 9500) "}");
	facts = find(index, OUTER_FACE, 1500, 1600, RECORD_FOUND);
	assert_face(facts.has_before, facts.before, INNER_FACE);
	facts = find(index, OUTER_FACE, 9100, 9200, RECORD_FOUND);
	assert_face(facts.has_before, facts.before,
		    make_face("10.0.0.2", 6000, "192.0.2.9", 80));
	find(index, OUTER_FACE, 1500, 9200, RECORD_AMBIGUOUS);
}

/* Another conversation had the port outside, or has it since: the one without the slack is taken. */
CASE(what_fits_by_the_slack_only_adds_nothing)
{
	struct conversation_facts facts;

	add(index, "{" FROM_TO("198.51.100.1", 20000, "192.0.2.9",
			       80) "," AT(1000, 2000) ",\"SrcPid\":9}");
	add(index, "{" INNER "," TO_OUTER "," AT(2500, 3500) "}");
	facts = find(index, OUTER_FACE, 1500, 1600, RECORD_FOUND);
	assert_false(facts.has_before);
	assert_int_equal(facts.ends[0]->pid, 9);
	facts = find(index, OUTER_FACE, 2600, 2700, RECORD_FOUND);
	assert_face(facts.has_before, facts.before, INNER_FACE);
	assert_null(facts.ends[0]);
}

/* The clocks of a mapping and of the packets that it is of are read at different moments. */
CASE(a_flow_within_a_mapping_adds_its_process)
{
	struct conversation_facts facts;

	add(index, MAPPING_END "\"TimeMs\":2000," INNER "," TO_OUTER
			       "," AT(1000, 2000) "}");
	add(index, "{" INNER "," TO_OUTER "," AT(1004, 1004) ",\"SrcPid\":7}");
	add(index, "{" INNER "," TO_OUTER "," AT(2800, 2800) ",\"SrcPid\":8}");
	facts = find(index, OUTER_FACE, 1003, 1003, RECORD_FOUND);
	assert_face(facts.has_before, facts.before, INNER_FACE);
	assert_non_null(facts.ends[0]);
	assert_int_equal(facts.ends[0]->pid, 7);
	/* Another process has it within the slack. */
	facts = find(index, OUTER_FACE, 1900, 1900, RECORD_FOUND);
	assert_null(facts.ends[0]);
}

CASE(conversations_of_one_agent_are_told_apart_by_their_ids)
{
	struct conversation_facts facts;

	add(index,
	    "{" INNER "," TO_OUTER
	    "," AT(1000,
		   2000) ",\"ConversationId\":\"00000000000000ab\",\"AgentIP\":\"10.9.9.1\"}");
	/* The server has it by the addresses that it sees. */
	add(index,
	    "{" FROM_TO("198.51.100.1", 20000, "192.0.2.9", 80) "," AT(
		    1000,
		    2000) ",\"DstPid\":8"
			  ",\"ConversationId\":\"00000000000000cd\",\"AgentIP\":\"10.9.9.2\"}");
	facts = find(index, OUTER_FACE, 1500, 1600, RECORD_FOUND);
	assert_face(facts.has_before, facts.before, INNER_FACE);
	assert_int_equal(facts.id, 0);
	assert_int_equal(facts.ends[1]->pid, 8);
	/* A process of the router has the port since. */
	add(index,
	    "{" FROM_TO("198.51.100.1", 20000, "192.0.2.9", 80) "," AT(
		    2100,
		    2200) ",\"SrcPid\":9"
			  ",\"ConversationId\":\"00000000000000ef\",\"AgentIP\":\"10.9.9.1\"}");
	find(index, OUTER_FACE, 1500, 2150, RECORD_AMBIGUOUS);
	find(index, OUTER_FACE, 1500, 1600, RECORD_AMBIGUOUS);
	find(index, OUTER_FACE, 100, 900, RECORD_FOUND);
}

CASE(faces_with_very_many_records_are_bounded)
{
	for (int64_t i = 0; i < 100000; i++)
		add(index,
		    "{" INNER "," TO_OUTER ",\"TimeFlowStartMs\":%lld"
		    ",\"TimeFlowEndMs\":%lld}",
		    (long long)(10000 * i), (long long)(10000 * i + 1));
	find(index, OUTER_FACE, 999990000, 999990000, RECORD_AMBIGUOUS);
	find(index, OUTER_FACE, 50000, 50000, RECORD_NONE);
}

CASE(records_of_both_directions_agree)
{
	struct conversation_facts facts;

	add(index, "{" INNER "," TO_OUTER "," AT(1000, 2000) ",\"SrcPid\":7}");
	add(index, "{" BACK "," TO_INNER "," AT(1100, 2100) ",\"SrcPid\":8}");
	add(index, "{" FROM_TO("198.51.100.1", 20000, "192.0.2.9",
			       80) "," ORIG("10.0.0.1", 5000, "192.0.2.9",
					    80) "," AT(1000, 2000) "}");
	facts = find(index, OUTER_FACE, 1500, 1600, RECORD_FOUND);
	assert_face(facts.has_before, facts.before, INNER_FACE);
	assert_int_equal(facts.ends[0]->pid, 7);
	assert_int_equal(facts.ends[1]->pid, 8);
}

CASE(of_a_process_that_executed_another_program_the_newer_is_named)
{
	struct conversation_facts facts;

	add(index, "{" INNER
		   "," AT(2000, 3000) ",\"SrcPid\":7,\"SrcProcess\":\"new\"}");
	add(index, "{" INNER
		   "," AT(1000, 2000) ",\"SrcPid\":7,\"SrcProcess\":\"old\"}");
	facts = find(index, INNER_FACE, 1000, 3000, RECORD_FOUND);
	assert_string_equal(facts.ends[0]->members[0],
			    ",\"SrcPid\":7,\"SrcProcess\":\"new\"");
}

/* Containers of two hosts have the same address, and each of them one process, the first one. */
CASE(one_number_on_two_hosts_names_two_processes)
{
	struct conversation_facts facts;

	add(index,
	    "{" INNER
	    "," AT(1000,
		   2000) ",\"SrcPid\":1,\"SrcProcess\":\"one\",\"AgentIP\":\"10.9.9.1\"}");
	facts = find(index, INNER_FACE, 1000, 2000, RECORD_FOUND);
	assert_non_null(facts.ends[0]);
	for (int i = 0; i < 2; i++) { /* as another program, and as the same */
		add(index,
		    "{" INNER
		    "," AT(1000,
			   2000) ",\"SrcPid\":1,\"SrcProcess\":\"%s\",\"AgentIP\":\"10.9.9.2\"}",
		    i ? "one" : "other");
		facts = find(index, INNER_FACE, 1000, 2000, RECORD_FOUND);
		assert_true(facts.is_contradicted[0]);
		assert_null(facts.ends[0]);
	}
}

CASE(a_session_names_the_process_behind_a_mapping)
{
	struct conversation_facts facts;

	add(index, MAPPING_BEGIN "\"TimeMs\":1000," INNER "," TO_OUTER
				 "," AT(1000, 1000) ",\"ZoneId\":3}");
	add(index, "{\"type\":\"session\",\"TimeMs\":2000," INNER
		   "," AT(900, 2000) ",\"Pid\":7,\"Process\":\"curl\"}");
	facts = find(index, OUTER_FACE, 1500, 1600, RECORD_FOUND);
	assert_face(facts.has_before, facts.before, INNER_FACE);
	assert_int_equal(facts.zone, 4);
	assert_string_equal(facts.ends[0]->members[0],
			    ",\"SrcPid\":7,\"SrcProcess\":\"curl\"");
}

CASE(an_inner_face_that_two_conversations_have_names_no_process)
{
	struct conversation_facts facts;

	/* Of two zones: one tuple inside, two outside. */
	add(index, MAPPING_END "\"TimeMs\":2000," INNER "," TO_OUTER
			       "," AT(1000, 2000) ",\"ZoneId\":1}");
	add(index, MAPPING_END "\"TimeMs\":2000," INNER
			       "," XLAT("198.51.100.1", 20001, "192.0.2.9",
					80) "," AT(1000, 2000) ",\"ZoneId\":2}");
	add(index, "{\"type\":\"session\",\"TimeMs\":2000," INNER
		   "," AT(900, 2000) ",\"Pid\":7}");
	facts = find(index, OUTER_FACE, 1500, 1600, RECORD_FOUND);
	assert_face(facts.has_before, facts.before, INNER_FACE);
	assert_null(facts.ends[0]);
	find(index, INNER_FACE, 1500, 1600, RECORD_AMBIGUOUS);
}

CASE(tenants_with_one_tuple_are_ambiguous)
{
	add(index, "{" INNER "," AT(1000, 2000) ",\"Vni\":1,\"SrcPid\":7}");
	find(index, INNER_FACE, 1000, 2000, RECORD_FOUND);
	add(index, "{" INNER "," AT(1000, 2000) ",\"Vni\":2}");
	find(index, INNER_FACE, 1000, 2000, RECORD_AMBIGUOUS);
}

CASE(a_mapping_lasts_until_its_end_or_the_last_record)
{
	add(index, MAPPING_BEGIN "\"TimeMs\":10000," INNER "," TO_OUTER
				 "," AT(10000, 10000) "}");
	find(index, OUTER_FACE, 50000, 50000, RECORD_NONE);
	add(index,
	    "{" FROM_TO("10.0.0.9", 1, "10.0.0.8", 2) "," AT(50000, 60000) "}");
	find(index, OUTER_FACE, 50000, 50000, RECORD_FOUND);
	/* A service that was started anew lists it again, and flows have the face. */
	add(index, MAPPING_BEGIN "\"TimeMs\":20000," INNER "," TO_OUTER "}");
	assert_int_equal(index->n_entries, 2);
	for (int i = 0; i < 20; i++)
		add(index,
		    "{" INNER ",\"TimeFlowStartMs\":%d,\"TimeFlowEndMs\":%d}",
		    10000 + 1500 * i, 10001 + 1500 * i);
	assert_int_equal(index->n_entries, 22);
	add(index, MAPPING_END "\"TimeMs\":40000,"
			       "\"EndedMs\":40000," INNER "," TO_OUTER
			       "," AT(10000, 30000) "}");
	assert_int_equal(index->n_entries, 22);
	find(index, OUTER_FACE, 50000, 50000, RECORD_NONE);
	find(index, OUTER_FACE, 29000, 29000, RECORD_FOUND);
}

/* Two hosts redirect the same addresses. */
CASE(the_end_of_another_hosts_mapping_ends_none)
{
	struct conversation_facts facts;

	for (int host = 1; host <= 2; host++)
		add(index,
		    MAPPING_BEGIN
		    "\"AgentIP\":\"10.9.9.%d\",\"ConversationId\":\"%016d\","
		    "\"TimeMs\":%d," INNER "," TO_OUTER "," AT(1000, 1000) "}",
		    host, host, 1000 * host);
	add(index, MAPPING_END
	    "\"AgentIP\":\"10.9.9.1\",\"TimeMs\":20000,\"EndedMs\":20000," INNER
	    "," TO_OUTER "," AT(1000, 20000) "}");
	assert_int_equal(index->n_entries, 2);
	add(index,
	    "{" FROM_TO("10.0.0.9", 1, "10.0.0.8", 2) "," AT(50000, 60000) "}");
	facts = find(index, OUTER_FACE, 50000, 50000, RECORD_FOUND);
	assert_int_equal(facts.id, 2);
}

CASE(an_older_mapping_is_known_from_its_last_packet_on)
{
	add(index,
	    "{\"type\":\"mapping\",\"Event\":\"known\",\"State\":\"active\","
	    "\"TimeMs\":50000," INNER "," TO_OUTER ",\"TimeFlowEndMs\":40000}");
	find(index, OUTER_FACE, 30000, 30000, RECORD_NONE);
	find(index, OUTER_FACE, 30000, 40000, RECORD_FOUND);
	find(index, OUTER_FACE, 49000, 50000, RECORD_FOUND);
}

CASE(faces_behind_several_routers_are_followed_to_the_end)
{
	struct conversation_facts facts;

	/* The flow has the last one; mappings have each. */
	add(index, "{" INNER "," TO_OUTER "," AT(1000, 2000) ",\"SrcPid\":7}");
	add(index, MAPPING_END
	    "\"TimeMs\":2000," INNER
	    "," XLAT("10.1.0.1", 6000, "192.0.2.9", 80) "," AT(1000, 2000) "}");
	add(index, MAPPING_END
	    "\"TimeMs\":2000," FROM_TO("10.1.0.1", 6000, "192.0.2.9",
				       80) "," TO_OUTER "," AT(1000, 2000) "}");
	facts = find(index, OUTER_FACE, 1500, 1600, RECORD_FOUND);
	assert_face(facts.has_before, facts.before, INNER_FACE);
	assert_int_equal(facts.ends[0]->pid, 7);
	facts = find(index, INNER_FACE, 1500, 1600, RECORD_FOUND);
	assert_face(facts.has_after, facts.after, OUTER_FACE);
	facts = find(index, make_face("10.1.0.1", 6000, "192.0.2.9", 80), 1500,
		     1600, RECORD_FOUND);
	assert_face(facts.has_before, facts.before, INNER_FACE);
	assert_face(facts.has_after, facts.after, OUTER_FACE);
}

CASE(what_has_no_addresses_or_times_is_ignored)
{
	add(index, "{\"type\":\"stats\",\"TimeMs\":1000}");
	add(index, "{" INNER "," TO_OUTER "}");
	add(index, "{\"type\":\"alert\"," INNER "," AT(1000, 2000) "}");
	add(index,
	    "{\"SrcAddr\":\"nonsense\",\"DstAddr\":\"10.0.0.1\",\"Proto\":6," AT(
		    1000, 2000) "}");
	assert_int_equal(index->n_entries, 0);
	find(index, INNER_FACE, 0, 5000, RECORD_NONE);
}

CASE(records_of_a_flow_share_an_entry)
{
	for (int i = 0; i < 1000; i++)
		add(index,
		    "{" INNER "," TO_OUTER ",\"TimeFlowStartMs\":%d,"
		    "\"TimeFlowEndMs\":%d,\"SrcPid\":7}",
		    1000 + i * 1000, 1900 + i * 1000);
	assert_int_equal(index->n_entries, 1);
	add(index,
	    "{" INNER "," TO_OUTER "," AT(2000000, 2000001) ",\"SrcPid\":7}");
	assert_int_equal(index->n_entries, 2);
	find(index, OUTER_FACE, 1990000, 1990000, RECORD_NONE);
	find(index, OUTER_FACE, 500000, 500000, RECORD_FOUND);
}

/* Of random mappings, each is found by its outer tuple, whatever the size of the table. */
CASE(each_of_many_is_found)
{
	enum { COUNT = 20000 };
	struct conversation_facts facts;

	for (int i = 0; i < COUNT; i++)
		add(index,
		    "{\"SrcAddr\":\"10.0.%d.%d\",\"SrcPort\":%d,"
		    "\"DstAddr\":\"192.0.2.9\",\"DstPort\":80,\"Proto\":6,"
		    "\"XlatSrcAddr\":\"198.51.100.1\",\"XlatSrcPort\":%d,"
		    "\"XlatDstAddr\":\"192.0.2.9\",\"XlatDstPort\":80," AT(
			    1000, 2000) ",\"SrcPid\":%d}",
		    i / 250, i % 250, 1000 + i, 30000 + i, i + 1);
	assert_int_equal(index->n_entries, COUNT);
	for (int i = 0; i < COUNT; i++) {
		char text[32];

		snprintf(text, sizeof(text), "10.0.%d.%d", i / 250, i % 250);
		facts = find(index,
			     make_face("198.51.100.1", (uint16_t)(30000 + i),
				       "192.0.2.9", 80),
			     1000, 1000, RECORD_FOUND);
		assert_face(facts.has_before, facts.before,
			    make_face(text, (uint16_t)(1000 + i), "192.0.2.9",
				      80));
		assert_int_equal(facts.ends[0]->pid, i + 1);
	}
}
