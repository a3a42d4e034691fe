/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What series count: sums are exact at each moment, no counter and no class of a histogram steps back while it
 * exists, each connection counts once, and memory is bounded. NETOBS_TEST_SEED repeats a run.
 */
#include "lib_seed.h"
#include "lib_series.h"
#include "lib_test.h"

#include <malloc.h>

enum {
	SERVICES = 10000,
	CLIENTS = 100,
	INTERVALS = 60,
	FLOWS = 20000, /* of an interval */
	HEAVY = 50,    /* services whose clients are heavier */
	MEMORY_MAX = 20 << 20,
	SESSION_EACH = 8, /* flows */
	WAITING = 50,	  /* second ends of connections */
};

/* ---- Many groups ---------------------------------------------------------------------- */

/* Times from less than a microsecond to some minutes. */
static uint64_t draw_time(void)
{
	return test_below(1 << 20) >> test_below(20) << test_below(18);
}

static void draw_health(struct netobs_flow *flow)
{
	if (test_below(4))
		flow->has |= NETOBS_HAS_TCP_HEALTH | NETOBS_HAS_RTT;
	if (flow->has & NETOBS_HAS_RTT && test_below(2))
		flow->has |= NETOBS_HAS_APP_LATENCY;
	flow->rtt_ns = draw_time();
	flow->rtt_samples = test_below(3);
	flow->app_latency_ns = draw_time();
	flow->app_responses = test_below(3);
	flow->retransmits = test_below(3);
	if (test_below(8))
		return;
	flow->has |= NETOBS_HAS_DROPS;
	flow->drop_packets = 1 + test_below(3);
	flow->drop_bytes = flow->drop_packets * 100;
}

/* Which services are heavy, changes; heavy ones are a tenth of the flows. */
static struct netobs_flow draw_flow(uint32_t first_heavy)
{
	const bool is_heavy = !test_below(10);
	const uint32_t service =
		is_heavy ? (first_heavy + test_below(HEAVY)) % SERVICES :
			   test_below(SERVICES);
	const uint32_t client = test_below(is_heavy ? 2 : CLIENTS);
	const uint64_t packets = 1 + test_below(is_heavy ? 1000 : 20);
	struct netobs_flow flow = series_flow(service, client, packets,
					      packets * (40 + test_below(1400)));

	draw_health(&flow);
	return flow;
}

/* Its class by its definition: the first bound that it does not exceed. */
static void expect_time(struct netobs_times *times, uint64_t ns)
{
	size_t class = 0;

	while (class < NETOBS_TIME_CLASSES - 1 && ns > UINT64_C(16000) << class)
		class ++;
	times->classes[class]++;
	times->n++;
	times->sum_ns += ns;
}

static struct sum sum_of_flow(const struct netobs_flow *flow)
{
	struct sum sum = { .flows = 1,
			   .packets = flow->packets,
			   .bytes = flow->bytes,
			   .retransmits = flow->retransmits };

	if (flow->has & NETOBS_HAS_DROPS) {
		sum.drop_packets = flow->drop_packets;
		sum.drop_bytes = flow->drop_bytes;
	}
	if (flow->has & NETOBS_HAS_RTT && flow->rtt_samples)
		expect_time(&sum.rtt, flow->rtt_ns);
	if (flow->has & NETOBS_HAS_APP_LATENCY && flow->app_responses)
		expect_time(&sum.app_latency, flow->app_latency_ns);
	return sum;
}

/* ---- Connections ------------------------------------------------------------------------ */

/* Ends of connections that are reported later than the other end. */
struct waiting {
	struct netobs_session ends[WAITING];
	size_t n;
	uint32_t connections; /* so far */
};

