// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Sessions as JSON, and packed. */
#include "lib_test.h"

#include "record/any.h"

static struct netobs_session make_session(void)
{
	return (struct netobs_session){
		.record = { .sz = sizeof(struct netobs_session),
			    .type = NETOBS_RECORD_SESSION,
			    .time_ns = 1700000000123456789 },
		.local_addr = { [10] = 0xff, 0xff, 192, 0, 2, 1 },
		.remote_addr = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 },
		.local_port = 40000,
		.remote_port = 443,
		.protocol = 6,
		.end_ns = 1700000000123456789,
		.netns_inode = 4026531840,
	};
}

TEST(what_is_not_known_is_left_out)
{
	const struct netobs_session session = make_session();
	char text[2048];

	assert_true(netobs_record_json(&session.record, text, sizeof(text)) > 0);
	assert_string_equal(
		text, "{\"type\":\"session\",\"TimeMs\":1700000000123,"
		      "\"SrcAddr\":\"192.0.2.1\",\"DstAddr\":\"2001:db8::1\","
		      "\"SrcPort\":40000,\"DstPort\":443,\"Proto\":6,"
		      "\"TimeFlowEndMs\":1700000000123,\"Ended\":\"open\","
		      "\"BytesAcked\":0,\"BytesReceived\":0,\"BytesSent\":0,"
		      "\"BytesRetransmitted\":0,\"SegmentsSent\":0,"
		      "\"SegmentsReceived\":0,\"DataSegmentsSent\":0,"
		      "\"DataSegmentsReceived\":0,\"Retransmits\":0,\"Lost\":0,"
		      "\"Reordering\":0,\"Reordered\":0,\"Delivered\":0,"
		      "\"DeliveredCe\":0,\"Duplicates\":0,\"Cwnd\":0,\"Mss\":0,"
		      "\"BusyUs\":0,\"WindowLimitedUs\":0,\"BufferLimitedUs\":0,"
		      "\"NetnsInode\":4026531840}");
}

/* Of the largest values, all escaped: it fits where any record does. */
TEST(the_longest_one_fits)
{
	static char text[RECORD_JSON_MAX];
	struct netobs_session session;
	int len;

	memset(&session, 0xff, sizeof(session));
	memset(session.process, 1, sizeof(session.process));
	memset(session.cgroup_path, 1, sizeof(session.cgroup_path));
	session.record.sz = sizeof(session);
	session.record.type = NETOBS_RECORD_SESSION;
	session.ended = NETOBS_SESSION_FAILED;
	session.process_by = NETOBS_SESSION_BY_HOLDING;
	len = netobs_record_json(&session.record, text, sizeof(text));
	assert_true(len > 0);
	assert_int_equal(strlen(text), len);
	assert_int_equal(netobs_record_json(&session.record, text, (size_t)len),
			 -ENOBUFS);
}

TEST(values_without_a_name_are_left_out)
{
	struct netobs_session session = make_session();
	char text[2048];

	session.record.has = NETOBS_SESSION_HAS_PROCESS;
	session.opened = session.ended = session.process_by = 200;
	assert_true(netobs_record_json(&session.record, text, sizeof(text)) > 0);
	assert_null(strstr(text, "\"Opened\""));
	assert_null(strstr(text, "\"Ended\""));
	assert_null(strstr(text, "\"ProcessBy\""));
	assert_non_null(strstr(text, "\"Pid\":0"));
}

/* Of records from elsewhere, as from a spool or a caller. */
TEST(durations_of_any_times_fit)
{
	static const int64_t times[] = {
		INT64_MIN, INT64_MIN + 1,	-2000000,      -1,	  0,
		1999999,   1700000000123456789, INT64_MAX - 1, INT64_MAX,
	};
	struct netobs_session session = make_session();
	char text[2048], wanted[64];

	session.record.has = NETOBS_SESSION_HAS_START;
	for (size_t i = 0; i < ARRAY_SIZE(times) * ARRAY_SIZE(times); i++) {
		__int128 ns;

		session.start_ns = times[i / ARRAY_SIZE(times)];
		session.end_ns = times[i % ARRAY_SIZE(times)];
		ns = (__int128)session.end_ns - session.start_ns;
		ns = ns > INT64_MAX ? INT64_MAX :
		     ns < INT64_MIN ? INT64_MIN :
				      ns;
		snprintf(wanted, sizeof(wanted), "\"DurationMs\":%lld,",
			 (long long)(ns / 1000000));
		assert_true(netobs_record_json(&session.record, text,
					       sizeof(text)) > 0);
		assert_non_null(strstr(text, wanted));
	}
}

TEST(it_is_unpacked_as_it_was_packed)
{
	struct netobs_session session = make_session();
	static char packed[PACK_MAX] __attribute__((aligned(PACK_ALIGN)));
	static struct unpacked unpacked;
	const struct netobs_record *got;
	size_t len;

	memset(session.cgroup_path, 'x', sizeof(session.cgroup_path));
	assert_true(pack_room(&session.record) <= sizeof(packed));
	len = pack_record(&session.record, packed);
	assert_int_equal(unpack_record(packed, len, &unpacked, &got), 0);
	assert_memory_equal(got, &session, sizeof(session));
}
