// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Answers of brokers, and the outcome of the records after them. The brokers are the mocks of
 * librdkafka; tests/e2e has real ones, which do not give all these answers on request.
 */
#include "lib_test.h"

#include "sinks/kafka/kafka.h"
#include "base/util.h"

#include <errno.h>
#include <librdkafka/rdkafka_mock.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { RECORDS = 2000, PRODUCE = 0, PATIENCE_S = 60 };

/* A sink's part, with a spool of RECORDS. */
struct fixture {
	struct sink_host host; /* first */
	struct log log;
	char logged[8192];
	struct kafka *kafka;
	int fd, wake_ms;
	uint64_t limit, read, acked, delivered, refused;
	uint64_t large; /* the number of a record with many points */
	struct netobs_flow flow;
};

static struct fixture *of(struct sink_host *host)
{
	return (struct fixture *)host;
}

static void keep_line(int level, const char *message, void *user)
{
	struct fixture *f = user;
	size_t used = strlen(f->logged);

	if (level <= NETOBS_LOG_INFO)
		snprintf(f->logged + used, sizeof(f->logged) - used, "%s\n",
			 message);
}

static void add_points(struct netobs_flow *flow)
{
	static const struct netobs_point points[PACK_POINTS_MAX];

	flow->points = points;
	flow->n_points = PACK_POINTS_MAX;
	flow->point_size = sizeof(*points);
}

static bool next(struct sink_host *host, struct sink_item *ret_item)
{
	struct fixture *f = of(host);

	if (f->read == f->limit)
		return false;
	f->flow = (struct netobs_flow){ .sz = sizeof(f->flow),
					.bytes = ++f->read };
	f->flow.dst[15] = (uint8_t)f->read; /* all partitions */
	if (f->read == f->large)
		add_points(&f->flow);
	*ret_item = (struct sink_item){ .record = &f->flow.record,
					.end = { .seq = f->read } };
	return true;
}

static void pass(struct fixture *f, struct position end, uint64_t *count)
{
	assert_true(end.seq <= f->read);
	assert_true(end.seq > f->acked);
	*count += end.seq - f->acked;
	f->acked = end.seq;
}

static void ack(struct sink_host *host, struct position end)
{
	pass(of(host), end, &of(host)->delivered);
}

static void refuse(struct sink_host *host, struct position end)
{
	pass(of(host), end, &of(host)->refused);
}

static void rewind_host(struct sink_host *host)
{
	of(host)->read = of(host)->acked;
}

static int watch(struct sink_host *host, int fd, uint32_t events)
{
	of(host)->fd = events ? fd : -1;
	return 0;
}

static void wake_in(struct sink_host *host, int ms)
{
	of(host)->wake_ms = ms;
}

static const struct sink_host_ops ops = {
	.next = next,
	.ack = ack,
	.refuse = refuse,
	.rewind = rewind_host,
	.watch = watch,
	.wake_in = wake_in,
};

static void open_kafka(struct fixture *f, const char *text)
{
	struct spec spec;
	void *state = NULL;

	assert_int_equal(spec_parse(&spec, text, &f->log), 0);
	if (sink_module_open(&netobs_sink_module, &spec, &f->host, &state))
		fail_msg("%s", f->logged);
	spec_free(&spec);
	f->kafka = state;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	*f = (struct fixture){
		.host = { .ops = &ops, .log = &f->log, .sampling = 1 },
		.log = { .write = keep_line, .user = f },
		.fd = -1,
		.wake_ms = -1,
	};
	open_kafka(f, "kafka://mock/flows?rdkafka.test.mock.num.brokers=3"
		      "&rdkafka.linger.ms=5");
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	sink_module_close(&netobs_sink_module, f->kafka);
	assert_int_equal(f->fd, -1);
	free(f);
	return 0;
}

static rd_kafka_mock_cluster_t *brokers(const struct fixture *f)
{
	return rd_kafka_handle_mock_cluster(f->kafka->producer.handle);
}

/* Go on until what came is acknowledged, as a sink does. */
static void run(struct fixture *f)
{
	time_t end = time(NULL) + PATIENCE_S;

	while (f->acked < f->limit) {
		struct pollfd fd = { .fd = f->fd, .events = POLLIN };

		assert_int_equal(netobs_sink_module.work(f->kafka, false), 0);
		if (f->acked < f->limit)
			poll(&fd, 1, f->wake_ms < 0 ? 1000 : f->wake_ms);
		if (time(NULL) > end)
			fail_msg("%llu of %llu: %s", (unsigned long long)f->acked,
				 (unsigned long long)f->limit, f->logged);
	}
}

