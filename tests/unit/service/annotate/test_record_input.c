/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Records of files in their formats, and the faces and times that each format has. */
#include "lib_test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "service/annotate/flow_face.h"
#include "service/annotate/record_input.h"

static char path[] = "/tmp/netobs-input-XXXXXX";

static int set_up(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	memcpy(path + sizeof(path) - 7, "XXXXXX", 6);
	return 0;
}

static void write_file(const void *bytes, size_t len)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
}

static void lines_are_read_whole_and_those_that_cannot_be_are_refused(void **state)
{
	static const char text[] = "{\"a\":1}\r\n\nx\0y\n{\"b\":2}";
	struct record_input input;
	char *line, place[64], wanted[64];

	(void)state;
	write_file(text, sizeof(text) - 1);
	assert_int_equal(record_input_open(&input, path), 0);
	assert_int_equal(input.kind, INPUT_LINES);
	assert_int_equal(record_input_next(&input, &line), 1);
	assert_string_equal(line, "{\"a\":1}\r");
	assert_int_equal(record_input_next(&input, &line), 1);
	assert_string_equal(line, "");
	assert_int_equal(record_input_next(&input, &line), -EBADMSG);
	snprintf(wanted, sizeof(wanted), "%s:3", path);
	assert_string_equal(record_input_place(&input, place, sizeof(place)),
			    wanted);
	assert_int_equal(record_input_next(&input, &line), 1);
	assert_string_equal(line, "{\"b\":2}");
	assert_int_equal(record_input_next(&input, &line), 0);
	record_input_close(&input);
}

static void lines_have_a_limit(void **state)
{
	char *bytes = malloc(INPUT_RECORD_MAX + 3), *line;
	struct record_input input;

	(void)state;
	assert_non_null(bytes);
	memset(bytes, ' ', INPUT_RECORD_MAX + 3);
	bytes[INPUT_RECORD_MAX + 1] = '\n';
	bytes[INPUT_RECORD_MAX + 2] = 'x';
	write_file(bytes, INPUT_RECORD_MAX + 3);
	assert_int_equal(record_input_open(&input, path), 0);
	assert_int_equal(record_input_next(&input, &line), -EBADMSG);
	assert_int_equal(record_input_next(&input, &line), 1);
	assert_string_equal(line, "x");
	record_input_close(&input);
	write_file(bytes + 1, INPUT_RECORD_MAX + 2);
	assert_int_equal(record_input_open(&input, path), 0);
	assert_int_equal(record_input_next(&input, &line), 1);
	assert_int_equal(strlen(line), INPUT_RECORD_MAX);
	record_input_close(&input);
	free(bytes);
}

static void short_files_are_lines(void **state)
{
	struct record_input input;
	char *line;

	(void)state;
	write_file("", 0);
	assert_int_equal(record_input_open(&input, path), 0);
	assert_int_equal(record_input_next(&input, &line), 0);
	record_input_close(&input);
	write_file("1", 1);
	assert_int_equal(record_input_open(&input, path), 0);
	assert_int_equal(record_input_next(&input, &line), 1);
	assert_string_equal(line, "1");
	assert_int_equal(record_input_next(&input, &line), 0);
	record_input_close(&input);
	unlink(path);
	assert_int_equal(record_input_open(&input, path), -ENOENT);
	record_input_close(&input);
}

/* A message with a template of addresses, ports, the protocol, a time, an octet of another
 * enterprise, and a record. */
static const unsigned char ipfix[] = {
	0,
	10,
	0,
	96,
	0,
	0,
	0,
	1,
	0,
	0,
	0,
	0,
	0,
	0,
	0,
	1,
	0,
	2,
	0,
	44,
	1,
	0,
	0,
	8,
	0,
	8,
	0,
	4,
	0,
	12,
	0,
	4,
	0,
	7,
	0,
	2,
	0,
	11,
	0,
	2,
	0,
	4,
	0,
	1,
	0,
	154,
	0,
	8,
	0x80,
	12,
	0xff,
	0xff,
	0,
	0,
	0xfb,
	0xf4,
	0,
	61,
	0,
	1,
	1,
	0,
	0,
	36,
	10,
	0,
	0,
	1,
	192,
	0,
	2,
	9,
	0x13,
	0x88,
	0,
	80,
	17,
	/* 2 s and a half after 1970 */
	0x83,
	0xaa,
	0x7e,
	0x82,
	0x80,
	0,
	0,
	0,
	3,
	'a',
	'b',
	'c',
	1,
	0,
	0,
	0,
	0,
	0,
	0,
};

