// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The API of the service map: what it takes, its rows, their JSON. */
#include "lib_seed.h"
#include "lib_test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <netobs/drop.h>
#include <netobs/flow.h>
#include <netobs/services.h>
#include <netobs/session.h>

static struct netobs_flow make_flow(uint8_t client, uint64_t bytes)
{
	return (struct netobs_flow){ .sz = sizeof(struct netobs_flow),
				     .src = { [15] = client },
				     .dst = { [15] = 9 },
				     .src_port = 40000,
				     .dst_port = 53,
				     .proto = 17,
				     .packets = 1,
				     .bytes = bytes,
				     .start_ns = 1000000000,
				     .end_ns = 2000000000 };
}

static struct netobs_services *make_services(uint32_t max_edges)
{
	NETOBS_OPTS(netobs_services_opts, opts, .max_edges = max_edges);
	struct netobs_services *services = NULL;

	assert_int_equal(netobs_services_new(&opts, &services), 0);
	return services;
}

static void add_flow(struct netobs_services *services, uint8_t client,
		     uint64_t bytes)
{
	const struct netobs_flow flow = make_flow(client, bytes);

	assert_int_equal(netobs_services_add(services, NULL, &flow.record), 0);
}

static void assert_row(struct netobs_services *services, size_t i,
		       enum netobs_edge_type type, uint64_t edges, uint64_t bytes)
{
	const struct netobs_edge *row = netobs_services_row(services, i);

	assert_non_null(row);
	assert_int_equal(row->sz, sizeof(*row));
	assert_int_equal(row->type, type);
	assert_int_equal(row->edges, edges);
	assert_int_equal(row->bytes[0], bytes);
}

TEST(rows_are_the_largest_edges_the_others_and_the_total)
{
	struct netobs_services *services = make_services(0);

	for (uint8_t client = 1; client <= 5; client++)
		add_flow(services, client, 100U * client);
	assert_int_equal(netobs_services_rows(services, 0), 6);
	assert_row(services, 5, NETOBS_EDGE_TOTAL, 5, 1500);
	assert_null(netobs_services_row(services, 6));
	assert_int_equal(netobs_services_rows(services, 2), 4);
	assert_row(services, 0, NETOBS_EDGE, 1, 500);
	assert_int_equal(netobs_services_row(services, 0)->client[15], 5);
	assert_int_equal(netobs_services_row(services, 0)->port, 53);
	assert_string_equal(netobs_services_row(services, 0)->counted_by[0],
			    "this host");
	assert_int_equal(netobs_services_row(services, 0)->start_ms, 1000);
	assert_int_equal(netobs_services_row(services, 0)->end_ms, 2000);
	assert_row(services, 1, NETOBS_EDGE, 1, 400);
	assert_row(services, 2, NETOBS_EDGE_OTHERS, 3, 600);
	assert_row(services, 3, NETOBS_EDGE_TOTAL, 5, 1500);
	assert_null(netobs_services_row(services, 4));
	netobs_services_clear(services);
	assert_null(netobs_services_row(services, 1));
	assert_int_equal(netobs_services_rows(services, 2), 1);
	assert_row(services, 0, NETOBS_EDGE_TOTAL, 0, 0);
	netobs_services_free(services);
}

TEST(edges_beyond_the_most_are_others)
{
	struct netobs_services *services = make_services(2);

	for (uint8_t client = 1; client <= 3; client++)
		add_flow(services, client, 100U * client);
	assert_int_equal(netobs_services_rows(services, 0), 4);
	assert_row(services, 2, NETOBS_EDGE_OTHERS, 1, 100);
	assert_row(services, 3, NETOBS_EDGE_TOTAL, 3, 600);
	netobs_services_free(services);
}

/* A conversation of datagrams between two hosts and ports of its own. Its first end asks. */
struct exchange {
	uint8_t hosts[2];
	uint16_t ports[2];
	unsigned int begins, answers,
		ends; /* intervals; it began before the first one's end */
	bool is_exact;
};

static void add_datagrams(struct netobs_services *services,
			  const struct exchange *exchange, int from, int64_t ns)
{
	struct netobs_flow flow = make_flow(exchange->hosts[from], 100);

	flow.dst[15] = exchange->hosts[!from];
	flow.src_port = exchange->ports[from];
	flow.dst_port = exchange->ports[!from];
	/* Of a tick that began up to 10 ms before. */
	flow.start_ns = exchange->is_exact || test_below(2) ?
				ns & -2 :
				(ns - test_below(10000000)) | 1;
	flow.end_ns = ns;
	assert_int_equal(netobs_services_add(services, NULL, &flow.record), 0);
}

