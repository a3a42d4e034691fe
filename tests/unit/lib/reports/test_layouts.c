// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Records of all layouts, and those whose ends or times are doubtful. */
#include "lib_test.h"

#include <time.h>

#include "reports/record_index.h"

/* 2023-11-14, 22:13:20.5 UTC, and half a second later */
#define START_MS 1700000000500
#define END_MS 1700000001000

static int set_zone(void **state)
{
	(void)state;
	setenv("TZ", "UTC", 1);
	tzset();
	return 0;
}

static bool read_text(const char *text, struct flow_face *face,
		      struct flow_span *span)
{
	const struct json_value record = json_parse(text);

	assert_non_null(record.at);
	*span = (struct flow_span){ 0 };
	return layout_read(record, face, span);
}

/* In the forms that the programs' documentation has. */
static const char *const records[] = {
	"{\"SrcAddr\":\"10.0.0.1\",\"DstAddr\":\"192.0.2.9\",\"SrcPort\":5000,\"DstPort\":80,"
	"\"Proto\":17,\"TimeFlowStartMs\":1700000000500,\"TimeFlowEndMs\":1700000001000}",

	"{\n\t\"type\" : \"FLOW\",\n\t\"export_sysid\" : 1,\n"
	"\t\"first\" : \"2023-11-14T22:13:20.500\",\n\t\"last\" : \"2023-11-14T22:13:21.000\",\n"
	"\t\"in_packets\" : 3,\n\t\"proto\" : 17,\n\t\"src_port\" : 5000,\n\t\"dst_port\" : 80,\n"
	"\t\"src4_addr\" : \"10.0.0.1\",\n\t\"dst4_addr\" : \"192.0.2.9\"\n}",

	"{\"template:0xb800(flows)\": {\"flowStartMilliseconds\": \"2023-11-14 22:13:20.500Z\","
	"\"flowEndMilliseconds\": \"2023-11-14 22:13:21.000Z\",\"octetTotalCount\": 84,"
	"\"sourceIPv4Address\": \"10.0.0.1\",\"destinationIPv4Address\": \"192.0.2.9\","
	"\"sourceTransportPort\": 5000,\"destinationTransportPort\": 80,"
	"\"protocolIdentifier\": 17}}",

	"{\"sourceIPv6Address\":\"::ffff:10.0.0.1\","
	"\"destinationIPv6Address\":\"::ffff:192.0.2.9\",\"sourceTransportPort\":5000,"
	"\"destinationTransportPort\":80,\"protocolIdentifier\":17,"
	"\"flowStartNanoseconds\":1700000000500999999,\"flowEndMicroseconds\":1700000001000999}",

	"{\"type\":\"IPFIX\",\"time_received_ns\":1700000009000000000,\"sampling_rate\":0,"
	"\"sampler_address\":\"192.0.2.1\",\"time_flow_start_ns\":1700000000500000000,"
	"\"time_flow_end_ns\":1700000001000000000,\"bytes\":1500,\"packets\":1,"
	"\"src_addr\":\"10.0.0.1\",\"dst_addr\":\"192.0.2.9\",\"etype\":\"IPv4\",\"proto\":\"UDP\","
	"\"src_port\":5000,\"dst_port\":80}",

	"{\"event_type\": \"purge\", \"ip_src\": \"10.0.0.1\", \"ip_dst\": \"192.0.2.9\", "
	"\"port_src\": 5000, \"port_dst\": 80, \"ip_proto\": \"udp\", "
	"\"timestamp_start\": \"2023-11-14 22:13:20.500000\", "
	"\"timestamp_end\": \"2023-11-14 22:13:21.000000\", \"packets\": 3, \"bytes\": 84}",

	"{\"ip_src\": \"10.0.0.1\", \"ip_dst\": \"192.0.2.9\", \"port_src\": 5000, "
	"\"port_dst\": 80, \"ip_proto\": \"17\", \"timestamp_start\": \"1700000000.500000\", "
	"\"timestamp_end\": \"1700000001.000000\"}",

	"{\"ts\":1700000000.5,\"uid\":\"CMdzit1AMNsmfAIiQc\",\"id.orig_h\":\"10.0.0.1\","
	"\"id.orig_p\":5000,\"id.resp_h\":\"192.0.2.9\",\"id.resp_p\":80,\"proto\":\"udp\","
	"\"service\":\"dns\",\"duration\":0.5,\"conn_state\":\"SF\"}",

	"{\"ts\":\"2023-11-14T22:13:20.500000Z\",\"id\":{\"orig_h\":\"10.0.0.1\",\"orig_p\":5000,"
	"\"resp_h\":\"192.0.2.9\",\"resp_p\":80},\"proto\":\"udp\",\"duration\":0.500000}",

	"{\"timestamp\":\"2023-11-14T23:14:00.000001+0100\",\"flow_id\":586497171462735,"
	"\"event_type\":\"flow\",\"src_ip\":\"10.0.0.1\",\"src_port\":5000,"
	"\"dest_ip\":\"192.0.2.9\",\"dest_port\":80,\"proto\":\"UDP\","
	"\"flow\":{\"pkts_toserver\":1,\"start\":\"2023-11-14T23:13:20.500000+0100\","
	"\"end\":\"2023-11-14T23:13:21.000000+0100\",\"state\":\"established\"}}",
};

