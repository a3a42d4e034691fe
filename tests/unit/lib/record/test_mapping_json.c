/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Mappings as JSON. */
#include "lib_test.h"

#include <netobs/mapping.h>

static struct netobs_mapping make_mapping(void)
{
	return (struct netobs_mapping){
		.record = { .sz = sizeof(struct netobs_mapping),
			    .type = NETOBS_RECORD_MAPPING,
			    .time_ns = 1700000000123456789 },
		.src = { [10] = 0xff, 0xff, 10, 0, 0, 2 },
		.dst = { [10] = 0xff, 0xff, 192, 0, 2, 1 },
		.post_src = { [10] = 0xff, 0xff, 10, 0, 0, 2 },
		.post_dst = { [10] = 0xff, 0xff, 10, 0, 9, 9 },
		.ethertype = 0x0800,
		.protocol = 1,
		.event = NETOBS_MAPPING_BEGIN,
		.nat_event = 4,
		.translated = NETOBS_MAPPING_DESTINATION,
		.netns_inode = 4026531840,
	};
}

TEST(what_is_not_known_is_left_out)
{
	const struct netobs_mapping mapping = make_mapping();
	char text[NETOBS_MAPPING_JSON_MAX];

	assert_true(netobs_record_json(&mapping.record, text, sizeof(text)) > 0);
	assert_string_equal(
		text, "{\"type\":\"mapping\",\"TimeMs\":1700000000123,"
		      "\"Event\":\"begin\",\"NatEvent\":4,\"State\":\"active\","
		      "\"Etype\":2048,\"Proto\":1,\"Translated\":\"destination\","
		      "\"SrcAddr\":\"10.0.0.2\",\"DstAddr\":\"192.0.2.1\","
		      "\"XlatSrcAddr\":\"10.0.0.2\",\"XlatDstAddr\":\"10.0.9.9\","
		      "\"NetnsInode\":4026531840}");
}

TEST(what_is_known_is_there_also_as_0)
{
	struct netobs_mapping mapping = make_mapping();
	char text[NETOBS_MAPPING_JSON_MAX];

	mapping.record.has = NETOBS_MAPPING_HAS_PORTS |
			     NETOBS_MAPPING_HAS_ZONE | NETOBS_MAPPING_HAS_START |
			     NETOBS_MAPPING_HAS_LAST | NETOBS_MAPPING_HAS_END;
	mapping.src_port = 40000;
	mapping.state = NETOBS_MAPPING_ENDED;
	memcpy(mapping.out_interface, "eth0", sizeof("eth0"));
	assert_true(netobs_record_json(&mapping.record, text, sizeof(text)) > 0);
	assert_non_null(strstr(text, "\"SrcPort\":40000,\"DstPort\":0,"));
	assert_non_null(strstr(text, "\"XlatSrcPort\":0,\"XlatDstPort\":0,"
				     "\"ZoneId\":0,"));
	assert_non_null(strstr(text, "\"State\":\"ended\""));
	assert_non_null(strstr(text, "\"OutInterface\":\"eth0\","
				     "\"TimeFlowStartMs\":0,"
				     "\"TimeFlowEndMs\":0,\"EndedMs\":0}"));
}

TEST(the_longest_one_fits)
{
	char text[NETOBS_MAPPING_JSON_MAX];
	struct netobs_mapping mapping;

	memset(&mapping, 0xff, sizeof(mapping));
	memset(mapping.in_interface, 1, sizeof(mapping.in_interface));
	memset(mapping.out_interface, 1, sizeof(mapping.out_interface));
	mapping.record.sz = sizeof(mapping);
	mapping.record.type = NETOBS_RECORD_MAPPING;
	assert_true(netobs_record_json(&mapping.record, text, sizeof(text)) > 0);
}
