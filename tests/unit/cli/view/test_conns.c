// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Rows of netobsctl tcp: what connections did since the moment before, and their order. */
#include "lib_test.h"

#include <netobs/connection.h>

#include "base/clock_ms.h"
#include "cli/view/conns.h"

/* Number @i of those that follow, which has sent so much. */
static void take(struct conns *conns, uint16_t i, uint64_t bytes,
		 uint64_t rtt_ns, uint64_t retransmits)
{
	const struct netobs_connection_way out = { .data_bytes = bytes,
						   .retransmits = retransmits,
						   .rtt = { .samples = 1,
							    .smoothed_ns =
								    rtt_ns } },
					   in = { .data_bytes = 1 };
	const struct netobs_connection connection = {
		.sz = sizeof(connection),
		.client = { [10] = 0xff, 0xff, 192, 0, 2, 1 },
		.server = { [10] = 0xff, 0xff, 192, 0, 2, 2 },
		.client_port = 40000 + i,
		.server_port = 443,
		.state = NETOBS_CONNECTION_ESTABLISHED,
		.interface = "eth0",
		.start_ns = 1000 - i,
		.to_server = &out,
		.to_client = &in,
	};

	conns_take(&connection, conns);
}

static void assert_order(const struct conns *conns, uint16_t first,
			 uint16_t second, uint16_t third)
{
	const uint16_t wanted[] = { first, second, third };

	assert_int_equal(conns->n, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(conns->list[i].key.client_port,
				 40000 + wanted[i]);
}

TEST(rows_have_what_came_since_the_moment_before)
{
	struct conns conns = { .at_ns = clock_ns(CLOCK_MONOTONIC) };

	conns_begin(&conns);
	take(&conns, 0, 500, 10, 7);
	take(&conns, 1, 400, 30, 0);
	take(&conns, 2, 300, 20, 9);
	conns_end(&conns, CONNS_BY_RATE);
	assert_order(&conns, 0, 1, 2);
	assert_int_equal(conns.list[0].ways[CONN_TO_SERVER].recent_bytes, 500);

	conns_begin(&conns);
	take(&conns, 2, 400, 20, 9);
	take(&conns, 3, 50, 20, 0); /* a new one */
	take(&conns, 0, 510, 10, 8);
	conns_end(&conns, CONNS_BY_RATE);
	assert_order(&conns, 2, 3, 0);
	assert_int_equal(conns.list[0].ways[CONN_TO_SERVER].recent_bytes, 100);
	assert_int_equal(conns.list[1].ways[CONN_TO_SERVER].recent_bytes, 50);
	conns_free(&conns);
}

TEST(rows_are_sorted_by_each_column)
{
	struct conns conns = { .at_ns = clock_ns(CLOCK_MONOTONIC) };

	conns_begin(&conns);
	take(&conns, 0, 500, 10, 7);
	take(&conns, 1, 400, 30, 0);
	take(&conns, 2, 300, 20, 9);
	conns_end(&conns, CONNS_BY_RTT);
	assert_order(&conns, 1, 2, 0);
	conns_sort(&conns, CONNS_BY_RETRANSMITS);
	assert_order(&conns, 2, 0, 1);
	conns_sort(&conns, CONNS_BY_BYTES);
	assert_order(&conns, 0, 1, 2);
	conns_sort(&conns, CONNS_BY_AGE);
	assert_order(&conns, 2, 1, 0);
	conns_free(&conns);
}

/* Number @i of those, of whose answers the server took so long; @thought_ns: the client did. */
static void take_answers(struct conns *conns, uint16_t i, uint64_t samples,
			 uint64_t app_ns, uint64_t thought_ns)
{
	const struct netobs_connection_way out = {
		.response = { .samples = 9, .smoothed_ns = 9 * thought_ns },
		.app = { .samples = samples, .smoothed_ns = app_ns },
	};
	const struct netobs_connection_way in = {
		.think = { .samples = 1, .smoothed_ns = thought_ns },
	};
	const struct netobs_connection connection = {
		.sz = sizeof(connection),
		.client_port = 40000 + i,
		.interface = "eth0",
		.to_server = &out,
		.to_client = &in,
	};

	conns_take(&connection, conns);
}

TEST(the_column_of_applications_is_in_order)
{
	static const char *const shown[] = { "20.0 us", "0.00 us", "-" };
	struct conns conns = { .at_ns = clock_ns(CLOCK_MONOTONIC) };
	struct layout layout;
	size_t app = 0;

	conns_begin(&conns);
	take_answers(&conns, 0, 0, 0, 400000000);
	take_answers(&conns, 1, 5, 0, 300000000);
	take_answers(&conns, 2, 5, 20000, 1000);
	conns_end(&conns, CONNS_BY_APP);
	assert_order(&conns, 2, 1, 0);
	conns_layout(&layout, CONNS_BY_APP, false);
	while (strcmp(layout.columns[app].heading, "APP"))
		app++;
	for (int i = 0; i < 3; i++) {
		struct cells cells;

		layout_cells(&layout, &conns.list[i], &cells);
		assert_string_equal(cells.text[app], shown[i]);
	}
	conns_free(&conns);
}

static void take_at(struct conns *conns, uint32_t ifindex, uint64_t rtt_ns,
		    int64_t start_ns)
{
	take(conns, 0, 100, rtt_ns, 0);
	conns->list[conns->n - 1].key.ifindex = ifindex;
	conns->list[conns->n - 1].key.start_ns = start_ns;
}

/* Of the point with the largest value; another one at the same point is another connection. */
TEST(a_connection_is_one_row)
{
	struct conns conns = { .at_ns = clock_ns(CLOCK_MONOTONIC) };

	for (int round = 0; round < 2; round++) {
		conns_begin(&conns);
		take_at(&conns, 1, 1000, 500);
		take_at(&conns, 2, 2000, 501);
		take(&conns, 1, 100, 3000, 0);
		take_at(&conns, 1, 10, 1);
		conns_end(&conns, CONNS_BY_RTT);
		assert_int_equal(conns.n, 4);
		assert_int_equal(conns.n_shown, 2);
		assert_int_equal(conns.list[0].ways[CONN_TO_SERVER].rtt.smoothed,
				 3000);
		assert_int_equal(conns.list[1].ways[CONN_TO_SERVER].rtt.smoothed,
				 2000);
		assert_int_equal(conns.list[1].n_points, 3);
	}
	/* What came since the moment before is known of every point. */
	for (size_t i = 0; i < conns.n; i++)
		assert_int_equal(conns.list[i].ways[CONN_TO_SERVER].recent_bytes,
				 0);
	conns.per_interface = true;
	conns_sort(&conns, CONNS_BY_RTT);
	assert_int_equal(conns.n_shown, 4);
	conns_free(&conns);
}

/* The line of the only one, which fits. */
static void fit_line(struct conns *conns, enum conns_sort sort,
		     bool has_processes, int width, char line[ROW_LINE_MAX])
{
	struct layout layout;
	struct cells cells;

	conns_layout(&layout, sort, has_processes);
	layout_fit_rows(&layout, conns->list, sizeof(*conns->list), conns->n,
			width);
	layout_cells(&layout, conns->list, &cells);
	layout_line(&layout, &cells, width, line);
	assert_true(row_text_width(line) <= width);
}

/* At any width, and of any address. */
TEST(lines_fit_and_keep_both_round_trip_times)
{
	struct conns conns = { .at_ns = clock_ns(CLOCK_MONOTONIC) };
	char line[ROW_LINE_MAX];

	conns_begin(&conns);
	take(&conns, 0, 500, 123456789, 70000);
	conns_end(&conns, CONNS_BY_RATE);
	for (int width = 66; width < 200; width++) {
		fit_line(&conns, CONNS_BY_RETRANSMITS, false, width, line);
		assert_non_null(strstr(line, "192.0.2.1:40"));
		assert_non_null(strstr(line, "123 ms"));
		assert_non_null(strstr(line, "70000"));
	}
	conns_free(&conns);
}

TEST(with_processes_the_server_stays_whole)
{
	struct conns conns = { .at_ns = clock_ns(CLOCK_MONOTONIC) };
	char line[ROW_LINE_MAX];
	struct conn *conn;

	conns_begin(&conns);
	take(&conns, 0, 500, 123456789, 70000);
	conns_end(&conns, CONNS_BY_RATE);
	conn = &conns.list[0];
	memcpy(conn->key.client + 12, (uint8_t[]){ 198, 151, 100, 201 }, 4);
	memcpy(conn->key.server + 12, (uint8_t[]){ 198, 151, 100, 202 }, 4);
	conn->key.server_port = 40001;
	snprintf(conn->process, sizeof(conn->process),
		 "a_client[4000000] \u2192 a_server[4000001]");
	for (int width = 80; width < 200; width++) {
		fit_line(&conns, CONNS_BY_RATE, true, width, line);
		assert_non_null(strstr(line, "198.151.100.202:40001"));
		assert_non_null(strstr(line, "a_cl"));
		assert_non_null(strstr(line, "123 ms"));
	}
	conns_free(&conns);
}
