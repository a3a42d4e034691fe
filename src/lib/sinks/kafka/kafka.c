// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Records to Kafka, a message each. The threads of librdkafka put events into a queue,
 * among them reports on records that arrived.
 */
#include "kafka.h"

#include "base/clock_ms.h"
#include "base/util.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

enum {
	SLICE_MS = 5,	 /* of work in one call */
	STRIDE = 64,	 /* records between looks at the clock */
	STUCK_MS = 2000, /* without a delivery: something is wrong */
	CLOSE_MS = 500,	 /* for librdkafka's threads to end */
	TEXT_SIZE = 512,
};

/* ---- Messages -------------------------------------------------------------------- */

/* One end of a flow. */
struct end {
	uint8_t address[16];
	uint16_t port; /* network byte order */
} __attribute__((packed));

/* The same for both directions: the lesser end comes first. */
static size_t make_flow_key(uint8_t *key, enum message_key kind,
			    const struct netobs_flow *flow)
{
	bool is_whole = kind == MESSAGE_KEY_FLOW;
	bool has_ports = is_whole && flow->has & NETOBS_HAS_PORTS;
	size_t len = is_whole ? sizeof(struct end) : sizeof(flow->src);
	struct end ends[2] = {
		{ .port = has_ports ? htons(flow->src_port) : 0 },
		{ .port = has_ports ? htons(flow->dst_port) : 0 },
	};
	bool swap;

	memcpy(ends[0].address, flow->src, sizeof(flow->src));
	memcpy(ends[1].address, flow->dst, sizeof(flow->dst));
	swap = memcmp(&ends[0], &ends[1], sizeof(ends[0])) > 0;
	memcpy(key, &ends[swap], len);
	memcpy(key + len, &ends[!swap], len);
	len *= 2;
	if (is_whole)
		key[len++] = flow->proto;
	return len;
}

static size_t make_key(uint8_t *key, const struct message_format *format,
		       const struct netobs_record *record)
{
	size_t len = strlen(format->host);

	if (format->key == MESSAGE_KEY_NONE)
		return 0;
	if (format->key != MESSAGE_KEY_HOST && record->type == NETOBS_RECORD_FLOW)
		return make_flow_key(key, format->key, as_flow(record));
	memcpy(key, format->host, len);
	return len;
}

static size_t make_json(uint8_t *value, const struct message_format *format,
			const struct netobs_record *record)
{
	int len = netobs_record_json(record, (char *)value, RECORD_JSON_MAX);

	assert(len > 0);
	return host_fields_add(&format->host_fields, (char *)value, (size_t)len);
}

static size_t make_value(uint8_t *value, const struct message_format *format,
			 const struct netobs_record *record)
{
	if (format->encoding == MESSAGE_JSON)
		return make_json(value, format, record);
	if (pbnetobs_has(record))
		return pbnetobs_record(record, &format->pbflow, value);
	return pbflow_record(as_flow(record), &format->pbflow, value);
}

void message_make(struct message *message, const struct message_format *format,
		  const struct netobs_record *record)
{
	message->key_len = make_key(message->key, format, record);
	message->value_len = make_value(message->value, format, record);
}

/* ---- Acknowledgements ------------------------------------------------------------ */

static void settle_window(struct kafka *kafka)
{
	const struct sink_host_ops *ops = kafka->host->ops;
	enum window_state state;
	struct position end;

	while (window_settle(&kafka->window, &state, &end)) {
		if (state == WINDOW_REFUSED) {
			ops->refuse(kafka->host, end);
			continue;
		}
		ops->ack(kafka->host, end);
		kafka->progress_ms = now_ms();
		kafka->resend.failures = 0;
		if (!kafka->resend.due_ms && !kafka->replace.due_ms)
			reports_recover(kafka);
	}
}

/* ---- Producers ------------------------------------------------------------------- */

static void drop_message(struct kafka *kafka)
{
	kafka->message.value_len = 0;
}

static void resend_window(struct kafka *kafka)
{
	kafka->resend.due_ms = 0;
	drop_message(kafka);
	window_rewind(&kafka->window);
	kafka->host->ops->rewind(kafka->host);
}

static void replace_producer(struct kafka *kafka)
{
	char text[TEXT_SIZE];

	producer_close(&kafka->producer, 0);
	producer_close(&kafka->single, 0);
	window_unsend(&kafka->window);
	if (producer_open(&kafka->producer, &kafka->settings, false,
			  kafka->event_fd, text, sizeof(text))) {
		reports_log(kafka, RD_KAFKA_RESP_ERR__FAIL, text);
		backoff_wait(&kafka->replace, now_ms());
		return;
	}
	kafka->producers++;
	backoff_reset(&kafka->replace);
	resend_window(kafka);
}

/* False: nothing can be sent now. */
static bool prepare_producer(struct kafka *kafka)
{
	if (kafka->replace.due_ms) {
		bool is_quiet = kafka->producer.handle &&
				!rd_kafka_outq_len(kafka->producer.handle);

		if (!backoff_is_due(&kafka->replace) && !is_quiet)
			return false;
		replace_producer(kafka);
	}
	if (kafka->resend.due_ms && backoff_is_due(&kafka->resend))
		resend_window(kafka);
	return !kafka->replace.due_ms && !kafka->resend.due_ms;
}

/* ---- Sending --------------------------------------------------------------------- */

enum step { STEP_ON, STEP_DONE };

/* A message for the next record, if it needs one. STEP_DONE: there is none. */
static enum step make_next(struct kafka *kafka)
{
	const struct message_format *format = &kafka->settings.format;
	struct sink_item item;

