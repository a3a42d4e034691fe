// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What the service map takes from records in JSON, and which it refuses. */
#include "lib_test.h"

#include "reports/services.h"

#define ENDS "\"SrcAddr\":\"10.0.0.1\",\"DstAddr\":\"10.0.0.2\""
#define FLOW "{" ENDS ",\"Proto\":6,"

static bool read_text(const char *text, struct service_report *ret_report,
		      char why[REPORT_WHY_MAX])
{
	const struct json_value record = json_parse(text);
	struct report_origin origin;

	assert_non_null(record.at);
	return report_read(record, ret_report, &origin, why);
}

TEST(a_record_is_read_as_a_whole)
{
	static const uint8_t src[] = { 10, 0, 0, 1 }, dst[] = { 10, 0, 0, 2 };
	struct service_report report;
	char why[REPORT_WHY_MAX];

	assert_true(read_text(
		FLOW "\"SrcPort\":65535,\"DstPort\":80,\"Packets\":100,"
		     "\"Bytes\":9007199254740992,\"Flags\":27,\"TcpCombined\":null,"
		     "\"TimeFlowRttNs\":1000,\"RttSamples\":10.0,"
		     "\"TimeFlowStartMs\":1700000000000,"
		     "\"TimeFlowEndMs\":1700000000001,"
		     "\"ConversationId\":\"00ff00ff00ff00ff\"}",
		&report, why));
	assert_string_equal(why, "");
	assert_int_equal(report.kind, REPORT_FLOW);
	assert_memory_equal(report.face.src + 12, src, sizeof(src));
	assert_memory_equal(report.face.dst + 12, dst, sizeof(dst));
	assert_int_equal(report.face.src_port, 65535);
	assert_int_equal(report.face.dst_port, 80);
	assert_int_equal(report.face.proto, 6);
	assert_int_equal(report.packets, 100);
	assert_int_equal(report.bytes, 9007199254740992);
	assert_int_equal(report.tcp_flags, 27);
	assert_false(report.has_combined);
	assert_int_equal(report.rtt_samples, 10);
	assert_int_equal(report.start_ms, 1700000000000);
	assert_int_equal(report.end_ms, 1700000000001);
	assert_int_equal(report.conversation_id, 0xff00ff00ff00ff);
}

/* With the member that is wrong, or NULL: it is no record. */
static const struct {
	const char *text, *member;
} wrong[] = {
	{ FLOW "\"Packets\":1e3}", "Packets" },
	{ FLOW "\"Packets\":1.5}", "Packets" },
	{ FLOW "\"Packets\":\"100\"}", "Packets" },
	{ FLOW "\"Packets\":-5}", "Packets" },
	{ FLOW "\"Packets\":[7]}", "Packets" },
	{ FLOW "\"Packets\":true}", "Packets" },
	{ FLOW "\"Packets\":18446744073709551616}", "Packets" },
	{ FLOW "\"Bytes\":9007199254740993}", "Bytes" },
	{ FLOW "\"SrcPort\":65616}", "SrcPort" },
	{ FLOW "\"DstPort\":65616}", "DstPort" },
	{ FLOW "\"DstPort\":\"http\"}", "DstPort" },
	{ "{" ENDS ",\"Proto\":262}", "Proto" },
	{ "{" ENDS ",\"Proto\":\"tcp\"}", "Proto" },
	{ FLOW "\"IcmpType\":256}", "IcmpType" },
	{ FLOW "\"IcmpCode\":256}", "IcmpCode" },
	{ FLOW "\"Flags\":65536}", "Flags" },
	{ FLOW "\"TcpCombined\":-2}", "TcpCombined" },
	{ FLOW "\"TcpCombined\":-1.5}", "TcpCombined" },
	{ FLOW "\"TcpCombined\":256}", "TcpCombined" },
	{ FLOW "\"Sampling\":4294967296}", "Sampling" },
	{ FLOW "\"Retransmits\":1e1}", "Retransmits" },
	{ FLOW "\"RttSamples\":1e1}", "RttSamples" },
	{ FLOW "\"AppResponses\":\"\"}", "AppResponses" },
	{ FLOW "\"TimeFlowRttNs\":1000000000000,"
	       "\"RttSamples\":1000000000000}",
	  "TimeFlowRttNs" },
	{ FLOW "\"PathRttNs\":1000000000000,"
	       "\"RttSamples\":1000000000000}",
	  "PathRttNs" },
	{ FLOW "\"ResponseTimeNs\":2147483648,"
	       "\"AppResponses\":2147483648}",
	  "ResponseTimeNs" },
	{ FLOW "\"TimeFlowStartMs\":9223372036855}", "TimeFlowStartMs" },
	{ FLOW "\"TimeFlowEndMs\":\"1\"}", "TimeFlowEndMs" },
	{ FLOW "\"ConversationId\":\"xyz\"}", "ConversationId" },
	{ FLOW "\"ConversationId\":\"00112233445566778\"}", "ConversationId" },
	{ FLOW "\"XlatSrcAddr\":\"10.0.0.3\",\"XlatDstAddr\":\"x\"}",
	  "XlatDstAddr" },
	{ FLOW "\"OrigSrcAddr\":\"10.0.0.3\",\"OrigDstAddr\":\"10.0.0.4\","
	       "\"OrigDstPort\":70000}",
	  "OrigDstPort" },
	{ "{\"SrcAddr\":\"10.0.0\",\"DstAddr\":\"10.0.0.2\",\"Proto\":6}",
	  "SrcAddr" },
	{ "{\"SrcAddr\":\"10.0.0.1\",\"DstAddr\":7,\"Proto\":6}", "DstAddr" },
	{ "{" ENDS "}", NULL },
	{ "{\"DstAddr\":\"10.0.0.2\",\"Proto\":6}", NULL },
	{ "{}", NULL },
};