/* After the first packets of both ends, either end may be the first one of an interval, and either or both may rest. */
static void tell_interval(struct netobs_services *services,
			  const struct exchange *exchange, unsigned int interval)
{
	const int64_t ns = 1000000000LL * (interval + 1);
	const int64_t later_ns =
		ns + 2 + test_below(test_below(2) ? 100000 : 30000000);
	const bool is_anybodys = interval > exchange->answers ||
				 !exchange->begins;
	const int first = is_anybodys && test_below(2), told = (int)test_below(2);

	if (interval < exchange->begins || interval > exchange->ends ||
	    (interval > exchange->answers && !test_below(4)))
		return;
	for (int i = 0; i < 2; i++) { /* in any order, as from a table */
		const int end = i ^ told;

		if (i && interval > exchange->answers && test_below(2))
			continue;
		if (!end || interval >= exchange->answers)
			add_datagrams(services, exchange, end,
				      end == first ? ns : later_ns);
	}
}

static bool shows_server(const struct netobs_edge *row,
			 const struct exchange *exchange)
{
	if (row->evidence == NETOBS_EDGE_PORT)
		return false;
	assert_int_equal(row->client[15], exchange->hosts[0]);
	assert_int_equal(row->service[15], exchange->hosts[1]);
	assert_int_equal(row->port, exchange->ports[1]);
	return true;
}

/* Who answers is the service, or the port shows it where the times of first packets do not. */
TEST(who_answers_datagrams_is_the_service)
{
	enum { EXCHANGES = 120, INTERVALS = 8 };
	struct netobs_services *services = make_services(0);
	struct exchange all[EXCHANGES];
	unsigned int shown[2] = { 0 };

	for (unsigned int i = 0; i < EXCHANGES; i++) {
		struct exchange *one = &all[i];

		*one = (struct exchange){
			.hosts = { (uint8_t)(2 * i + 1), (uint8_t)(2 * i + 2) },
			.ports = { (uint16_t)(1 + test_below(65535)),
				   (uint16_t)(1 + test_below(65535)) },
			.begins = test_below(INTERVALS),
			.is_exact = test_below(2),
		};
		one->answers = one->begins + test_below(3);
		one->ends = one->answers + test_below(4);
	}
	for (unsigned int interval = 0; interval < INTERVALS; interval++) {
		int rows;

		for (unsigned int i = 0; i < EXCHANGES; i++)
			tell_interval(services, &all[i], interval);
		rows = netobs_services_rows(services, 0);
		for (int i = 0; i < rows - 1; i++) {
			const struct netobs_edge *row =
				netobs_services_row(services, (size_t)i);
			const struct exchange *one =
				&all[(row->client[15] - 1) / 2];
			const bool is_shown = shows_server(row, one);

			shown[one->is_exact] += is_shown;
			if (one->is_exact || one->answers > one->begins)
				assert_int_equal(
					is_shown,
					one->begins && interval >= one->answers);
		}
		netobs_services_clear(services);
	}
	assert_in_range(shown[0], 20, EXCHANGES * 3);
	assert_in_range(shown[1], 40, EXCHANGES * 3);
	netobs_services_free(services);
}

TEST(of_sampled_datagrams_no_order_is_known)
{
	const struct exchange exchange = { { 1, 2 }, { 53, 40000 }, 1, 1,
					   1,	     true };
	struct netobs_services *services = make_services(0);
	struct netobs_flow flow = make_flow(9, 100);

	flow.sampling = 2;
	assert_int_equal(netobs_services_add(services, NULL, &flow.record), 0);
	netobs_services_rows(services, 0);
	netobs_services_clear(services);
	add_datagrams(services, &exchange, 0, 4);
	add_datagrams(services, &exchange, 1, 6);
	netobs_services_rows(services, 0);
	assert_int_equal(netobs_services_row(services, 0)->evidence,
			 NETOBS_EDGE_PORT);
	netobs_services_free(services);
}

TEST(a_session_shows_that_connections_are_counted)
{
	const struct netobs_session session = {
		.record = { .sz = sizeof(session), .type = NETOBS_RECORD_SESSION },
		.local_addr = { [15] = 1 },
		.remote_addr = { [15] = 9 },
		.remote_port = 80,
		.protocol = 6,
		.opened = NETOBS_SESSION_ACTIVE,
		.ended = NETOBS_SESSION_REFUSED,
	};
	struct netobs_services *services = make_services(0);
	const struct netobs_edge *row;

	add_flow(services, 1, 100);
	netobs_services_rows(services, 0);
	assert_int_equal(netobs_services_row(services, 0)->has, 0);
	assert_int_equal(netobs_services_add(services, "a", &session.record), 0);
	assert_int_equal(netobs_services_rows(services, 0), 3);
	row = netobs_services_row(services, 2);
	assert_int_equal(row->has, NETOBS_EDGE_HAS_SESSIONS);
	assert_int_equal(row->connections, 1);
	assert_int_equal(row->refused, 1);
	netobs_services_free(services);
}