	if (!kafka->host->ops->next(kafka->host, &item))
		return STEP_DONE;
	if (window_place(&kafka->window, item.end, &kafka->held)) {
		reports_send_again(kafka);
		return STEP_DONE;
	}
	if (window_entry(&kafka->window, kafka->held)->state == WINDOW_UNSENT)
		message_make(&kafka->message, format, item.record);
	return STEP_ON;
}

/* NULL: it cannot be made, now. */
static const struct producer *find_single(struct kafka *kafka)
{
	char text[TEXT_SIZE];

	if (!kafka->single.handle &&
	    producer_open(&kafka->single, &kafka->settings, true,
			  kafka->event_fd, text, sizeof(text))) {
		reports_log(kafka, RD_KAFKA_RESP_ERR__FAIL, text);
		return NULL;
	}
	return &kafka->single;
}

/* STEP_DONE: no more for now. librdkafka copies a message into the memory that it needs anyway. */
static enum step send_message(struct kafka *kafka)
{
	struct window_entry *entry = window_entry(&kafka->window, kafka->held);
	const struct producer *producer =
		entry->is_suspect ? find_single(kafka) : &kafka->producer;
	struct message *message = &kafka->message;
	rd_kafka_resp_err_t err;

	if (!producer) {
		drop_message(kafka);
		reports_send_again(kafka);
		return STEP_DONE;
	}
	if (!rd_kafka_produce(producer->topic, RD_KAFKA_PARTITION_UA,
			      RD_KAFKA_MSG_F_COPY, message->value,
			      message->value_len,
			      message->key_len ? message->key : NULL,
			      message->key_len, (void *)(uintptr_t)kafka->held)) {
		drop_message(kafka);
		entry->state = WINDOW_SENT;
		return STEP_ON;
	}
	err = rd_kafka_last_error();
	if (err == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
		kafka->full++; /* reports make room */
		return STEP_DONE;
	}
	drop_message(kafka);
	reports_fail(kafka, entry, err, true);
	return kafka->resend.due_ms ? STEP_DONE : STEP_ON;
}

/* False: there is more. */
static bool send_records(struct kafka *kafka, int64_t end_ms)
{
	bool was_empty = window_is_empty(&kafka->window);
	enum step step = STEP_ON;

	for (uint32_t i = 1; step == STEP_ON; i++) {
		if (i % STRIDE == 0 && now_ms() >= end_ms)
			break;
		step = kafka->message.value_len ? send_message(kafka) :
						  make_next(kafka);
	}
	if (was_empty)
		kafka->progress_ms = now_ms();
	return step == STEP_DONE;
}

/* ---- The module ------------------------------------------------------------------ */

static void plan_wakeup(struct kafka *kafka, bool is_done)
{
	bool is_waiting = !window_is_empty(&kafka->window);
	int ms = is_done ? -1 : 0;

	if (is_waiting && now_ms() - kafka->progress_ms >= STUCK_MS)
		reports_log_noted(kafka);
	ms = sooner_ms(ms, backoff_left_ms(&kafka->resend));
	ms = sooner_ms(ms, backoff_left_ms(&kafka->replace));
	if (is_waiting && reports_have_noted(kafka))
		ms = sooner_ms(ms, left_ms(kafka->progress_ms + STUCK_MS));
	kafka->host->ops->wake_in(kafka->host, ms);
}

static int kafka_work(void *arg, bool flush)
{
	struct kafka *kafka = arg;
	int64_t end_ms = now_ms() + SLICE_MS;
	uint64_t count;
	bool is_done;

	(void)flush; /* linger.ms is for that */
	while (read(kafka->event_fd, &count, sizeof(count)) > 0)
		;
	is_done = reports_take(kafka, end_ms);
	settle_window(kafka);
	if (prepare_producer(kafka)) {
		is_done &= send_records(kafka, end_ms);
		settle_window(kafka);
	}
	plan_wakeup(kafka, is_done);
	return 0;
}

static void kafka_close(void *arg)
{
	struct kafka *kafka = arg;

	producer_close(&kafka->single, 0);
	producer_close(&kafka->producer, CLOSE_MS);
	if (kafka->event_fd >= 0)
		kafka->host->ops->watch(kafka->host, kafka->event_fd, 0);
	close_fd(&kafka->event_fd);
	drop_message(kafka);
	settings_free(&kafka->settings);
	window_free(&kafka->window);
}

static int kafka_open(struct spec *spec, struct sink_host *host, void *arg)
{
	struct kafka *kafka = arg;
	char text[TEXT_SIZE];
	int err;

	kafka->host = host;
	host->outage = &kafka->outage;
	kafka->event_fd = -1;
	kafka->producers = 1;
	err = settings_read(&kafka->settings, spec, host);
	if (err)
		return err;
	kafka->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (kafka->event_fd < 0)
		return -errno;
	err = host->ops->watch(host, kafka->event_fd, EPOLLIN);
	if (err)
		return err;
	err = producer_open(&kafka->producer, &kafka->settings, false,
			    kafka->event_fd, text, sizeof(text));
	if (err)
		spec_refuse(spec, "%s", text);
	return err;
}

static void kafka_counters(const void *state, sink_counter_fn *take, void *ctx)
{
	const struct kafka *kafka = state;

	take(ctx, "messages", kafka->delivered);
	take(ctx, "message_bytes", kafka->delivered_bytes);
	take(ctx, "retried", kafka->retried);
	take(ctx, "queue_full", kafka->full);
	take(ctx, "producers", kafka->producers);
}

__attribute__((visibility("default")))
const struct sink_module netobs_sink_module = {
	.version = NETOBS_VERSION,
	.kind = "kafka",
	.types = SINK_TYPES_ALL, /* in JSON */
	.state_size = sizeof(struct kafka),
	.open = kafka_open,
	.work = kafka_work,
	.close = kafka_close,
	.counters = kafka_counters,
};
