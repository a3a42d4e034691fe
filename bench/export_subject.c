// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "export_subject.h"

#include "bench.h"
#include "runner.h"
#include "base/util.h"
#include "service/signals.h"

#include <netobs/sink.h>

#ifdef NETOBS_BENCH_PROTOBUF
#include "sinks/pbflow/pbflow.h"
#endif

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum {
	STEP = 1024,		/* records between two looks at the clock */
	BUDGET_MS = 10000,	/* of a round: no more records after that */
	WAIT_MS = 10000,	/* for the other side to take the first one */
	REST_MS = 30000,	/* for it to take the last one */
	BEHIND_MAX = 8 << 20,	/* bytes that may wait for it */
	ENCODED_MAX = 16 << 10, /* of a record with two points */
};

static size_t encode_json(const struct netobs_flow *flow, char *buf)
{
	return (size_t)netobs_flow_json(flow, buf, NETOBS_FLOW_JSON_MAX);
}

#ifdef NETOBS_BENCH_PROTOBUF
static size_t encode_protobuf(const struct netobs_flow *flow, char *buf)
{
	static const struct pbflow_options options; /* the agent is unknown */

	return pbflow_record(flow, &options, (uint8_t *)buf);
}
#endif

/* The mock cluster is librdkafka's own, and answers as brokers do. */
const struct export_subject export_subjects[] = {
	{ .name = "null", .spec = "null" },
	{ .name = "json", .spec = "json:/dev/null" },
	{ .name = "json-encoding", .encode = encode_json },
#ifdef NETOBS_BENCH_PROTOBUF
	{ .name = "protobuf-encoding", .encode = encode_protobuf },
#endif
	{ .name = "ipfix", .spec = "ipfix:file:/dev/null", .is_optional = true },
	{ .name = "kafka",
	  .spec = "kafka://127.0.0.1:9092/netobs?rdkafka.test.mock.num.brokers=1",
	  .is_optional = true },
};
const size_t n_export_subjects = ARRAY_SIZE(export_subjects);

/* ---- Records as a busy host has them, made in advance ------------------------- */

static const struct netobs_point points[] = {
	{ .ifindex = 2,
	  .netns_inode = 4026531840,
	  .direction = NETOBS_INGRESS,
	  .name = "eth0" },
	{ .ifindex = 17,
	  .netns_inode = 4026532301,
	  .direction = NETOBS_EGRESS,
	  .name = "veth1a2b3c4" },
};

static void make_address(uint8_t address[16], bool is_ipv6, uint64_t *random)
{
	uint64_t bits[2] = { packets_random(random), packets_random(random) };
	static const uint8_t ipv4[12] = { [10] = 0xff, 0xff },
			     ipv6[4] = { 0x20, 0x01, 0x0d, 0xb8 };

	memcpy(address, bits, sizeof(bits));
	if (is_ipv6)
		memcpy(address, ipv6, sizeof(ipv6));
	else
		memcpy(address, ipv4, sizeof(ipv4));
}

static void make_flow(struct netobs_flow *flow, uint32_t i, uint64_t *random)
{
	const int64_t start = 1793000000 * NSEC_PER_SEC;
	bool is_ipv6 = i % 2, is_udp = i % 8 == 7;

	*flow = (struct netobs_flow){
		.sz = sizeof(*flow),
		.has = NETOBS_HAS_PORTS | NETOBS_HAS_MAC,
		.start_ns = start +
			    (int64_t)(packets_random(random) % NSEC_PER_SEC),
		.packets = 1 + packets_random(random) % 1000,
		.src_port = (uint16_t)packets_random(random),
		.dst_port = 443,
		.ethertype = is_ipv6 ? 0x86dd : 0x0800,
		.proto = is_udp ? IPPROTO_UDP : IPPROTO_TCP,
		.ttl_min = 64,
		.ttl_max = 64,
		.end_reason = NETOBS_END_IDLE,
		.src_mac = { 2, 0, 0, 0, 0, (uint8_t)i },
		.dst_mac = { 2, 0, 0, 0, 1, (uint8_t)i },
		.n_points = 1 + i / 2 % 2,
		.point_size = sizeof(struct netobs_point),
		.points = points,
	};
	if (!is_udp) {
		flow->has |= NETOBS_HAS_TCP;
		flow->tcp_flags = 0x1b;
	}
	flow->end_ns = flow->start_ns + 5 * NSEC_PER_SEC;
	flow->bytes = flow->packets * 700;
	flow->l2_bytes = flow->packets * 714;
	make_address(flow->src, is_ipv6, random);
	make_address(flow->dst, is_ipv6, random);
}

