/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "lib_test.h"

#include <netinet/in.h>

#include <netobs/flow.h>

#include "cli/view/row.h"
#include "cli/view/view.h"
#include "service/text/human.h"

#define LENGTH ARRAY_SIZE
#define SECOND INT64_C(1000000000)

static struct netobs_flow tcp_flow(uint64_t bytes)
{
	return (struct netobs_flow){
		.sz = sizeof(struct netobs_flow),
		.has = NETOBS_HAS_PORTS | NETOBS_HAS_TCP,
		.end_ns = 2 * SECOND,
		.packets = 12,
		.bytes = bytes,
		.src = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
		.dst = { [10] = 0xff, 0xff, 10, 0, 0, 2 },
		.src_port = 40000,
		.dst_port = 443,
		.tcp_flags = 0x1b,
		.proto = 6,
	};
}

TEST(of_translations_the_ends_that_change_are_named)
{
	struct netobs_flow flow = tcp_flow(1);
	char text[128];

	human_translation(text, sizeof(text), &flow);
	assert_string_equal(text, "");
	flow.has |= NETOBS_HAS_XLAT | NETOBS_HAS_XLAT_PORTS;
	memcpy(flow.xlat_src, flow.src, 16);
	memcpy(flow.xlat_dst, flow.dst, 16);
	flow.xlat_src[15] = 7;
	flow.xlat_src_port = 20000;
	flow.xlat_dst_port = flow.dst_port;
	human_translation(text, sizeof(text), &flow);
	assert_string_equal(text, "src 10.0.0.7:20000");
	flow.has |= NETOBS_HAS_ORIG | NETOBS_HAS_ORIG_PORTS;
	memcpy(flow.orig_src, flow.src, 16);
	memcpy(flow.orig_dst, flow.dst, 16);
	flow.orig_src_port = flow.src_port;
	flow.orig_dst_port = 80;
	human_translation(text, sizeof(text), &flow);
	assert_string_equal(text, "src 10.0.0.7:20000, was dst 10.0.0.2:80");
}

TEST(numbers_keep_three_digits_and_carry_into_the_next_prefix)
{
	static const struct {
		void (*format)(char *buf, size_t size, uint64_t value);
		uint64_t value;
		const char *text;
	} cases[] = {
		{ human_count, 0, "0" },
		{ human_count, 99999, "99999" },
		{ human_count, 123456, "123k" },
		{ human_count, 999499, "999k" },
		{ human_count, 999500, "1.00M" },
		{ human_bytes, 999, "999 B" },
		{ human_bytes, 1000, "1.00 kB" },
		{ human_bytes, 9994, "9.99 kB" },
		{ human_bytes, 9996, "10.0 kB" },
		{ human_bytes, 99960, "100 kB" },
		{ human_bytes, UINT64_MAX, "18.4 EB" },
		{ human_latency, 0, "-" },
		{ human_latency, 1, "0.00 us" },
		{ human_latency, 9990, "9.99 us" },
		{ human_latency, 45600, "45.6 us" },
		{ human_latency, 123456, "123 us" },
		{ human_latency, 999499, "999 us" },
		{ human_latency, 999500, "1.00 ms" },
		{ human_latency, 10260000, "10.3 ms" },
		{ human_latency, 999500000, "1.00 s" },
		{ human_latency, 274000000000, "274 s" },
	};
	char text[16];

	for (size_t i = 0; i < LENGTH(cases); i++) {
		cases[i].format(text, sizeof(text), cases[i].value);
		assert_string_equal(text, cases[i].text);
	}
}

TEST(durations_choose_their_unit)
{
	static const struct {
		int64_t ns;
		const char *text;
	} cases[] = {
		{ 0, "<1 ms" },
		{ -5, "-" },
		{ 1, "<1 ms" },
		{ 1000000, "1 ms" },
		{ SECOND - 1, "999 ms" },
		{ SECOND, "1.0 s" },
		{ 59 * SECOND + SECOND - 1, "59.9 s" },
		{ 60 * SECOND, "1m00s" },
		{ 3599 * SECOND, "59m59s" },
		{ 90061 * SECOND, "25h01m" },
	};
	char text[16];

	for (size_t i = 0; i < LENGTH(cases); i++) {
		human_duration(text, sizeof(text), cases[i].ns);
		assert_string_equal(text, cases[i].text);
	}
}

TEST(rates_are_bits_per_second)
{
	char text[16];

	human_rate(text, sizeof(text), 1000, 2 * SECOND);
	assert_string_equal(text, "4.00 kb/s");
	human_rate(text, sizeof(text), 1000, SECOND / 10);
	assert_string_equal(text, "80.0 kb/s");
	human_rate(text, sizeof(text), 1000, SECOND / 10 - 1);
	assert_string_equal(text, "-");
	human_rate(text, sizeof(text), 1000, 0);
	assert_string_equal(text, "-");
}

