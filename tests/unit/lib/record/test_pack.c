// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib_test.h"

#include "record/any.h"

static _Alignas(PACK_ALIGN) char packed[PACK_MAX];
static struct unpacked unpacked;

/* Every byte of it tells where it is. */
static struct netobs_flow make_flow(const struct netobs_point *points, uint32_t n)
{
	struct netobs_flow flow;

	for (size_t i = 0; i < sizeof(flow); i++)
		((uint8_t *)&flow)[i] = (uint8_t)(i * 7 + 1);
	flow.sz = sizeof(flow);
	flow.type = NETOBS_RECORD_FLOW;
	flow.n_points = n;
	flow.point_size = sizeof(*points);
	flow.points = n ? points : NULL;
	flow.src_process = flow.dst_process = NULL;
	return flow;
}

static size_t pack(const struct netobs_flow *flow)
{
	return pack_record(&flow->record, packed);
}

static int unpack(const void *bytes, size_t len)
{
	const struct netobs_record *record = NULL;
	int err = unpack_record(bytes, len, &unpacked, &record);

	if (!err)
		assert_ptr_equal(record, &unpacked.any.record);
	return err;
}

static void assert_same_flow(const struct netobs_flow *flow)
{
	struct netobs_flow got = unpacked.any.flow;

	assert_int_equal(got.n_points, flow->n_points);
	got.points = flow->points;
	assert_memory_equal(&got, flow, sizeof(got));
}

TEST(record_comes_back_with_its_points)
{
	struct netobs_point points[3] = {
		{ .ifindex = 1,
		  .netns_inode = 5,
		  .direction = NETOBS_EGRESS,
		  .name = "eth0" },
		{ .ifindex = 70000, .direction = NETOBS_INGRESS, .name = NULL },
		{ .ifindex = 3,
		  .direction = NETOBS_INGRESS,
		  .name = "a-name-as-long-as-they-are" },
	};

	for (uint32_t n = 0; n <= 3; n++) {
		struct netobs_flow flow = make_flow(points, n);
		size_t len = pack(&flow);

		assert_int_equal(unpack(packed, len), 0);
		assert_same_flow(&flow);
		for (uint32_t i = 0; i < n; i++) {
			const struct netobs_point *got = &unpacked.points[i];

			assert_int_equal(got->ifindex, points[i].ifindex);
			assert_int_equal(got->netns_inode, points[i].netns_inode);
			assert_int_equal(got->direction, points[i].direction);
			if (points[i].name)
				assert_string_equal(got->name, points[i].name);
			else
				assert_null(got->name);
		}
	}
}

TEST(no_record_is_too_large)
{
	static struct netobs_point points[1000];
	char name[200];
	struct netobs_flow flow = make_flow(points, 1000);
	size_t len;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (int i = 0; i < 1000; i++)
		points[i] = (struct netobs_point){ .ifindex = (uint32_t)i,
						   .name = name };
	len = pack(&flow);
	assert_true(len <= sizeof(packed));
	assert_int_equal(unpack(packed, len), 0);
	assert_int_equal(unpacked.any.flow.n_points, PACK_POINTS_MAX);
	assert_int_equal(unpacked.points[255].ifindex, 255);
	assert_int_equal(strlen(unpacked.points[255].name), PACK_NAME_MAX - 1);
}

/* A spool may say anything, if its checksum is right. */
TEST(more_points_than_there_is_room_for_are_damage)
{
	static struct netobs_point points[PACK_POINTS_MAX];
	static char larger[2 * PACK_MAX];
	struct netobs_flow flow = make_flow(points, PACK_POINTS_MAX);
	const uint32_t n = PACK_POINTS_MAX + 1;

	pack(&flow);
	memcpy(larger, packed, sizeof(packed));
	memcpy(larger + 4, &n, sizeof(n));
	assert_int_equal(unpack(larger, sizeof(larger)), -EBADMSG);
}

/* From a version of the library with smaller or larger structs. */
TEST(other_versions_are_understood)
{
	struct netobs_point point = { .ifindex = 9, .name = "eth9" };
	struct netobs_flow flow = make_flow(&point, 1);
	struct netobs_flow was;
	const size_t head = 8, cut = 24;
	size_t len = pack(&flow), old = sizeof(flow) - cut;
	char other[2048];
	uint16_t size = (uint16_t)old;

	memcpy(other, packed, head + old);
	memcpy(other, &size, sizeof(size));
	memcpy(other + head + old, packed + head + sizeof(flow),
	       len - head - sizeof(flow));
	assert_int_equal(unpack(other, len - cut), 0);
	was = flow;
	memset((char *)&was + old, 0, cut);
	was.sz = sizeof(was);
	was.n_points = 1;
	was.point_size = sizeof(point);
	was.points = &point;
	assert_same_flow(&was);
	assert_string_equal(unpacked.points[0].name, "eth9");

	size = (uint16_t)(sizeof(flow) + cut);
	memset(other, 0x5a, sizeof(other));
	memcpy(other, packed, head + sizeof(flow));
	memcpy(other, &size, sizeof(size));
	memcpy(other + head + size, packed + head + sizeof(flow),
	       len - head - sizeof(flow));
	assert_int_equal(unpack(other, len + cut), 0);
	assert_same_flow(&flow);
	assert_string_equal(unpacked.points[0].name, "eth9");
}