TEST(each_layout_has_a_face_and_times)
{
	struct flow_face first, face;
	struct flow_span span;

	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		if (!read_text(records[i], &face, &span))
			fail_msg("%s", records[i]);
		if (!i)
			first = face;
		assert_true(flow_face_equal(&face, &first));
		assert_int_equal(span.start_ms, START_MS);
		assert_int_equal(span.end_ms, END_MS);
	}
	assert_int_equal(first.src_port, 5000);
	assert_int_equal(first.dst_port, 80);
	assert_int_equal(first.proto, 17);
}

/* Events of Hubble and Suricata are of one packet; the members of Hubble are nested. */
TEST(events_have_one_time)
{
	static const char flow[] =
		"{\"time\":\"2023-11-14T22:13:20.500175415Z\",\"verdict\":\"DROPPED\","
		"\"IP\":{\"source\":\"10.0.0.1\",\"destination\":\"192.0.2.9\",\"ipVersion\":\"IPv4\"},"
		"\"l4\":{\"TCP\":{\"source_port\":44916,\"destination_port\":80,"
		"\"flags\":{\"SYN\":true}}},\"source\":{\"namespace\":\"default\"},"
		"\"destination\":{\"namespace\":\"default\",\"pod_name\":\"x\"}}";
	static const char alert[] =
		"{\"timestamp\":\"2023-11-14T22:13:20.500175+0000\",\"event_type\":\"alert\","
		"\"src_ip\":\"10.0.0.1\",\"src_port\":44916,\"dest_ip\":\"192.0.2.9\","
		"\"dest_port\":80,\"proto\":\"TCP\",\"flow\":{\"pkts_toserver\":1}}";
	struct flow_face first, face;
	struct flow_span span;
	char text[1024];

	assert_true(read_text(flow, &first, &span));
	assert_int_equal(first.src_port, 44916);
	assert_int_equal(first.dst_port, 80);
	assert_int_equal(first.proto, 6);
	assert_int_equal(span.start_ms, START_MS);
	assert_int_equal(span.end_ms, START_MS);
	snprintf(text, sizeof(text),
		 "{\"flow\":%s,\"node_name\":\"kind/worker\","
		 "\"time\":\"2023-11-14T22:13:29Z\"}",
		 flow);
	assert_true(read_text(text, &face, &span));
	assert_true(flow_face_equal(&face, &first));
	assert_int_equal(span.end_ms, START_MS);
	assert_true(read_text(alert, &face, &span));
	assert_true(flow_face_equal(&face, &first));
	assert_int_equal(span.start_ms, START_MS);
	assert_int_equal(span.end_ms, START_MS);
}

TEST(icmp_is_known_by_any_name_and_has_no_ports)
{
	static const char *const of_v6[] = {
		"{\"SrcAddr\":\"fd00::1\",\"DstAddr\":\"fd00::2\",\"Proto\":58,\"IcmpType\":128}",
		"{\"src6_addr\":\"fd00::1\",\"dst6_addr\":\"fd00::2\",\"proto\":58,"
		"\"src_port\":0,\"dst_port\":32768}",
		"{\"src_addr\":\"fd00::1\",\"dst_addr\":\"fd00::2\",\"proto\":\"IPv6-ICMP\"}",
		"{\"id.orig_h\":\"fd00::1\",\"id.orig_p\":128,\"id.resp_h\":\"fd00::2\","
		"\"id.resp_p\":129,\"proto\":\"icmp\"}",
		"{\"IP\":{\"source\":\"fd00::1\",\"destination\":\"fd00::2\"},"
		"\"l4\":{\"ICMPv6\":{\"type\":128}}}",
	};
	struct flow_face first, face;
	struct flow_span span;

	for (size_t i = 0; i < sizeof(of_v6) / sizeof(of_v6[0]); i++) {
		assert_true(read_text(of_v6[i], &face, &span));
		if (!i)
			first = face;
		assert_true(flow_face_equal(&face, &first));
		assert_int_equal(span.end_ms, 0);
	}
	assert_true(read_text("{\"ip_src\":\"10.0.0.1\",\"ip_dst\":\"10.0.0.2\","
			      "\"ip_proto\":\"icmp\",\"port_src\":\"?\"}",
			      &face, &span));
	assert_int_equal(face.proto, 1);
}

