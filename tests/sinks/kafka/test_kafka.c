// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Answers of brokers, and the outcome of the records after them. The brokers are the mocks of
 * librdkafka; tests/e2e has real ones, which do not give all these answers on request.
 */
#include "lib_sink_host.h"
#include "lib_wait.h"

#include "sinks/kafka/kafka.h"

#include <librdkafka/rdkafka_mock.h>

enum { RECORDS = 2000, PRODUCE = 0 };

struct fixture {
	struct test_host host;
	struct kafka *kafka;
};

static uint64_t large; /* the end of a record with many points */

static void make_flow(uint64_t n, struct netobs_flow *ret_flow)
{
	static const struct netobs_point points[PACK_POINTS_MAX];

	*ret_flow = (struct netobs_flow){
		.sz = sizeof(*ret_flow),
		.bytes = n + 1,
		.dst[15] = (uint8_t)(n + 1), /* all partitions */
		.points = points,
		.n_points = n + 1 == large ? PACK_POINTS_MAX : 0,
		.point_size = sizeof(*points),
	};
}

static void open_kafka(struct fixture *f, const char *text)
{
	f->kafka = test_host_module(&f->host, &netobs_sink_module, text);
}

static void begin(struct fixture *f)
{
	test_host_open(&f->host);
	f->host.make = make_flow;
	large = 0;
	open_kafka(f, "kafka://mock/flows?rdkafka.test.mock.num.brokers=3"
		      "&rdkafka.linger.ms=5");
}

static void end(struct fixture *f)
{
	sink_module_close(&netobs_sink_module, f->kafka);
	test_host_close(&f->host);
}

TEST_FIXTURE(struct fixture, begin, end)

static void reopen(struct fixture *f, const char *text)
{
	sink_module_close(&netobs_sink_module, f->kafka);
	open_kafka(f, text);
}

static rd_kafka_mock_cluster_t *brokers(const struct fixture *f)
{
	return rd_kafka_handle_mock_cluster(f->kafka->producer.handle);
}

static void work(struct fixture *f)
{
	assert_int_equal(netobs_sink_module.work(f->kafka, false), 0);
}

static void wait_and_work(struct fixture *f)
{
	test_host_wait(&f->host, 100);
	work(f);
}

/* Go on until what came is acknowledged, as a sink does. */
static void run(struct fixture *f)
{
	work(f);
	await_by(f->host.acked >= f->host.n_records, wait_and_work(f));
}

static void assert_refused(const struct fixture *f, uint64_t n)
{
	assert_int_equal(f->host.acked, f->host.n_records);
	assert_int_equal(f->host.refused, n);
}

/* Nothing is dropped where a broker answers with an error that passes. */
static void fail_once(struct fixture *f, rd_kafka_resp_err_t error)
{
	rd_kafka_mock_push_request_errors(brokers(f), PRODUCE, 1, error);
	f->host.n_records += RECORDS;
	run(f);
	assert_refused(f, 0);
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
	f->host.n_records = RECORDS;
	run(f);
	assert_refused(f, 0);
	assert_string_equal(f->host.logged, "");
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
	f->host.n_records = RECORDS;
	run(f);
	assert_refused(f, 0);
	assert_int_equal(f->kafka->producers, 1);
}

/* Each of them is passing, by Kafka's table of errors, or may be by the host's clock. */
CASE(retriable_errors_drop_nothing)
{
	fail_once(f, RD_KAFKA_RESP_ERR_INVALID_MSG); /* CORRUPT_MESSAGE */
	fail_once(f, RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP);
}

/* A broker refuses a batch as a whole: each record of it is sent alone then. */
CASE(refused_batch_drops_nothing_that_is_fine)
{
	f->host.n_records = 100;
	run(f); /* partitions are known */
	rd_kafka_mock_push_request_errors(brokers(f), PRODUCE, 1,
					  RD_KAFKA_RESP_ERR_INVALID_RECORD);
	f->host.n_records = RECORDS;
	run(f);
	assert_refused(f, 0);
	assert_in_range(f->kafka->retried, 1, RECORDS - 100);
	assert_int_equal(f->kafka->producers, 1);
	assert_string_equal(f->host.logged, "");
}

/* Go on until the records of a refused batch are about to be sent again. */
static rd_kafka_mock_cluster_t *wait_for_single(struct fixture *f)
{
	work(f);
	await_by(f->kafka->single.handle, wait_and_work(f));
	return rd_kafka_handle_mock_cluster(f->kafka->single.handle);
}