TEST(what_is_wrong_is_refused_and_named)
{
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		const char *member = wrong[i].member;
		struct service_report report;
		char why[REPORT_WHY_MAX] = "";

		if (read_text(wrong[i].text, &report, why))
			fail_msg("%s is read", wrong[i].text);
		if (!member)
			assert_string_equal(why, "it is no record of netobs");
		else if (strncmp(why, member, strlen(member)) ||
			 why[strlen(member)] != ' ')
			fail_msg("%s: %s", wrong[i].text, why);
	}
}

/* A row of a table, which has all columns. */
TEST(defaults_of_a_table_are_absent)
{
	struct service_report report;
	char why[REPORT_WHY_MAX];

	assert_true(read_text(
		"{\"type\":\"\",\"SrcAddr\":\"::ffff:10.0.0.1\","
		"\"DstAddr\":\"::ffff:10.0.0.2\",\"Proto\":6,\"Flags\":18,"
		"\"TcpCombined\":-1,\"TimeFlowRttNs\":7,\"PathRttNs\":0,"
		"\"RttSamples\":1,\"ConversationId\":\"\","
		"\"XlatSrcAddr\":\"::\",\"XlatDstAddr\":\"::\","
		"\"XlatSrcPort\":0,\"XlatDstPort\":0,"
		"\"OrigSrcAddr\":\"::\",\"OrigDstAddr\":\"::\","
		"\"OrigSrcPort\":0,\"OrigDstPort\":0,"
		"\"Opened\":\"\",\"Ended\":\"\",\"SrcProcess\":\"\"}",
		&report, why));
	assert_string_equal(why, "");
	assert_int_equal(report.kind, REPORT_FLOW);
	assert_false(report.has_combined);
	assert_int_equal(report.n_others, 0);
	assert_int_equal(report.conversation_id, 0);
	assert_int_equal(report.rtt_ns, 7);
	assert_string_equal(report.processes[0], "");
}

TEST(other_types_are_no_failure)
{
	static const char *const others[] = {
		"{\"type\":\"drop\",\"Packets\":\"many\"}",
		"{\"type\":\"session\",\"Proto\":6,\"Ended\":\"refused\"}",
		"{\"type\":\"session\",\"Proto\":6,\"SrcAddr\":\"::\"}",
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		struct service_report report;
		char why[REPORT_WHY_MAX];

		assert_true(read_text(others[i], &report, why));
		assert_int_equal(report.kind, REPORT_NONE);
	}
}