static void ipfix_becomes_json_with_names_of_elements(void **state)
{
	struct record_input input;
	char *text;

	(void)state;
	write_file(ipfix, sizeof(ipfix));
	assert_int_equal(record_input_open(&input, path), 0);
	assert_int_equal(input.kind, INPUT_IPFIX);
	assert_int_equal(record_input_next(&input, &text), 1);
	assert_string_equal(text,
			    "{\"sourceIPv4Address\":\"10.0.0.1\","
			    "\"destinationIPv4Address\":\"192.0.2.9\","
			    "\"sourceTransportPort\":5000,"
			    "\"destinationTransportPort\":80,"
			    "\"protocolIdentifier\":17,"
			    "\"flowStartMicroseconds\":2500000,"
			    "\"e64500id12\":\"616263\",\"flowDirection\":1}");
	assert_int_equal(record_input_next(&input, &text), 0);
	record_input_close(&input);
}

/* @return where @part of that message begins */
static unsigned char *find_part(unsigned char message[sizeof(ipfix)],
				const char *part, size_t len)
{
	unsigned char *found = memmem(message, sizeof(ipfix), part, len);

	assert_non_null(found);
	return found;
}

/* 0 is in 1900: of exporters that do not know it. */
static void a_time_of_ipfix_before_1970_is_none(void **state)
{
	unsigned char message[sizeof(ipfix)];
	struct flow_span span = { 0 };
	struct record_input input;
	struct flow_face face;
	char *text;

	(void)state;
	memcpy(message, ipfix, sizeof(ipfix));
	memset(find_part(message, "\x83\xaa\x7e\x82", 4), 0, 8);
	find_part(message, "\0\x9a\0\x08", 4)[1] = 157; /* flowEndNanoseconds */
	write_file(message, sizeof(message));
	assert_int_equal(record_input_open(&input, path), 0);
	assert_int_equal(record_input_next(&input, &text), 1);
	assert_non_null(
		strstr(text, "\"flowEndNanoseconds\":-2208988800000000000,"));
	assert_true(flow_face_read(json_parse(text), &face, &span));
	assert_int_equal(span.end_ms, 0);
	record_input_close(&input);
}

static void ipfix_that_is_cut_is_refused(void **state)
{
	struct record_input input;
	char *text;

	(void)state;
	for (size_t len = 16; len < sizeof(ipfix); len += 7) {
		write_file(ipfix, len);
		assert_int_equal(record_input_open(&input, path), 0);
		assert_int_equal(record_input_next(&input, &text), -EIO);
		assert_non_null(strstr(input.why, "near byte "));
		record_input_close(&input);
	}
}

static void each_vocabulary_has_a_face_and_times(void **state)
{
	static const char *const records[] = {
		"{\"SrcAddr\":\"10.0.0.1\",\"DstAddr\":\"192.0.2.9\",\"SrcPort\":5000,\"DstPort\":80,"
		"\"Proto\":17,\"TimeFlowStartMs\":2500,\"TimeFlowEndMs\":3000}",
		"{\"src4_addr\":\"10.0.0.1\",\"dst4_addr\":\"192.0.2.9\",\"src_port\":5000,"
		"\"dst_port\":80,\"proto\":17,\"first\":\"1970-01-01T00:00:02.500\","
		"\"last\":\"1970-01-01T00:00:03.000\"}",
		"{\"sourceIPv4Address\":\"10.0.0.1\",\"destinationIPv4Address\":\"192.0.2.9\","
		"\"sourceTransportPort\":5000,\"destinationTransportPort\":80,"
		"\"protocolIdentifier\":17,\"flowStartMicroseconds\":2500999,"
		"\"flowEndMicroseconds\":3000999}",
		"{\"sourceIPv6Address\":\"::ffff:10.0.0.1\","
		"\"destinationIPv6Address\":\"::ffff:192.0.2.9\","
		"\"sourceTransportPort\":5000,\"destinationTransportPort\":80,"
		"\"protocolIdentifier\":17,\"flowStartNanoseconds\":2500999999,"
		"\"flowEndMilliseconds\":3000}",
	};
	struct flow_face first, face;
	struct flow_span span;

	(void)state;
	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		span = (struct flow_span){ 0 };
		assert_true(flow_face_read(json_parse(records[i]), &face, &span));
		if (!i)
			first = face;
		assert_true(flow_face_equal(&face, &first));
		assert_int_equal(span.start_ms, 2500);
		assert_int_equal(span.end_ms, 3000);
	}
	assert_int_equal(first.src_port, 5000);
	assert_int_equal(first.dst_port, 80);
}