/* That end of a connection of client @client to port 443 of service @service. */
static struct netobs_session make_session(uint32_t service, uint32_t client,
					  uint16_t port,
					  enum netobs_session_opened opened,
					  enum netobs_session_ended ended)
{
	const struct netobs_flow flow = series_flow(service, client, 0, 0);
	const bool is_client = opened != NETOBS_SESSION_PASSIVE;
	struct netobs_session session = {
		.record = { .sz = sizeof(session), .type = NETOBS_RECORD_SESSION },
		.local_port = is_client ? port : 443,
		.remote_port = is_client ? 443 : port,
		.protocol = 6,
		.opened = (uint8_t)opened,
		.ended = (uint8_t)ended,
		.end_ns = 5000000,
		.segments_received = 1,
		.data_segments_received = 1,
	};

	memcpy(session.local_addr, is_client ? flow.src : flow.dst, 16);
	memcpy(session.remote_addr, is_client ? flow.dst : flow.src, 16);
	return session;
}

static void add_session(struct netobs_series *series,
			const struct netobs_session *session)
{
	assert_int_equal(netobs_series_add(series, &session->record), 0);
}

/* The second end waits, and takes the place of another one if too many do. */
static void let_wait(struct netobs_series *series, struct waiting *waiting,
		     const struct netobs_session *session)
{
	const size_t at = test_below(WAITING);

	if (waiting->n < WAITING) {
		waiting->ends[waiting->n++] = *session;
		return;
	}
	add_session(series, &waiting->ends[at]);
	waiting->ends[at] = *session;
}

/* Of which one end is reported, or both, in any order. @return what it adds */
static struct sum draw_connection(struct netobs_series *series,
				  uint32_t service, struct waiting *waiting)
{
	const bool is_first_client = test_below(2);
	const enum { NOT, SENT, RECEIVED } was_used = test_below(3);
	const enum netobs_session_ended ended =
		1 + test_below(NETOBS_SESSION_ENDINGS - 1);
	const bool is_refused = ended == NETOBS_SESSION_REFUSED;
	const uint32_t client = test_below(CLIENTS);
	/* The services change before a port repeats, so no two connections have one tuple. */
	const uint16_t port = 10000 + waiting->connections++ % 50000;
	struct netobs_session ends[2];

	for (int i = 0; i < 2; i++) {
		ends[i] = make_session(service, client, port,
				       (i == 0) == is_first_client || is_refused ?
					       NETOBS_SESSION_ACTIVE :
					       NETOBS_SESSION_PASSIVE,
				       ended);
		ends[i].data_segments_received = was_used == RECEIVED;
		ends[i].data_segments_sent = was_used == SENT;
	}
	add_session(series, &ends[0]);
	if (!is_refused && test_below(3))
		let_wait(series, waiting, &ends[1]);
	return (struct sum){ .connections = 1,
			     .connections_failed =
				     ended != NETOBS_SESSION_FIN &&
				     ((ended != NETOBS_SESSION_RESET &&
				       ended != NETOBS_SESSION_ABORTED) ||
				      !was_used) };
}

struct records {
	struct sum sum;
	size_t n;
};

static void take_record(const struct netobs_record *passed, void *user)
{
	const struct netobs_group_record *record = (const void *)passed;
	struct records *records = user;

	assert_int_equal(record->record.type, NETOBS_RECORD_GROUP);
	assert_true(record->flows > 0 || record->connections > 0);
	add_sum(&records->sum,
		&(struct sum){ .flows = record->flows,
			       .packets = record->packets,
			       .bytes = record->bytes,
			       .retransmits = record->retransmits,
			       .drop_packets = record->drop_packets,
			       .drop_bytes = record->drop_bytes,
			       .connections = record->connections,
			       .connections_failed = record->connections_failed,
			       .rtt = record->rtt_times,
			       .app_latency = record->app_latency_times });
	assert_int_equal(!!(record->record.has & NETOBS_GROUP_HAS_RTT_TIMES),
			 record->rtt_times.n > 0);
	records->n++;
}

static void add_flows(struct netobs_series *series, uint32_t first_heavy,
		      struct waiting *waiting, struct sum *sum)
{
	for (int i = 0; i < FLOWS / 2; i++) {
		struct netobs_flow flow = draw_flow(first_heavy);
		struct sum more = sum_of_flow(&flow);

		assert_int_equal(netobs_series_add(series, &flow.record), 0);
		add_sum(sum, &more);
		if (test_below(SESSION_EACH))
			continue;
		more = draw_connection(
			series, (first_heavy + test_below(HEAVY)) % SERVICES,
			waiting);
		add_sum(sum, &more);
	}
}