TEST(info_names_flags_and_types)
{
	struct netobs_flow flow = tcp_flow(1);
	char text[24];

	human_info(text, sizeof(text), &flow);
	assert_string_equal(text, "SAPF");
	flow.tcp_flags = 0xff;
	human_info(text, sizeof(text), &flow);
	assert_string_equal(text, "SAPFRUEC");

	flow.has = NETOBS_HAS_ICMP;
	flow.proto = IPPROTO_ICMP;
	flow.icmp_type = 8;
	human_info(text, sizeof(text), &flow);
	assert_string_equal(text, "echo request");
	flow.proto = IPPROTO_ICMPV6;
	flow.icmp_type = 135;
	human_info(text, sizeof(text), &flow);
	assert_string_equal(text, "neighbor solicit");
	flow.icmp_type = 255;
	flow.icmp_code = 3;
	human_info(text, sizeof(text), &flow);
	assert_string_equal(text, "type 255 code 3");

	flow.has = 0;
	human_info(text, sizeof(text), &flow);
	assert_string_equal(text, "");
}

TEST(where_lists_points_tags_and_tunnel)
{
	static const struct netobs_point points[] = {
		{ .direction = NETOBS_INGRESS, .name = "eth0" },
		{ .direction = NETOBS_EGRESS, .name = "e\033[2J" },
	};
	struct netobs_flow flow = tcp_flow(1);
	char text[128], tight[12];

	flow.points = points;
	flow.n_points = LENGTH(points);
	flow.point_size = sizeof(points[0]);
	flow.has |= NETOBS_HAS_VLAN | NETOBS_HAS_OUTER_VLAN |
		    NETOBS_HAS_TUNNEL | NETOBS_HAS_VNI;
	flow.outer_vlan_id = 100;
	flow.vlan_id = 7;
	flow.tunnel = NETOBS_TUNNEL_VXLAN;
	flow.vni = 42;
	human_where(text, sizeof(text), &flow);
	assert_string_equal(text, "eth0 in, e?[2J out, vlan 100.7, vxlan 42");
	human_where(tight, sizeof(tight), &flow);
	assert_string_equal(tight, "eth0 in, e?");

	flow.n_points = 0;
	flow.has = NETOBS_HAS_TUNNEL;
	flow.tunnel = NETOBS_TUNNEL_IPIP;
	human_where(text, sizeof(text), &flow);
	assert_string_equal(text, "ipip");
}

static const struct view_options by_flow = { 0 };

/* Lines of the table for @flow and its heading, fitted to @screen columns. */
static void render(const struct netobs_flow *flow, int screen, char *heading,
		   char *line)
{
	struct layout layout;
	struct cells cells;
	struct view view;

	assert_int_equal(view_init(&view, &by_flow, 0), 0);
	assert_int_equal(view_add(&view, flow), 0);
	view_turn(&view);
	layout_init(&layout, &by_flow.by, LAYOUT_LIVE);
	layout_headings(&layout, &cells);
	layout_widen(&layout, &cells);
	layout_cells(&layout, rows_at(&view.rows, 0), &cells);
	layout_widen(&layout, &cells);
	layout_fit(&layout, screen);
	layout_line(&layout, &cells, screen, line);
	layout_headings(&layout, &cells);
	layout_line(&layout, &cells, screen, heading);
	view_free(&view);
}

TEST(endpoints_bracket_ipv6_with_ports)
{
	char heading[ROW_LINE_MAX], line[ROW_LINE_MAX];
	struct netobs_flow flow = tcp_flow(1);

	render(&flow, 0x7fff, heading, line);
	assert_non_null(strstr(line, " 10.0.0.1:40000 \u2192 10.0.0.2:443 "));

	memset(flow.src, 0, sizeof(flow.src));
	flow.src[15] = 1;
	render(&flow, 0x7fff, heading, line);
	assert_non_null(strstr(line, " [::1]:40000 \u2192 10.0.0.2:443 "));
	flow.has = 0;
	render(&flow, 0x7fff, heading, line);
	assert_non_null(strstr(line, " ::1 \u2192 10.0.0.2 "));
}

TEST(no_line_is_wider_than_the_screen)
{
	char heading[ROW_LINE_MAX], line[ROW_LINE_MAX];
	struct netobs_flow flow = tcp_flow(123456789);

	memset(flow.src, 0xee, sizeof(flow.src));
	memset(flow.dst, 0xee, sizeof(flow.dst));
	for (int screen = 1; screen < 250; screen++) {
		render(&flow, screen, heading, line);
		assert_true(row_text_width(heading) <= screen);
		assert_true(row_text_width(line) <= screen);
	}
}