#define ENDS "\"SrcAddr\":\"10.0.0.1\",\"DstAddr\":\"192.0.2.9\""

/* Records of several seconds, and those whose times or ports cannot be. */
static void times_and_ports_that_are_not_clear_are_none(void **state)
{
#define UDP ",\"Proto\":17,\"SrcPort\":5000"
	static const struct {
		const char *members;
		bool is_one;
		struct flow_span span;
	} rows[] = {
		{ "\"flowStartSeconds\":2,\"flowEndSeconds\":3",
		  true,
		  { 2000, 3999 } },
		{ "\"TimeFlowStartMs\":3,\"TimeFlowEndMs\":2", true, { 2, 3 } },
		{ "\"TimeFlowStartMs\":3,\"TimeFlowEndMs\":3", true, { 3, 3 } },
		{ "\"flowStartMilliseconds\":5,\"flowEndNanoseconds\":-2208988800000000000",
		  true,
		  { 5, 5 } },
		{ "\"flowEndNanoseconds\":9223372036854775808", true, { 0, 0 } },
		{ "\"last\":\"1970-01-01T00:00:02.5\"", true, { 2500, 2500 } },
		{ "\"last\":\"1970-01-01T00:00:02.500999Z\"", true, { 2500, 2500 } },
		{ "\"last\":\"1970-01-01T00:00:02\"", true, { 2000, 2000 } },
		{ "\"last\":\"1970-01-01T02:00:02.500+02:00\"", true, { 0, 0 } },
		{ "\"last\":\"1970-13-01T00:00:02.500\"", true, { 0, 0 } },
		{ "\"last\":\"1969-12-31T23:59:59.500\"", true, { 0, 0 } },
		{ "\"src_port\":5000,\"TimeFlowEndMs\":1", true, { 1, 1 } },
		{ "\"src_port\":5001", false, { 0, 0 } },
		{ "\"proto\":6", false, { 0, 0 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct flow_span span = { 0 };
		struct flow_face face;
		char text[256];

		snprintf(text, sizeof(text), "{" ENDS UDP ",%s}",
			 rows[i].members);
		assert_int_equal(flow_face_read(json_parse(text), &face, &span),
				 rows[i].is_one);
		assert_int_equal(span.start_ms, rows[i].span.start_ms);
		assert_int_equal(span.end_ms, rows[i].span.end_ms);
	}
}

static void numbers_out_of_range_are_none(void **state)
{
	static const struct {
		const char *record;
		bool is_one;
		int64_t end_ms;
	} rows[] = {
		{ "{" ENDS ",\"Proto\":6,\"SrcPort\":65535}", true, 0 },
		{ "{" ENDS ",\"Proto\":6,\"SrcPort\":65536}", false, 0 },
		{ "{" ENDS ",\"Proto\":6,\"DstPort\":-1}", false, 0 },
		{ "{" ENDS ",\"Proto\":6,\"DstPort\":\"80\"}", false, 0 },
		{ "{" ENDS ",\"Proto\":1,\"DstPort\":\"8.0\"}", true, 0 },
		{ "{" ENDS ",\"Proto\":262}", false, 0 },
		{ "{" ENDS ",\"Proto\":6,\"TimeFlowEndMs\":9007199254740992}",
		  true, 9007199254740992 },
		{ "{" ENDS ",\"Proto\":6,\"TimeFlowEndMs\":9007199254740993}",
		  true, 0 },
		{ "{" ENDS ",\"Proto\":6,\"TimeFlowEndMs\":-9223372036854775808}",
		  true, 0 },
		{ "{" ENDS ",\"Proto\":6,\"TimeMs\":18446744073709551615}",
		  true, 0 },
		{ "{" ENDS ",\"Proto\":6,\"flowEndSeconds\":9223372036854775807}",
		  true, 0 },
		{ "{" ENDS ",\"Proto\":6,\"flowEndSeconds\":-9223372036854775808}",
		  true, 0 },
		{ "{" ENDS
		  ",\"Proto\":6,\"last\":\"2147483647-11-21T17:06:31.709\"}",
		  true, 0 },
	};
	struct flow_face face;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct flow_span span = { 0 };

		assert_int_equal(flow_face_read(json_parse(rows[i].record),
						&face, &span),
				 rows[i].is_one);
		if (rows[i].is_one)
			assert_int_equal(span.end_ms, rows[i].end_ms);
	}
	assert_true(flow_face_read(json_parse(rows[0].record), &face,
				   &(struct flow_span){ 0 }));
	assert_false(flow_face_read_other(
		json_parse("{\"XlatSrcAddr\":\"10.0.0.1\",\"XlatDstAddr\":\"10.0.0.2\","
			   "\"XlatSrcPort\":65537}"),
		"Xlat", &face, &face));
}

/* Some templates have elements of both; those of one are 0. */
static void of_both_families_the_one_that_is_not_0_counts(void **state)
{
	static const char *const v4 = "\"sourceIPv4Address\":\"10.0.0.1\","
				      "\"destinationIPv4Address\":\"192.0.2.9\"";
	static const char *const no_v6 =
		"\"sourceIPv6Address\":\"::\",\"destinationIPv6Address\":\"::\"";
	static const char *const v6 =
		"\"sourceIPv6Address\":\"fd00::1\",\"destinationIPv6Address\":\"fd00::2\"";
	struct flow_face wanted, face;
	struct flow_span span;
	char text[512];

	(void)state;
	snprintf(text, sizeof(text), "{%s,\"protocolIdentifier\":17}", v4);
	assert_true(flow_face_read(json_parse(text), &wanted, &span));
	snprintf(text, sizeof(text), "{%s,%s,\"protocolIdentifier\":17}", v4,
		 no_v6);
	assert_true(flow_face_read(json_parse(text), &face, &span));
	assert_true(flow_face_equal(&face, &wanted));
	snprintf(text, sizeof(text), "{%s,%s,\"protocolIdentifier\":17}", no_v6,
		 v4);
	assert_true(flow_face_read(json_parse(text), &face, &span));
	assert_true(flow_face_equal(&face, &wanted));
	snprintf(text, sizeof(text), "{%s,%s,\"protocolIdentifier\":17}", v4, v6);
	assert_false(flow_face_read(json_parse(text), &face, &span));
}

static void of_icmp_ports_do_not_matter(void **state)
{
	struct flow_face one, other;
	struct flow_span span = { 7, 8 };

	(void)state;
	assert_true(flow_face_read(
		json_parse("{\"SrcAddr\":\"fd00::1\",\"DstAddr\":\"fd00::2\",\"Proto\":58,"
			   "\"IcmpType\":128}"),
		&one, &span));
	assert_true(flow_face_read(
		json_parse("{\"src6_addr\":\"fd00::1\",\"dst6_addr\":\"fd00::2\",\"proto\":58,"
			   "\"src_port\":0,\"dst_port\":32768}"),
		&other, &span));
	assert_true(flow_face_equal(&one, &other));
	assert_int_equal(span.start_ms, 7);
	assert_false(flow_face_read(json_parse("{\"SrcAddr\":\"fd00::1\"}"),
				    &one, &span));
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(lines_are_read_whole_and_those_that_cannot_be_are_refused),
		CASE(lines_have_a_limit),
		CASE(short_files_are_lines),
		CASE(ipfix_becomes_json_with_names_of_elements),
		CASE(a_time_of_ipfix_before_1970_is_none),
		CASE(ipfix_that_is_cut_is_refused),
		CASE(each_vocabulary_has_a_face_and_times),
		CASE(times_and_ports_that_are_not_clear_are_none),
		CASE(numbers_out_of_range_are_none),
		CASE(of_both_families_the_one_that_is_not_0_counts),
		CASE(of_icmp_ports_do_not_matter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