static void assert_all_delivered(const struct fixture *f)
{
	assert_int_equal(f->delivered, f->limit);
	assert_int_equal(f->refused, 0);
}

static int count(const char *text, const char *part)
{
	int n = 0;

	for (; (text = strstr(text, part)); text += strlen(part))
		n++;
	return n;
}

#define CASE(name) TEST_OF(name, struct fixture *f, set_up, tear_down)

CASE(records_arrive)
{
	f->limit = RECORDS;
	run(f);
	assert_all_delivered(f);
	assert_string_equal(f->logged, "");
	assert_int_equal(f->kafka->delivered, RECORDS);
	assert_int_equal(f->kafka->producers, 1);
}

CASE(passing_errors_are_survived)
{
	rd_kafka_mock_push_request_errors(
		brokers(f), PRODUCE, 5,
		RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
		RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
		RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
		RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND,
		RD_KAFKA_RESP_ERR__TRANSPORT);
	f->limit = RECORDS;
	run(f);
	assert_all_delivered(f);
	assert_int_equal(f->kafka->producers, 1);
}

/* Each of them is passing, by Kafka's table of errors, or may be by the host's clock. */
CASE(retriable_errors_drop_nothing)
{
	static const rd_kafka_resp_err_t errors[] = {
		RD_KAFKA_RESP_ERR_INVALID_MSG, /* CORRUPT_MESSAGE */
		RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP,
	};

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		rd_kafka_mock_push_request_errors(brokers(f), PRODUCE, 1,
						  errors[i]);
		f->limit += RECORDS;
		run(f);
		assert_all_delivered(f);
	}
}

/* A broker refuses a batch as a whole: each record of it is sent alone then. */
CASE(refused_batch_drops_nothing_that_is_fine)
{
	f->limit = 100;
	run(f); /* partitions are known */
	rd_kafka_mock_push_request_errors(brokers(f), PRODUCE, 1,
					  RD_KAFKA_RESP_ERR_INVALID_RECORD);
	f->limit = RECORDS;
	run(f);
	assert_all_delivered(f);
	assert_in_range(f->kafka->retried, 1, RECORDS - 100);
	assert_int_equal(f->kafka->producers, 1);
	assert_string_equal(f->logged, "");
}

/* Go on until the records of a refused batch are about to be sent again. */
static rd_kafka_mock_cluster_t *wait_for_single(struct fixture *f)
{
	time_t end = time(NULL) + PATIENCE_S;

	while (!f->kafka->single.handle) {
		struct pollfd fd = { .fd = f->fd, .events = POLLIN };

		netobs_sink_module.work(f->kafka, false);
		if (!f->kafka->single.handle)
			poll(&fd, 1, f->wake_ms < 0 ? 100 : f->wake_ms);
		assert_true(time(NULL) < end);
	}
	return rd_kafka_handle_mock_cluster(f->kafka->single.handle);
}

CASE(record_that_is_invalid_is_the_only_one_dropped)
{
	f->limit = 100;
	run(f);
	rd_kafka_mock_push_request_errors(brokers(f), PRODUCE, 1,
					  RD_KAFKA_RESP_ERR_INVALID_RECORD);
	f->limit = RECORDS;
	rd_kafka_mock_push_request_errors(wait_for_single(f), PRODUCE, 1,
					  RD_KAFKA_RESP_ERR_INVALID_RECORD);
	run(f);
	assert_int_equal(f->refused, 1);
	assert_int_equal(f->delivered, RECORDS - 1);
	assert_int_equal(count(f->logged, "refuses records permanently"), 1);
}

CASE(fatal_error_replaces_the_producer)
{
	f->limit = RECORDS / 2;
	netobs_sink_module.work(f->kafka, false);
	rd_kafka_test_fatal_error(f->kafka->producer.handle,
				  RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER,
				  "made by a test");
	f->limit = RECORDS;
	run(f);
	assert_all_delivered(f);
	assert_int_equal(f->kafka->producers, 2);
	assert_int_equal(count(f->logged, "made by a test"), 1);
	assert_int_equal(count(f->logged, "accepts records again"), 1);
}

