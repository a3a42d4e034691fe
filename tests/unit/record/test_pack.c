// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib_test.h"

#include "record/pack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char packed[SEGMENT_RECORD_MAX];
static struct unpacked unpacked;

/* Every byte of it tells where it is. */
static struct netobs_flow make_flow(const struct netobs_point *points, uint32_t n)
{
	struct netobs_flow flow;

	for (size_t i = 0; i < sizeof(flow); i++)
		((uint8_t *)&flow)[i] = (uint8_t)(i * 7 + 1);
	flow.sz = sizeof(flow);
	flow.n_points = n;
	flow.point_size = sizeof(*points);
	flow.points = n ? points : NULL;
	return flow;
}

static void assert_same_flow(const struct netobs_flow *flow)
{
	struct netobs_flow got = unpacked.flow;

	assert_int_equal(got.n_points, flow->n_points);
	got.points = flow->points;
	assert_memory_equal(&got, flow, sizeof(got));
}

static void record_comes_back_with_its_points(void **state)
{
	struct netobs_point points[3] = {
		{ .ifindex = 1, .netns_inode = 5, .direction = 1, .name = "eth0" },
		{ .ifindex = 70000, .name = NULL },
		{ .ifindex = 3, .name = "a-name-as-long-as-they-are" },
	};

	(void)state;
	for (uint32_t n = 0; n <= 3; n++) {
		struct netobs_flow flow = make_flow(points, n);
		size_t len = pack_flow(&flow, packed);

		assert_int_equal(unpack_flow(packed, len, &unpacked), 0);
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

static void no_record_is_too_large(void **state)
{
	static struct netobs_point points[1000];
	char name[200];
	struct netobs_flow flow = make_flow(points, 1000);
	size_t len;

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (int i = 0; i < 1000; i++)
		points[i] = (struct netobs_point){ .ifindex = (uint32_t)i,
						   .name = name };
	len = pack_flow(&flow, packed);
	assert_true(len <= sizeof(packed));
	assert_int_equal(unpack_flow(packed, len, &unpacked), 0);
	assert_int_equal(unpacked.flow.n_points, PACK_POINTS_MAX);
	assert_int_equal(unpacked.points[255].ifindex, 255);
	assert_int_equal(strlen(unpacked.points[255].name), PACK_NAME_MAX - 1);
}

/* From a version of the library whose structs were smaller, or are larger. */
static void other_versions_are_understood(void **state)
{
	struct netobs_point point = { .ifindex = 9, .name = "eth9" };
	struct netobs_flow flow = make_flow(&point, 1);
	struct netobs_flow was;
	const size_t head = 8, cut = 24;
	size_t len = pack_flow(&flow, packed), old = sizeof(flow) - cut;
	char other[2048];
	uint16_t size = (uint16_t)old;

	(void)state;
	memcpy(other, packed, head + old);
	memcpy(other, &size, sizeof(size));
	memcpy(other + head + old, packed + head + sizeof(flow),
	       len - head - sizeof(flow));
	assert_int_equal(unpack_flow(other, len - cut, &unpacked), 0);
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
	assert_int_equal(unpack_flow(other, len + cut, &unpacked), 0);
	assert_same_flow(&flow);
	assert_string_equal(unpacked.points[0].name, "eth9");
}

/* In a buffer of just that size, so that the sanitizer sees who reads beyond. */
static void what_is_cut_off_anywhere_is_none(void **state)
{
	struct netobs_point points[2] = { { .name = "eth0" }, { .name = "eth1" } };
	struct netobs_flow flow = make_flow(points, 2);
	size_t len = pack_flow(&flow, packed);

	(void)state;
	for (size_t cut = 0; cut < len; cut++) {
		char *part = malloc(cut + 1);

		memcpy(part + 1, packed, cut);
		assert_int_equal(unpack_flow(part + 1, cut, &unpacked), -EBADMSG);
		free(part);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(record_comes_back_with_its_points),
		cmocka_unit_test(no_record_is_too_large),
		cmocka_unit_test(other_versions_are_understood),
		cmocka_unit_test(what_is_cut_off_anywhere_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