static size_t allocated_bytes(void)
{
	extern size_t __sanitizer_get_current_allocated_bytes(void)
		__attribute__((weak));
	const struct mallinfo2 info = mallinfo2();

	return __sanitizer_get_current_allocated_bytes ?
		       __sanitizer_get_current_allocated_bytes() :
		       info.uordblks + info.hblkhd;
}

/* With 1,000,000 groups, of which 500 have a series with both histograms, asked twice in each interval. */
TEST(no_byte_is_lost_and_no_counter_steps_back)
{
	static struct scrape scrapes[2];
	static struct waiting waiting;
	const size_t before = allocated_bytes();
	struct netobs_series *series =
		make_timed_series("service,client", SERIES,
				  NETOBS_SERIES_RTT | NETOBS_SERIES_APP_LATENCY);
	struct sum total = { 0 };
	size_t left = 0, most = 0;

	take_scrape(series, &scrapes[0]);
	for (int i = 0; i < INTERVALS; i++) {
		struct records records = { 0 };
		struct sum interval = { 0 };
		int n;

		for (int half = 0; half < 2; half++) {
			struct scrape *now = &scrapes[!half];
			struct sum added = { 0 };

			add_flows(series, (uint32_t)i * 7, &waiting, &added);
			add_sum(&interval, &added);
			add_sum(&total, &added);
			take_scrape(series, now);
			assert_memory_equal(&now->total, &total, sizeof(total));
			left += check_steps(&scrapes[half], now);
		}
		most = max_u64(most, allocated_bytes() - before);
		n = netobs_series_end_interval(series, i, take_record, &records);
		assert_int_equal(n, records.n);
		assert_memory_equal(&records.sum, &interval, sizeof(interval));
	}
	assert_true(left > SERIES / 10);
	assert_true(total.connections_failed > 0 && total.drop_bytes > 0);
	assert_true(total.rtt.classes[0] > 0 && total.app_latency.n > 0);
	assert_true(most <= MEMORY_MAX);
	netobs_series_free(series);
	assert_true(allocated_bytes() <= before + (64 << 10));
}

/* ---- Connections, one by one ------------------------------------------------------------ */

enum { PORT = 40000 }; /* of clients */

static const struct seen *scraped(const struct netobs_series *series,
				  const char *text)
{
	static struct scrape scrape;
	const struct seen *seen;

	take_scrape(series, &scrape);
	seen = find_row(&scrape, text);
	if (!seen)
		fail_msg("there is no '%s'", text);
	return seen;
}

static void check_connections(const struct netobs_series *series,
			      const char *text, uint64_t all, uint64_t failed)
{
	const struct seen *seen = scraped(series, text);

	assert_int_equal(seen->sum.connections, all);
	assert_int_equal(seen->sum.connections_failed, failed);
	assert_int_equal(seen->sum.flows, 0);
}

TEST(each_connection_counts_once)
{
	static const enum netobs_session_opened orders[][2] = {
		{ NETOBS_SESSION_ACTIVE, NETOBS_SESSION_PASSIVE },
		{ NETOBS_SESSION_PASSIVE, NETOBS_SESSION_ACTIVE },
	};

	/* One after the other, and two at once, with the same ports. */
	static const size_t sequence[] = { 0, 1, 0, 0, 1, 1 };

	for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
		struct netobs_series *series = make_series("service", 3);

		for (size_t k = 0; k < ARRAY_SIZE(sequence); k++) {
			const struct netobs_session session =
				make_session(1, 1, PORT, orders[i][sequence[k]],
					     NETOBS_SESSION_FIN);

			add_session(series, &session);
		}
		check_connections(series, "0 10.2.0.1:443/TCP ", 3, 0);
		netobs_series_free(series);
	}
}