/* In a buffer of just that size, so that the sanitizer sees who reads beyond. */
TEST(what_is_cut_off_anywhere_is_none)
{
	struct netobs_point points[2] = { { .name = "eth0" }, { .name = "eth1" } };
	struct netobs_flow flow = make_flow(points, 2);
	size_t len = pack(&flow);

	for (size_t cut = 0; cut < len; cut++) {
		char *part = malloc(cut + 1);

		memcpy(part + 1, packed, cut);
		assert_int_equal(unpack(part + 1, cut), -EBADMSG);
		free(part);
	}
}

/* ---- Other types ----------------------------------------------------------------- */

static struct netobs_stats_record make_stats(void)
{
	struct netobs_stats_record stats;

	memset(&stats, 0x5a, sizeof(stats));
	stats.record.sz = sizeof(stats);
	stats.record.type = NETOBS_RECORD_STATS;
	return stats;
}

static size_t pack_stats(void)
{
	const struct netobs_stats_record stats = make_stats();

	return pack_record(&stats.record, packed);
}

TEST(record_is_read_where_it_was_written)
{
	char name[] = "eth0";
	struct netobs_point point = { .ifindex = 1,
				      .direction = NETOBS_EGRESS,
				      .name = name };
	struct netobs_flow flow = make_flow(&point, 1);
	const struct netobs_flow *got = as_flow(packed_record(packed));

	pack(&flow);
	name[0] = 'x';
	point.ifindex = 2;
	assert_int_equal(got->packets, flow.packets);
	assert_int_equal(netobs_flow_point(got, 0)->ifindex, 1);
	assert_int_equal(netobs_flow_point(got, 0)->direction, NETOBS_EGRESS);
	assert_string_equal(netobs_flow_point(got, 0)->name, "eth0");
}

TEST(statistics_are_read_in_place)
{
	const struct netobs_stats_record stats = make_stats();
	const struct netobs_record *record;
	size_t len = pack_stats();

	assert_int_equal(unpack_record(packed, len, &unpacked, &record), 0);
	assert_ptr_equal(record, packed_record(packed));
	assert_memory_equal(record, &stats, sizeof(stats));
	for (size_t cut = 0; cut < len; cut++)
		assert_int_equal(unpack(packed, cut), -EBADMSG);
}

TEST(statistics_of_other_versions_are_understood)
{
	const uint16_t sizes[] = { sizeof(struct netobs_stats_record) - 24,
				   sizeof(struct netobs_stats_record) + 24 };
	const struct netobs_stats_record stats = make_stats();

	for (int i = 0; i < 2; i++) {
		struct netobs_stats_record expected = stats;

		if (!i)
			memset((char *)&expected + sizes[0], 0, 24);
		pack_stats();
		memcpy(packed, &sizes[i], sizeof(sizes[i]));
		assert_int_equal(unpack(packed, sizes[i] + 8U), 0);
		assert_memory_equal(&unpacked.any.stats_record, &expected,
				    sizeof(expected));
	}
}

TEST(unknown_type_is_not_damage)
{
	struct netobs_record *record =
		(struct netobs_record *)packed_record(packed);
	size_t len = pack_stats();

	record->type = NETOBS_RECORD_TYPES;
	assert_int_equal(unpack(packed, len), -ENOTSUP);
	record->type = NETOBS_RECORD_FLOW; /* would lack its points */
	assert_int_equal(unpack(packed, len), -EBADMSG);
}

TEST(journey_comes_back_with_all_but_unused_steps)
{
	struct netobs_journey journey = { 0 };

	for (size_t i = 0; i < offsetof(struct netobs_journey, steps); i++)
		((uint8_t *)&journey)[i] = (uint8_t)(i * 7 + 1);
	journey.record.sz = sizeof(journey);
	journey.record.type = NETOBS_RECORD_JOURNEY;
	journey.n_steps = 3;
	for (uint32_t i = 0; i < journey.n_steps; i++)
		journey.steps[i].time_ns = 100 + i;
	assert_int_equal(unpack(packed, pack_record(&journey.record, packed)), 0);
	unpacked.any.record.sz = sizeof(journey);
	assert_memory_equal(&unpacked.any.record, &journey, sizeof(journey));
}

/* Most groups have no histogram, which takes half of a record. */
TEST(groups_have_histograms_where_they_are_known)
{
	struct netobs_group_record group;
	const struct netobs_group_record *found;
	const struct netobs_record *record;
	size_t len, whole;

	memset(&group, 7, sizeof(group));
	group.record.sz = sizeof(group);
	group.record.type = NETOBS_RECORD_GROUP;
	group.record.has = NETOBS_GROUP_HAS_APP_LATENCY_TIMES;
	whole = pack_record(&group.record, packed);
	assert_int_equal(unpack_record(packed, whole, &unpacked, &record), 0);
	assert_memory_equal(record, &group, sizeof(group));
	group.record.has = NETOBS_GROUP_HAS_SENT;
	len = pack_record(&group.record, packed);
	assert_int_equal(whole - len, 2 * sizeof(struct netobs_times));
	assert_int_equal(unpack_record(packed, len, &unpacked, &record), 0);
	found = (const struct netobs_group_record *)record;
	assert_int_equal(found->record.sz, sizeof(*found));
	assert_memory_equal(&found->start_ns, &group.start_ns,
			    offsetof(struct netobs_group_record, rtt_times) -
				    sizeof(group.record));
	assert_int_equal(found->rtt_times.n, 0);
	assert_int_equal(found->app_latency_times.n, 0);
}