TEST(a_line_that_a_host_writes_twice_counts_once)
{
	static const char *const no_objects[] = { "[", "[1]", "[null]", "5",
						  "\"x\"" };
	static const char line[] =
		"{\"SrcAddr\":\"10.0.0.1\",\"DstAddr\":\"10.0.0.2\",\"SrcPort\":40000,"
		"\"DstPort\":53,\"Proto\":17,\"TimeFlowStartMs\":1000,"
		"\"TimeFlowEndMs\":2000,\"Bytes\":700,\"Packets\":7}";
	struct netobs_services *services = make_services(0);
	struct netobs_services_stats stats = { .sz = sizeof(stats) };
	char text[NETOBS_EDGE_JSON_MAX], error[96] = "";
	int len;

	assert_int_equal(netobs_services_add_json(services, "a", line, NULL, 0),
			 1);
	assert_int_equal(netobs_services_add_json(services, "a", line, NULL, 0),
			 0);
	assert_int_equal(netobs_services_add_json(services, "b", line, NULL, 0),
			 1);
	assert_int_equal(netobs_services_add_json(
				 services, "b", "{\"type\":\"drop\"}", NULL, 0),
			 0);
	assert_int_equal(netobs_services_add_json(services, "b", "{\"Proto\":6}",
						  error, sizeof(error)),
			 -EINVAL);
	assert_string_equal(error, "it is no record of netobs");
	for (size_t i = 0; i < ARRAY_SIZE(no_objects); i++) {
		assert_int_equal(netobs_services_add_json(services, "b",
							  no_objects[i], error,
							  sizeof(error)),
				 -EINVAL);
		assert_string_equal(error, "it is no JSON object");
	}
	assert_int_equal(netobs_services_rows(services, 0), 2);
	assert_int_equal(netobs_services_stats_get(services, &stats), 0);
	assert_int_equal(stats.records, 2);
	assert_int_equal(stats.repeated_records, 1);
	assert_int_equal(stats.other_records, 1);
	assert_int_equal(stats.hosts, 2);
	assert_int_equal(stats.repeated_packets, 7);
	assert_int_equal(stats.start_ms, 1000);
	len = netobs_edge_json(netobs_services_row(services, 0), 5, 6, text,
			       sizeof(text));
	assert_string_equal(
		text, "{\"type\":\"edge\",\"TimeMs\":5,\"DurationMs\":6,"
		      "\"ClientAddr\":\"10.0.0.1\",\"ServerAddr\":\"10.0.0.2\","
		      "\"ServerPort\":53,\"Proto\":17,\"ServerBy\":\"port\","
		      "\"TimeFlowStartMs\":1000,\"TimeFlowEndMs\":2000,"
		      "\"Conversations\":1,\"Packets\":7,\"Bytes\":700,"
		      "\"SentPackets\":7,\"SentBytes\":700,\"Retransmits\":0,"
		      "\"RepeatedPackets\":7,\"Hosts\":2,\"CountedBy\":\"a\"}");
	assert_int_equal(len, strlen(text));
	assert_int_equal(netobs_edge_json(netobs_services_row(services, 0), 5,
					  6, text, 20),
			 -ENOBUFS);
	netobs_services_free(services);
}

TEST(wrong_arguments_are_refused)
{
	NETOBS_OPTS(netobs_services_opts, opts, .max_edges = 1);
	const struct netobs_drop drop = {
		.record = { .sz = sizeof(drop), .type = NETOBS_RECORD_DROP }
	};
	struct netobs_flow flow = make_flow(1, 1);
	struct netobs_services_stats stats = { .sz = 0 };
	struct netobs_services *services = NULL;
	char text[8];

	assert_int_equal(netobs_services_new(&opts, &services), -EINVAL);
	opts.sz = 0;
	assert_int_equal(netobs_services_new(&opts, &services), -EINVAL);
	assert_int_equal(netobs_services_new(NULL, NULL), -EINVAL);
	assert_null(services);
	assert_int_equal(netobs_services_rows(NULL, 0), -EINVAL);
	assert_null(netobs_services_row(NULL, 0));
	assert_int_equal(netobs_edge_json(NULL, 0, 0, text, sizeof(text)),
			 -EINVAL);
	netobs_services_clear(NULL);
	netobs_services_free(NULL);
	services = make_services(0);
	assert_int_equal(netobs_services_add(services, NULL, NULL), -EINVAL);
	assert_int_equal(netobs_services_add(NULL, NULL, &flow.record), -EINVAL);
	flow.record.sz = 1;
	assert_int_equal(netobs_services_add(services, NULL, &flow.record),
			 -EINVAL);
	assert_int_equal(netobs_services_add(services, NULL, &drop.record), 0);
	assert_int_equal(netobs_services_add_json(services, NULL, NULL, NULL, 0),
			 -EINVAL);
	assert_int_equal(netobs_services_stats_get(services, &stats), -EINVAL);
	assert_null(netobs_services_row(services, 0));
	assert_int_equal(netobs_services_rows(services, 0), 1);
	assert_non_null(netobs_services_row(services, 0));
	netobs_services_clear(services);
	assert_null(netobs_services_row(services, 0));
	netobs_services_free(services);
}