/* Whoever has the say over it may change that. */
CASE(topic_that_may_not_be_written_to_is_tried_again)
{
	rd_kafka_mock_push_request_errors(
		brokers(f), PRODUCE, 1,
		RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
	f->limit = RECORDS;
	run(f);
	assert_all_delivered(f);
	/* One more than all of them were seen on a busy machine. */
	assert_in_range(f->kafka->retried, 1, 2 * RECORDS);
	assert_int_equal(count(f->logged, "uthorization"), 1);
	assert_int_equal(count(f->logged, "accepts records again"), 1);
}

/* Go on until @part was logged. */
static void run_until_logged(struct fixture *f, const char *part)
{
	time_t end = time(NULL) + PATIENCE_S;

	while (!strstr(f->logged, part)) {
		struct pollfd fd = { .fd = f->fd, .events = POLLIN };

		assert_int_equal(netobs_sink_module.work(f->kafka, false), 0);
		poll(&fd, 1, 100);
		if (time(NULL) > end)
			fail_msg("no '%s': %s", part, f->logged);
	}
}

CASE(topic_that_is_not_there_is_waited_for)
{
	sink_module_close(&netobs_sink_module, f->kafka);
	open_kafka(f, "kafka://mock/flows?rdkafka.test.mock.num.brokers=1"
		      "&rdkafka.topic.metadata.propagation.max.ms=500"
		      "&rdkafka.topic.metadata.refresh.interval.ms=100");
	rd_kafka_mock_topic_set_error(brokers(f), "flows",
				      RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	/* An earlier test may have requested and created it: forget that. */
	sleep(3);
	f->limit = RECORDS;
	run_until_logged(f, "nknown topic");
	assert_int_equal(f->acked, 0);
	rd_kafka_mock_topic_set_error(brokers(f), "flows",
				      RD_KAFKA_RESP_ERR_NO_ERROR);
	run(f);
	assert_all_delivered(f);
	assert_int_equal(count(f->logged, "nknown topic"), 1);
	assert_int_equal(count(f->logged, "accepts records again"), 1);
}

CASE(batches_that_are_too_large_become_smaller)
{
	static const rd_kafka_resp_err_t errors[] = {
		RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
		RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE,
	};

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		rd_kafka_mock_push_request_errors(brokers(f), PRODUCE, 1,
						  errors[i]);
		f->limit += RECORDS;
		run(f);
		assert_all_delivered(f);
		assert_int_equal(f->kafka->producers, i + 2);
		assert_int_equal(count(f->logged, "refuses batches of that size"),
				 i + 1);
	}
}

/* librdkafka takes those before and after it in the same call. */
CASE(record_that_is_too_large_is_the_only_one_dropped)
{
	sink_module_close(&netobs_sink_module, f->kafka);
	open_kafka(f, "kafka://mock/flows?rdkafka.test.mock.num.brokers=1"
		      "&rdkafka.message.max.bytes=1000"
		      "&rdkafka.linger.ms=5");
	f->large = 20;
	f->limit = RECORDS;
	run(f);
	assert_int_equal(f->refused, 1);
	assert_int_equal(f->delivered, RECORDS - 1);
	assert_int_equal(f->kafka->delivered, RECORDS - 1);
	assert_int_equal(count(f->logged, "refuses records permanently"), 1);
}

CASE(full_queue_holds_the_next_records)
{
	sink_module_close(&netobs_sink_module, f->kafka);
	open_kafka(f, "kafka://mock/flows?rdkafka.test.mock.num.brokers=1"
		      "&rdkafka.queue.buffering.max.messages=10"
		      "&rdkafka.linger.ms=1");
	f->limit = RECORDS;
	run(f);
	assert_all_delivered(f);
	assert_in_range(f->kafka->full, 1, UINT64_MAX);
}

CASE(brokers_may_go_and_come)
{
	f->limit = 100;
	run(f);
	for (int id = 1; id <= 3; id++)
		rd_kafka_mock_broker_set_down(brokers(f), id);
	f->limit = RECORDS;
	run_until_logged(f, "trying again");
	for (int id = 1; id <= 3; id++)
		rd_kafka_mock_broker_set_up(brokers(f), id);
	run(f);
	assert_all_delivered(f);
	assert_int_equal(count(f->logged, "trying again"), 1);
	assert_int_equal(count(f->logged, "accepts records again"), 1);
}
