/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Views: the collection of an interval, and the orders of rows. */
#include "lib_flow.h"
#include "lib_test.h"

#include "cli/view/view.h"

static struct by parse_by(const char *text)
{
	char why[256] = "";
	struct by by;

	if (by_parse(text, &by, why, sizeof(why)) < 0)
		fail_msg("%s: %s", text, why);
	return by;
}

TEST(sorts_are_columns_that_are_shown)
{
	static const struct {
		const char *by, *sort;
		bool is_lines;
		const char *why; /* NULL: it is fine */
	} cases[] = {
		{ "flow", "packets", false, NULL },
		{ "flow", "duration", true, NULL },
		{ "flow", "flows", true,
		  "there are bytes, packets, duration, time" },
		{ "flow", "src", true,
		  "there are bytes, packets, duration, time" },
		{ "flow", "time", false, "no such column" },
		{ "src", "src", false, NULL },
		{ "src,dst", "dst", true, NULL },
		{ "src", "dst", false, "and the keys of --by" },
		{ "src", "sent", false, "no such column" },
		{ "host", "sent", false, NULL },
		{ "host", "packet", false, "did you mean 'packets'?" },
		{ "host", "rtt", false, "no such column" },
	};
	char why[192];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct by by = parse_by(cases[i].by);
		struct order order;
		int r = view_parse_sort(cases[i].sort, &by, cases[i].is_lines,
					&order, why, sizeof(why));

		assert_int_equal(r, cases[i].why ? -EINVAL : 0);
		if (cases[i].why && !strstr(why, cases[i].why))
			fail_msg("%s: %s", cases[i].sort, why);
	}
}

/* Not in the order of the whole values, which rows with equal counts have. */
TEST(rows_can_be_sorted_by_a_key_and_add_up)
{
	struct view_options options = { .by = parse_by("src,port") };
	static const uint16_t ports[] = { 443, 8080, 22, 53 };
	struct netobs_group_sum sum = { 0 };
	char why[192];
	struct view view;

	assert_int_equal(view_parse_sort("port", &options.by, false,
					 &options.order, why, sizeof(why)),
			 0);
	assert_int_equal(view_init(&view, &options, 0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
		const struct netobs_flow flow =
			make_tcp_flow((uint8_t)(9 - i), 40000, 2, ports[i]);

		assert_int_equal(view_add(&view, &flow), 0);
	}
	view_turn(&view);
	assert_int_equal(view.rows.list.n, ARRAY_SIZE(ports));
	for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
		static const char *const sorted[] = { "22/TCP", "53/TCP",
						      "443/TCP", "8080/TCP" };
		char text[64];

		netobs_group_text(view.groups, rows_at(&view.rows, i)->group, 1,
				  NULL, text, sizeof(text));
		assert_string_equal(text, sorted[i]);
		netobs_group_sum_add(&sum, &rows_at(&view.rows, i)->sum);
	}
	assert_memory_equal(&sum, &view.sum, sizeof(sum));
	assert_int_equal(sum.flows, ARRAY_SIZE(ports));
	view_free(&view);
}