TEST(a_narrow_screen_keeps_the_flow_and_its_bytes)
{
	char heading[ROW_LINE_MAX], line[ROW_LINE_MAX];
	struct netobs_flow flow = tcp_flow(5000);

	render(&flow, 200, heading, line);
	assert_non_null(strstr(heading, "DURATION"));
	assert_non_null(strstr(line, "20.0 kb/s"));

	render(&flow, 46, heading, line);
	assert_null(strstr(heading, "DURATION"));
	assert_string_equal(
		heading, "PROTO  SOURCE \u2192 DESTINATION             BYTES");
	assert_string_equal(
		line, "TCP    10.0.0.1:40000 \u2192 10.0.0.2:443  5.00 kB");

	render(&flow, 36, heading, line);
	assert_string_equal(
		line, "TCP    10.0.0\u2026 \u2192 10.0.\u2026:443  5.00 kB");
}

TEST(rows_keep_the_first_in_any_order_and_count_all)
{
	enum { FLOWS = 1000, KEPT = 10 };
	static const enum netobs_group_sort sorts[] = { NETOBS_GROUP_BY_BYTES,
							NETOBS_GROUP_BY_PACKETS,
							NETOBS_GROUP_BY_TIME };

	for (size_t s = 0; s < LENGTH(sorts); s++) {
		const struct order order = { .sort = sorts[s] };
		struct rows rows;

		rows_init(&rows, &order, KEPT);
		for (uint64_t i = 0; i < FLOWS; i++) {
			const uint64_t n = i * 389 % FLOWS;
			const struct row row = { .sum = { .flows = 1,
							  .packets = n,
							  .bytes = n,
							  .start_ns = -(
								  int64_t)n } };

			assert_int_equal(rows_add(&rows, &row), 0);
		}
		rows_sort(&rows);
		assert_int_equal(rows.list.n, KEPT);
		for (size_t i = 0; i < KEPT; i++)
			assert_int_equal(rows_at(&rows, i)->sum.bytes,
					 FLOWS - 1 - i);
		assert_int_equal(rows.added, FLOWS);
		assert_int_equal(rows.sum.flows, FLOWS);
		assert_int_equal(rows.sum.bytes, FLOWS * (FLOWS - 1) / 2);
		assert_int_equal(rows_rest(&rows, 1).bytes,
				 FLOWS * (FLOWS - 1) / 2 - (FLOWS - 1));
		rows_clear(&rows);
		assert_int_equal(rows.list.n + rows.added + rows.sum.flows, 0);
		rows_free(&rows);
	}
}

TEST(bytes_of_a_group_that_may_lack_some_have_a_sign)
{
	const struct netobs_groups_opts opts = { .sz = sizeof(opts),
						 .keys = "src",
						 .max_groups = 1 };
	struct netobs_groups_top top = { .sz = sizeof(top) };
	struct netobs_groups *groups = NULL;
	struct by by;
	struct rows rows;
	struct layout layout;
	struct cells cells;
	size_t column = 0;

	assert_int_equal(netobs_groups_new(&opts, &groups), 0);
	assert_int_equal(by_parse("src", &by, NULL, 0), 0);
	layout_init(&layout, &by, LAYOUT_LIVE);
	layout.groups = groups;
	while (layout.columns[column].id != COLUMN_BYTES)
		column++;
	rows_init(&rows, &(struct order){ 0 }, 0);
	for (uint8_t i = 0; i < 2; i++) {
		struct netobs_flow flow = tcp_flow(5000);

		flow.src[15] += i;
		assert_int_equal(netobs_groups_add(groups, &flow), 0);
		assert_int_equal(rows_take_groups(&rows, groups, &top), i);
		layout_cells(&layout, rows_at(&rows, 0), &cells);
		assert_string_equal(cells.text[column],
				    i ? ">5.00 kB" : "5.00 kB");
	}
	layout_cells_sum(&layout, "(others)", &top.others, &cells);
	assert_string_equal(cells.text[column], "5.00 kB");
	rows_free(&rows);
	netobs_groups_free(groups);
}

TEST(without_utf8_signs_are_of_ascii)
{
	static const struct {
		const char *all, *ctype, *lang, *expected;
	} cases[] = {
		{ "C.UTF-8", "C", "C", "a \u2192 b \u2190 c \u2194 d\u2026" },
		{ "", "en_GB.utf8", "C", "a \u2192 b \u2190 c \u2194 d\u2026" },
		{ "", "", "de_DE.UTF-8", "a \u2192 b \u2190 c \u2194 d\u2026" },
		{ "C", "C.UTF-8", "C.UTF-8", "a -> b <- c <-> d~" },
		{ "", "POSIX", "C.UTF-8", "a -> b <- c <-> d~" },
		{ "", "", "", "a -> b <- c <-> d~" },
	};

	for (size_t i = 0; i < LENGTH(cases); i++) {
		char text[] = "a \u2192 b \u2190 c \u2194 d\u2026";

		setenv("LC_ALL", cases[i].all, 1);
		setenv("LC_CTYPE", cases[i].ctype, 1);
		setenv("LANG", cases[i].lang, 1);
		row_plain(text);
		assert_string_equal(text, cases[i].expected);
	}
	setenv("LC_ALL", "C.UTF-8", 1);
}