/* Which end is the server is guessed as of flows: it has the lower port. */
SERIES_TEST(old_connections_have_a_server, "client,service", 3)
{
	struct netobs_session session = make_session(
		1, 1, PORT, NETOBS_SESSION_OPENED_UNKNOWN, NETOBS_SESSION_FIN);
	struct netobs_session other = make_session(
		1, 1, PORT, NETOBS_SESSION_PASSIVE, NETOBS_SESSION_FIN);

	other.opened = NETOBS_SESSION_OPENED_UNKNOWN;
	add_session(series, &other);
	add_session(series, &session);
	check_connections(series, "0 10.1.0.1 10.2.0.1:443/TCP", 1, 0);
}

SERIES_TEST(open_connections_do_not_count, "service", 3)
{
	const struct netobs_session session = make_session(
		1, 1, PORT, NETOBS_SESSION_ACTIVE, NETOBS_SESSION_OPEN);
	static struct scrape scrape;

	add_session(series, &session);
	take_scrape(series, &scrape);
	assert_int_equal(scrape.n, 2);
	assert_int_equal(scrape.total.connections, 0);
}

/* NAT gives the ends other addresses: the conversation is the same. */
SERIES_TEST(a_connection_through_nat_counts_once, "service", 3)
{
	struct netobs_session client = make_session(
		1, 1, PORT, NETOBS_SESSION_ACTIVE, NETOBS_SESSION_FIN);
	struct netobs_session server = make_session(
		2, 7, PORT, NETOBS_SESSION_PASSIVE, NETOBS_SESSION_FIN);
	static struct scrape scrape;

	client.conversation_id = server.conversation_id = 5;
	add_session(series, &client);
	add_session(series, &server);
	check_connections(series, "0 10.2.0.1:443/TCP ", 1, 0);
	take_scrape(series, &scrape);
	assert_int_equal(scrape.total.connections, 1);
}

TEST(keys_of_ends_count_each_session)
{
	struct netobs_session client = make_session(
		1, 1, PORT, NETOBS_SESSION_ACTIVE, NETOBS_SESSION_FIN);
	const struct netobs_session server = make_session(
		1, 1, PORT, NETOBS_SESSION_PASSIVE, NETOBS_SESSION_FIN);
	struct netobs_series *hosts = make_series("host", 3);
	struct netobs_series *processes = make_series("process", 3);

	client.record.has |= NETOBS_SESSION_HAS_PROCESS;
	client.pid = 7;
	memcpy(client.process, "curl", 5);
	for (int i = 0; i < 2; i++) {
		struct netobs_series *series = i ? processes : hosts;

		add_session(series, &client);
		add_session(series, &server);
		add_session(series, &server);
	}
	check_connections(hosts, "0 10.1.0.1 ", 1, 0);
	check_connections(hosts, "0 10.2.0.1 ", 2, 0);
	check_connections(processes, "0 curl[7] ", 1, 0);
	check_connections(processes, "0 - ", 2, 0);
	netobs_series_free(hosts);
	netobs_series_free(processes);
}

static void keep_record(const struct netobs_record *passed, void *user)
{
	const struct netobs_group_record *record = (const void *)passed;
	*(struct netobs_group_record *)user = *record;
}

/* Sampling is of packets: flows are of another value, which the same series has. */
SERIES_TEST(connections_are_in_the_series_of_sampled_flows, "service", 3)
{
	struct netobs_flow flow = series_flow(1, 1, 2, 100);
	const struct netobs_session session = make_session(
		1, 1, PORT, NETOBS_SESSION_ACTIVE, NETOBS_SESSION_REFUSED);
	const struct seen *seen;

	flow.has |= NETOBS_HAS_SAMPLING;
	flow.sampling = 10;
	assert_int_equal(netobs_series_add(series, &flow.record), 0);
	add_session(series, &session);
	seen = scraped(series, "0 10.2.0.1:443/TCP ");
	assert_int_equal(seen->sum.flows, 1);
	assert_int_equal(seen->sum.connections_failed, 1);
}

