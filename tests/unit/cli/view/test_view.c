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

/* Whatever flows are grouped by, all of them are in the groups, once. */
TEST(groups_add_up_to_the_flows)
{
	static const char *const keys[] = {
		"src",	   "dst",     "client",	       "pair",
		"service", "port",    "proto",	       "interface",
		"vlan",	   "src,dst", "client,service"
	};

	for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
		const struct view_options options = { .by = parse_by(keys[k]) };
		struct netobs_group_sum sum = { 0 };
		struct view view;

		assert_int_equal(view_init(&view, &options, 0), 0);
		for (int i = 0; i < 1000; i++) {
			struct netobs_flow flow =
				make_tcp_flow((uint8_t)(i % 7), (uint16_t)i,
					      (uint8_t)(i % 5), 443);

			flow.bytes = (uint64_t)i;
			assert_int_equal(view_add(&view, &flow), 0);
		}
		view_turn(&view);
		for (size_t i = 0; i < view.rows.list.n; i++)
			netobs_group_sum_add(&sum, &rows_at(&view.rows, i)->sum);
		assert_memory_equal(&sum, &view.sum, sizeof(sum));
		assert_int_equal(sum.flows, 1000);
		assert_int_equal(sum.bytes, 999 * 1000 / 2);
		view_free(&view);
	}
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
TEST(rows_can_be_sorted_by_a_key)
{
	struct view_options options = { .by = parse_by("src,port") };
	static const uint16_t ports[] = { 443, 8080, 22, 53 };
	char why[192];
	struct view view;

	assert_int_equal(view_parse_sort("port", &options.by, false,
					 &options.order, why, sizeof(why)),
			 0);
	assert_int_equal(view_init(&view, &options, 0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
		const struct netobs_flow flow =
			make_tcp_flow((uint8_t)(9 - i), 40000, 2, ports[i]);

		view_add(&view, &flow);
	}
	view_turn(&view);
	for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
		static const char *const sorted[] = { "22/TCP", "53/TCP",
						      "443/TCP", "8080/TCP" };
		char text[64];

		netobs_group_text(view.groups, rows_at(&view.rows, i)->group, 1,
				  NULL, text, sizeof(text));
		assert_string_equal(text, sorted[i]);
	}
	view_free(&view);
}
