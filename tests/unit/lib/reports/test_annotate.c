// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The API of annotations: what is added to a record, and what it returns where that is nothing. */
#include "lib_test.h"

#include <errno.h>
#include <string.h>

#include <netobs/annotate.h>

#define INSIDE \
	"\"SrcAddr\":\"10.0.0.1\",\"DstAddr\":\"192.0.2.9\",\"SrcPort\":5000,\"DstPort\":80"
#define FLOW(rest)                                                        \
	"{" INSIDE                                                        \
	",\"Proto\":6,\"TimeFlowStartMs\":1000,\"TimeFlowEndMs\":2000,"   \
	"\"XlatSrcAddr\":\"198.51.100.1\",\"XlatDstAddr\":\"192.0.2.9\"," \
	"\"XlatSrcPort\":20000,\"XlatDstPort\":80" rest "}"

/* Of nfdump, at the time of the flow. */
static const char outside[] =
	"{\"src4_addr\":\"198.51.100.1\",\"dst4_addr\":\"192.0.2.9\","
	"\"src_port\":20000,\"dst_port\":80,\"proto\":6,"
	"\"first\":\"1970-01-01T00:00:01.000Z\",\"last\":\"1970-01-01T00:00:02.000Z\"}";

TEST(members_are_added_that_the_record_lacks)
{
	struct netobs_annotator *all;
	char members[NETOBS_ANNOTATION_MAX], small[32];
	int r;

	assert_int_equal(netobs_annotator_new(&all), 0);
	assert_int_equal(
		netobs_annotator_find(all, outside, members, sizeof(members)), 0);
	assert_string_equal(members, "");
	assert_int_equal(netobs_annotator_add(
				 all,
				 FLOW(",\"ConversationId\":\"12\","
				      "\"SrcPid\":7,\"SrcProcess\":\"curl\"")),
			 0);
	r = netobs_annotator_find(all, outside, members, sizeof(members));
	assert_string_equal(
		members,
		",\"OrigSrcAddr\":\"10.0.0.1\",\"OrigDstAddr\":\"192.0.2.9\","
		"\"OrigSrcPort\":5000,\"OrigDstPort\":80,"
		"\"ConversationId\":\"0000000000000012\","
		"\"SrcPid\":7,\"SrcProcess\":\"curl\"");
	assert_int_equal(r, strlen(members));
	assert_int_equal(netobs_annotator_find(all, outside, small, sizeof(small)),
			 -ENOBUFS);
	assert_string_equal(small, "");
	assert_int_equal(
		netobs_annotator_find(all, outside, members, (size_t)r + 1), r);
	/* The record of netobs itself has all of it, but for what it is after NAT. */
	assert_int_equal(netobs_annotator_find(
				 all,
				 FLOW(",\"ConversationId\":\"12\",\"SrcPid\":7"),
				 members, sizeof(members)),
			 0);
	netobs_annotator_free(all);
}

TEST(what_may_be_of_several_processes_is_not_known)
{
	struct netobs_annotator *all;
	char members[NETOBS_ANNOTATION_MAX];

	assert_int_equal(netobs_annotator_new(&all), 0);
	assert_int_equal(netobs_annotator_add(all, FLOW(",\"SrcPid\":7")), 0);
	assert_int_equal(netobs_annotator_add(all, FLOW(",\"SrcPid\":8")), 0);
	assert_int_equal(
		netobs_annotator_find(all, FLOW(",\"OrigSrcAddr\":\"10.0.0.1\""),
				      members, sizeof(members)),
		-ENOTUNIQ);
	/* Without times it is not looked for. */
	assert_int_equal(netobs_annotator_find(all, "{" INSIDE ",\"Proto\":6}",
					       members, sizeof(members)),
			 0);
	netobs_annotator_free(all);
}

TEST(wrong_arguments_are_refused)
{
	static const char *const wrong[] = { NULL, "", "[1]", "{", "7" };
	struct netobs_annotator *all;
	char members[NETOBS_ANNOTATION_MAX];

	assert_int_equal(netobs_annotator_new(NULL), -EINVAL);
	assert_int_equal(netobs_annotator_new(&all), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(netobs_annotator_add(all, wrong[i]), -EINVAL);
		assert_int_equal(netobs_annotator_find(all, wrong[i], members,
						       sizeof(members)),
				 -EINVAL);
	}
	assert_int_equal(netobs_annotator_add(NULL, "{}"), -EINVAL);
	assert_int_equal(netobs_annotator_add(all, "{}"), 0);
	assert_int_equal(netobs_annotator_find(all, "{}", members,
					       sizeof(members)),
			 -EINVAL);
	assert_int_equal(netobs_annotator_find(NULL, outside, members,
					       sizeof(members)),
			 -EINVAL);
	assert_int_equal(netobs_annotator_find(all, outside, members, 0),
			 -EINVAL);
	netobs_annotator_free(NULL);
	netobs_annotator_free(all);
}