/* As flows do, of which there may be none before. */
SERIES_TEST(connections_name_containers, "container", 3)
{
	struct netobs_session session = make_session(
		1, 1, PORT, NETOBS_SESSION_ACTIVE, NETOBS_SESSION_FIN);
	struct netobs_group_record record;

	session.record.has |= NETOBS_SESSION_HAS_PROCESS;
	memset(session.container_id, 'a', 64);
	strcpy(session.container_name, "web");
	add_session(series, &session);
	assert_int_equal(
		scraped(series, "0 web (aaaaaaaaaaaa) ")->sum.connections, 1);
	assert_int_equal(netobs_series_end_interval(series, 9 * NSEC_PER_MSEC,
						    keep_record, &record),
			 1);
	assert_string_equal(record.container_name, "web");
}

SERIES_TEST(a_record_of_connections_alone_has_their_time, "service", 3)
{
	struct netobs_group_record record;
	char json[2048];

	for (int i = 0; i < 2; i++) {
		struct netobs_session session = make_session(
			1, 1, (uint16_t)(PORT + i), NETOBS_SESSION_ACTIVE,
			i ? NETOBS_SESSION_REFUSED : NETOBS_SESSION_FIN);

		session.end_ns = (7 - i) * NSEC_PER_MSEC;
		add_session(series, &session);
	}
	assert_int_equal(netobs_series_end_interval(series, 9 * NSEC_PER_MSEC,
						    keep_record, &record),
			 1);
	assert_true(netobs_record_json(&record.record, json, sizeof(json)) > 0);
	assert_string_equal(
		json,
		"{\"type\":\"group\",\"TimeMs\":9,\"Group\":\"test\","
		"\"Series\":\"group\",\"TimeFlowStartMs\":6,"
		"\"TimeFlowEndMs\":7,\"Flows\":0,\"Packets\":0,\"Bytes\":0,"
		"\"Connections\":2,\"ConnectionsFailed\":1,"
		"\"ServerAddr\":\"10.2.0.1\",\"ServerPort\":443,\"Proto\":6}");
	assert_int_equal(netobs_series_end_interval(series, 0, NULL, NULL), 0);
}

/* ---- Histograms --------------------------------------------------------------------------- */

TEST(histograms_are_those_asked_for)
{
	for (uint32_t asked = 0; asked < 4; asked++) {
		struct netobs_series *series =
			make_timed_series("service", 1, asked);
		struct netobs_flow flow = series_flow(1, 1, 2, 100);
		struct netobs_group_record record;
		const struct seen *seen;

		flow.has |= NETOBS_HAS_TCP_HEALTH | NETOBS_HAS_RTT |
			    NETOBS_HAS_APP_LATENCY;
		flow.rtt_ns = 16001;
		flow.app_latency_ns = 100;
		flow.rtt_samples = 7;
		flow.app_responses = 1;
		assert_int_equal(netobs_series_add(series, &flow.record), 0);
		flow.rtt_samples = flow.app_responses = 0; /* not new */
		assert_int_equal(netobs_series_add(series, &flow.record), 0);
		seen = scraped(series, "0 10.2.0.1:443/TCP ");
		assert_int_equal(seen->sum.rtt.n, !!(asked & NETOBS_SERIES_RTT));
		assert_int_equal(seen->sum.rtt.classes[1], seen->sum.rtt.n);
		assert_int_equal(seen->sum.app_latency.n,
				 !!(asked & NETOBS_SERIES_APP_LATENCY));
		assert_int_equal(seen->sum.app_latency.sum_ns,
				 100 * seen->sum.app_latency.n);
		netobs_series_end_interval(series, 0, keep_record, &record);
		assert_memory_equal(&record.rtt_times, &seen->sum.rtt,
				    sizeof(record.rtt_times));
		assert_memory_equal(&record.app_latency_times,
				    &seen->sum.app_latency,
				    sizeof(record.app_latency_times));
		netobs_series_free(series);
	}
}