struct netobs_flow *export_flows_make(uint32_t n)
{
	struct netobs_flow *flows = calloc(n, sizeof(*flows));
	uint64_t random = 1;

	for (uint32_t i = 0; flows && i < n; i++)
		make_flow(&flows[i], i, &random);
	return flows;
}

/* ---- Time ---------------------------------------------------------------------- */

struct stopwatch {
	int64_t wall_ns, cpu_ns;
};

static struct stopwatch start_stopwatch(void)
{
	return (struct stopwatch){ clock_ns(CLOCK_MONOTONIC),
				   clock_ns(CLOCK_PROCESS_CPUTIME_ID) };
}

static bool is_time_over(const struct stopwatch *start)
{
	return clock_ns(CLOCK_MONOTONIC) - start->wall_ns >
	       BUDGET_MS * NSEC_PER_MSEC;
}

static struct export_sample stop_stopwatch(const struct stopwatch *start,
					   uint64_t records)
{
	struct stopwatch end = start_stopwatch();

	return (struct export_sample){
		.wall_ns = (double)(end.wall_ns - start->wall_ns) / records,
		.cpu_ns = (double)(end.cpu_ns - start->cpu_ns) / records,
	};
}

/* ---- Only encoding -------------------------------------------------------------- */

static int measure_encoding(const struct export_subject *subject,
			    const struct export_load *load,
			    struct export_sample *ret_sample)
{
	static char buf[ENCODED_MAX];
	struct stopwatch start = start_stopwatch();
	uint32_t n = 0;

	do {
		subject->encode(&load->flows[n % EXPORT_FLOWS], buf);
		n++;
	} while (n < load->records && (n % STEP || !is_time_over(&start)));
	*ret_sample = stop_stopwatch(&start, n);
	return signals_are_stopping() ? -EINTR : 0;
}

/* ---- Through a sink --------------------------------------------------------------- */

static void keep_words(int level, const char *message, void *why)
{
	(void)level;
	snprintf(why, EXPORT_WHY_MAX, "%s", message);
}

static bool is_behind(const struct netobs_sink *sink)
{
	struct netobs_sink_stats stats = { .sz = sizeof(stats) };

	netobs_sink_stats_get(sink, &stats);
	return stats.spool_bytes > BEHIND_MAX;
}

/* Until the other side has caught up. */
static int wait_for_room(struct netobs_sink *sink)
{
	while (is_behind(sink)) {
		struct pollfd fd = { .fd = netobs_sink_fd(sink),
				     .events = POLLIN };
		int err;

		if (signals_are_stopping())
			return -EINTR;
		if (!poll(&fd, 1, WAIT_MS))
			return -ETIMEDOUT;
		err = netobs_sink_dispatch(sink);
		if (err)
			return err;
	}
	return 0;
}

/* @return 0 or -errno; *@ret_records: as many as there was time for */
static int write_records(struct netobs_sink *sink, const struct export_load *load,
			 const struct stopwatch *start, uint32_t *ret_records)
{
	uint32_t n = 0;
	int err = 0;

	while (n < load->records && !err) {
		netobs_sink_write(sink, &load->flows[n % EXPORT_FLOWS].record);
		if (++n % STEP)
			continue;
		err = signals_are_stopping() ? -EINTR : wait_for_room(sink);
		if (is_time_over(start))
			break;
	}
	*ret_records = n;
	return err;
}

/* The first record opens connections: it does not count. */
static int measure_sink(struct netobs_sink *sink, const struct export_load *load,
			struct export_sample *ret_sample)
{
	struct stopwatch start;
	uint32_t records;
	int err;

	netobs_sink_write(sink, &load->flows->record);
	err = netobs_sink_wait(sink, WAIT_MS);
	if (err)
		return err;
	start = start_stopwatch();
	err = write_records(sink, load, &start, &records);
	err = err ?: sink_finish(sink, REST_MS);
	*ret_sample = stop_stopwatch(&start, records);
	return err;
}

int export_measure(const struct export_subject *subject,
		   const struct export_load *load,
		   struct export_sample *ret_sample, char why[EXPORT_WHY_MAX])
{
	const NETOBS_OPTS(netobs_sink_opts, opts, .on_log = keep_words,
			  .user = why);
	struct netobs_sink *sink;
	int err;

	if (!subject->spec)
		return measure_encoding(subject, load, ret_sample);
	*why = '\0';
	err = netobs_sink_open(subject->spec, &opts, &sink);
	if (!err) {
		err = measure_sink(sink, load, ret_sample);
		netobs_sink_close(sink);
	}
	if (err && !*why)
		snprintf(why, EXPORT_WHY_MAX, "%s", strerror(-err));
	return err;
}
