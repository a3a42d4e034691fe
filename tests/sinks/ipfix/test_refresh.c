// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What is said again: templates by time, names when they change. */
#include "sinks/ipfix/reports.h"

#include "lib_test.h"

TEST(templates_come_soon_again_and_then_rarely)
{
	struct refresh refresh = { .interval_ms = 60000, .repeats = true };
	int64_t now = 5000;

	refresh_start(&refresh, now);
	assert_true(refresh_is_due(&refresh, now));
	refresh_done(&refresh, now);
	assert_false(refresh_is_due(&refresh, now + 999));
	assert_true(refresh_is_due(&refresh, now + 1000));
	refresh_done(&refresh, now + 1000);
	assert_false(refresh_is_due(&refresh, now + 4999));
	assert_true(refresh_is_due(&refresh, now + 5000));
	for (int i = 0; i < 100; i++) {
		now += 100000;
		refresh_done(&refresh, now);
		assert_false(refresh_is_due(&refresh, now + 59999));
		assert_true(refresh_is_due(&refresh, now + 60000));
	}
}

TEST(reliable_transports_have_them_once)
{
	struct refresh refresh = { .interval_ms = 1000 };

	refresh_start(&refresh, 0);
	assert_true(refresh_is_due(&refresh, 0));
	refresh_done(&refresh, 0);
	assert_false(refresh_is_due(&refresh, 1000000));
	refresh_start(&refresh, 1000000);
	assert_true(refresh_is_due(&refresh, 1000000));
}

static struct slots names;

static bool tell(uint32_t ifindex, uint32_t netns, const char *text)
{
	const struct netobs_point point = { .ifindex = ifindex,
					    .netns_inode = netns,
					    .name = text };
	struct name name;

	if (!names_is_new(&names, &point, &name))
		return false;
	names_note(&names, &name);
	return true;
}

TEST(names_are_told_once_and_when_they_change)
{
	slots_clear(&names);
	assert_true(tell(2, 1, "eth0"));
	assert_false(tell(2, 1, "eth0"));
	assert_true(tell(2, 7, "eth0"));
	assert_true(tell(2, 1, "uplink"));
	assert_false(tell(2, 1, "uplink"));
	assert_false(tell(0, 1, "nowhere"));
	assert_false(tell(3, 1, NULL));
	assert_true(tell(3, 1, "a-name-of-sixteen-and-more"));
	assert_false(tell(3, 1, "a-name-of-sixteen-and-more"));
	slots_clear(&names);
	assert_true(tell(2, 1, "uplink"));
	slots_free(&names);
}

TEST(any_number_of_interfaces_finds_an_end)
{
	unsigned int told = 0;
	char text[16];

	slots_clear(&names);
	for (uint32_t i = 1; i <= 10000; i++) {
		snprintf(text, sizeof(text), "veth%u", i);
		told += tell(i, 1, text);
		assert_true(names.n <= NAMES_MAX);
	}
	assert_int_equal(told, 10000);
	slots_free(&names);
}