CASE(record_that_is_invalid_is_the_only_one_dropped)
{
	f->host.n_records = 100;
	run(f);
	rd_kafka_mock_push_request_errors(brokers(f), PRODUCE, 1,
					  RD_KAFKA_RESP_ERR_INVALID_RECORD);
	f->host.n_records = RECORDS;
	rd_kafka_mock_push_request_errors(wait_for_single(f), PRODUCE, 1,
					  RD_KAFKA_RESP_ERR_INVALID_RECORD);
	run(f);
	assert_refused(f, 1);
	assert_int_equal(count(f->host.logged, "refuses records permanently"), 1);
}

CASE(fatal_error_replaces_the_producer)
{
	f->host.n_records = RECORDS / 2;
	work(f);
	rd_kafka_test_fatal_error(f->kafka->producer.handle,
				  RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER,
				  "made by a test");
	f->host.n_records = RECORDS;
	run(f);
	assert_refused(f, 0);
	assert_int_equal(f->kafka->producers, 2);
	assert_int_equal(count(f->host.logged, "made by a test"), 1);
	assert_int_equal(count(f->host.logged, "accepts records again"), 1);
}

/* Whoever has the say over it may change that. */
CASE(topic_that_may_not_be_written_to_is_tried_again)
{
	rd_kafka_mock_push_request_errors(
		brokers(f), PRODUCE, 1,
		RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
	f->host.n_records = RECORDS;
	run(f);
	assert_refused(f, 0);
	/* One more than all of them were seen on a busy machine. */
	assert_in_range(f->kafka->retried, 1, 2 * RECORDS);
	assert_int_equal(count(f->host.logged, "uthorization"), 1);
	assert_int_equal(count(f->host.logged, "accepts records again"), 1);
}

/* Go on until @part was logged. */
static void run_until_logged(struct fixture *f, const char *part)
{
	await_by(strstr(f->host.logged, part), wait_and_work(f));
}

CASE(topic_that_is_not_there_is_waited_for)
{
	reopen(f, "kafka://mock/flows?rdkafka.test.mock.num.brokers=1"
		  "&rdkafka.topic.metadata.propagation.max.ms=500"
		  "&rdkafka.topic.metadata.refresh.interval.ms=100");
	rd_kafka_mock_topic_set_error(brokers(f), "flows",
				      RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	/* An earlier test may have requested and created it: forget that. */
	sleep(3);
	f->host.n_records = RECORDS;
	run_until_logged(f, "nknown topic");
	assert_int_equal(f->host.acked, 0);
	rd_kafka_mock_topic_set_error(brokers(f), "flows",
				      RD_KAFKA_RESP_ERR_NO_ERROR);
	run(f);
	assert_refused(f, 0);
	assert_int_equal(count(f->host.logged, "nknown topic"), 1);
	assert_int_equal(count(f->host.logged, "accepts records again"), 1);
}

CASE(records_of_batches_that_are_too_large_are_sent_alone)
{
	fail_once(f, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
	assert_int_equal(count(f->host.logged, "sent one by one"), 1);
	fail_once(f, RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE);
	assert_int_equal(count(f->host.logged, "sent one by one"), 1);
}

/* librdkafka takes those before and after it in the same call. */
CASE(record_that_is_too_large_is_the_only_one_dropped)
{
	reopen(f, "kafka://mock/flows?rdkafka.test.mock.num.brokers=1"
		  "&rdkafka.message.max.bytes=1000"
		  "&rdkafka.linger.ms=5");
	large = 20;
	f->host.n_records = RECORDS;
	run(f);
	assert_refused(f, 1);
	assert_int_equal(f->kafka->delivered, RECORDS - 1);
	assert_int_equal(count(f->host.logged, "refuses records permanently"), 1);
}

CASE(full_queue_holds_the_next_records)
{
	reopen(f, "kafka://mock/flows?rdkafka.test.mock.num.brokers=1"
		  "&rdkafka.queue.buffering.max.messages=10"
		  "&rdkafka.linger.ms=1");
	f->host.n_records = RECORDS;
	run(f);
	assert_refused(f, 0);
	assert_in_range(f->kafka->full, 1, UINT64_MAX);
}

CASE(brokers_may_go_and_come)
{
	f->host.n_records = 100;
	run(f);
	for (int id = 1; id <= 3; id++)
		rd_kafka_mock_broker_set_down(brokers(f), id);
	f->host.n_records = RECORDS;
	run_until_logged(f, "trying again");
	for (int id = 1; id <= 3; id++)
		rd_kafka_mock_broker_set_up(brokers(f), id);
	run(f);
	assert_refused(f, 0);
	assert_int_equal(count(f->host.logged, "trying again"), 1);
	assert_int_equal(count(f->host.logged, "accepts records again"), 1);
}