#define ENDS "\"SrcAddr\":\"10.0.0.1\",\"DstAddr\":\"192.0.2.9\""
#define IPFIX_ENDS                                                       \
	"\"sourceIPv4Address\":\"10.0.0.1\",\"destinationIPv4Address\":" \
	"\"192.0.2.9\",\"protocolIdentifier\":17"
#define NFDUMP_ENDS \
	"\"src4_addr\":\"10.0.0.1\",\"dst4_addr\":\"192.0.2.9\",\"proto\":17"

/* Numbers that are repeated and equal are one. */
TEST(ends_that_are_not_clear_are_none)
{
	static const struct {
		const char *members;
		bool is_one;
	} rows[] = {
		{ ENDS ",\"Proto\":6", true },
		{ ENDS ",\"Proto\":6,\"SrcPort\":65535", true },
		{ ENDS ",\"Proto\":6,\"SrcPort\":65536", false },
		{ ENDS ",\"Proto\":6,\"DstPort\":-1", false },
		{ ENDS ",\"Proto\":6,\"DstPort\":\"80\"", false },
		{ ENDS ",\"Proto\":1,\"DstPort\":\"8.0\"", true },
		{ ENDS ",\"Proto\":262", false },
		{ ENDS ",\"Proto\":\"nonsense\"", false },
		{ ENDS, false },
		{ ENDS ",\"Proto\":17,\"SrcPort\":5,\"SrcPort\":5", true },
		{ ENDS ",\"Proto\":17,\"SrcPort\":5,\"SrcPort\":6", false },
		{ ENDS ",\"Proto\":17,\"Proto\":6", false },
		{ ENDS ",\"Proto\":17,\"SrcAddr\":\"10.0.0.2\"", false },
		{ ENDS ",\"Proto\":17,\"SrcAddr\":\"10.0.0.1\"", false },
		{ "\"SrcAddr\":\"10.0.0.1\",\"Proto\":17", false },
		{ "\"SrcAddr\":\"\",\"DstAddr\":\"\",\"Proto\":17", false },
		{ "\"SrcAddr\":{},\"DstAddr\":[],\"Proto\":17", false },
		{ IPFIX_ENDS ",\"sourceIPv4Address-2\":\"10.0.0.2\"", false },
		{ IPFIX_ENDS
		  ",\"sourceTransportPort\":5,\"sourceTransportPort-2\":6",
		  false },
		{ IPFIX_ENDS ",\"sourceIPv4Address2\":\"10.0.0.2\"", true },
		{ IPFIX_ENDS ",\"sourceIPv6Address\":\"::\","
			     "\"destinationIPv6Address\":\"::\"",
		  true },
		{ IPFIX_ENDS ",\"sourceIPv6Address\":\"fd00::1\","
			     "\"destinationIPv6Address\":\"fd00::2\"",
		  false },
		{ "\"a\":{" IPFIX_ENDS "}", true },
		{ "\"a\":[{" IPFIX_ENDS "}]", false },
		{ "\"flow\":{\"IP\":[]}", false },
		{ "", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct flow_span span;
		struct flow_face face;
		char text[512];

		snprintf(text, sizeof(text), "{%s}", rows[i].members);
		if (read_text(text, &face, &span) != rows[i].is_one)
			fail_msg("%s", text);
	}
}

TEST(times_that_are_not_clear_are_none)
{
	static const struct {
		const char *members;
		struct flow_span span;
	} rows[] = {
		{ IPFIX_ENDS ",\"flowStartSeconds\":2,\"flowEndSeconds\":3",
		  { 2000, 3999 } },
		{ ENDS ",\"Proto\":17,\"TimeFlowStartMs\":3,\"TimeFlowEndMs\":2",
		  { 2, 3 } },
		{ ENDS ",\"Proto\":17,\"TimeFlowEndMs\":3,\"TimeMs\":9",
		  { 3, 3 } },
		{ ENDS ",\"Proto\":17,\"TimeMs\":9", { 9, 9 } },
		{ ENDS ",\"Proto\":6,\"TimeFlowEndMs\":9007199254740992",
		  { 9007199254740992, 9007199254740992 } },
		{ ENDS ",\"Proto\":6,\"TimeFlowEndMs\":9007199254740993",
		  { 0, 0 } },
		{ ENDS ",\"Proto\":6,\"TimeFlowEndMs\":-9223372036854775808",
		  { 0, 0 } },
		{ ENDS ",\"Proto\":6,\"TimeMs\":18446744073709551615", { 0, 0 } },
		{ ENDS ",\"Proto\":6,\"TimeMs\":18446744073709551616", { 0, 0 } },
		{ ENDS ",\"Proto\":6,\"TimeMs\":5e9", { 0, 0 } },
		{ ENDS ",\"Proto\":6,\"TimeMs\":{}", { 0, 0 } },
		{ IPFIX_ENDS ",\"flowEndSeconds\":9223372036854775807", { 0, 0 } },
		{ IPFIX_ENDS ",\"flowStartMilliseconds\":5,"
			     "\"flowEndNanoseconds\":-2208988800000000000",
		  { 5, 5 } },
		{ NFDUMP_ENDS ",\"last\":\"1970-01-01T00:00:02.5\"",
		  { 2500, 2500 } },
		{ NFDUMP_ENDS ",\"last\":\"1970-01-01T00:00:02.500999Z\"",
		  { 2500, 2500 } },
		{ NFDUMP_ENDS ",\"last\":\"1970-01-01 00:00:02\"",
		  { 2000, 2999 } },
		{ NFDUMP_ENDS ",\"last\":\"1970-01-01T02:00:02.500+02:00\"",
		  { 2500, 2500 } },
		{ NFDUMP_ENDS ",\"last\":\"1969-12-31T22:30:02.500-0130\"",
		  { 0, 0 } },
		{ NFDUMP_ENDS ",\"last\":\"1970-01-01T00:00:02.5+2\"", { 0, 0 } },
		{ NFDUMP_ENDS ",\"last\":\"1970-01-01T00:00:02.5x\"", { 0, 0 } },
		{ NFDUMP_ENDS ",\"last\":\"1970-13-01T00:00:02.500\"", { 0, 0 } },
		{ NFDUMP_ENDS ",\"last\":\"1969-12-31T23:59:59.500\"", { 0, 0 } },
		{ NFDUMP_ENDS ",\"last\":\"2147483647-11-21T17:06:31.709\"",
		  { 0, 0 } },
		{ NFDUMP_ENDS ",\"last\":\"\"", { 0, 0 } },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct flow_span span;
		struct flow_face face;
		char text[512];

		snprintf(text, sizeof(text), "{%s}", rows[i].members);
		assert_true(read_text(text, &face, &span));
		if (span.start_ms != rows[i].span.start_ms ||
		    span.end_ms != rows[i].span.end_ms)
			fail_msg("%s: %lld to %lld", text,
				 (long long)span.start_ms,
				 (long long)span.end_ms);
	}
}

TEST(times_without_a_zone_are_local)
{
	struct flow_face face;
	struct flow_span span;

	setenv("TZ", "XYZ-3", 1);
	tzset();
	assert_true(read_text("{" NFDUMP_ENDS
			      ",\"last\":\"1970-01-01T05:00:00.000\"}",
			      &face, &span));
	assert_int_equal(span.end_ms, 7200000);
	set_zone(NULL);
}

TEST(only_netobs_is_a_source)
{
	struct flow_span span = { 0 };
	struct flow_face face;

	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++)
		assert_int_equal(layout_read_netobs(json_parse(records[i]),
						    &face, &span),
				 i == 0);
	assert_true(layout_read_netobs(json_parse(records[0]), &face, &span));
	assert_false(flow_face_read_other(
		json_parse("{\"XlatSrcAddr\":\"10.0.0.1\",\"XlatDstAddr\":\"10.0.0.2\","
			   "\"XlatSrcPort\":65537}"),
		"Xlat", &face, &face));
}

int main(void)
{
	return tests_run(set_zone, NULL);
}
