// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Messages are handed to librdkafka many at a time: it reads clocks and locks the topic once
 * for all of them, and copies each into the memory that it needs for it anyway.
 */
#include "kafka.h"

#include "base/clock_ms.h"
#include "base/util.h"
#include "base/worker.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	TEXT_SIZE = 512,
	LOOKS_MAX = 16 * OUTBOX_MESSAGES, /* at records, between looks at the clock */
};

/* ---- Messages: the key chooses the partition; records that belong together have the same -- */

/* One end of a flow. */
struct end {
	uint8_t address[16];
	uint16_t port; /* network byte order */
} __attribute__((packed));

/* The key is equal for both directions of a flow: the lesser end comes first. */
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

static size_t make_value(uint8_t *value, const struct message_format *format,
			 const struct netobs_record *record)
{
	if (format->encoding == MESSAGE_JSON)
		return host_fields_json(&format->host_fields, record,
					(char *)value);
	if (pbnetobs_has(record))
		return pbnetobs_record(record, &format->pbflow, value);
	return pbflow_record(as_flow(record), &format->pbflow, value);
}

size_t message_make(rd_kafka_message_t *ret_message, uint8_t *buf,
		    const struct message_format *format,
		    const struct netobs_record *record)
{
	size_t key_len = make_key(buf, format, record);
	uint8_t *value = buf + key_len;
	size_t len = make_value(value, format, record);

	*ret_message = (rd_kafka_message_t){
		.payload = value,
		.len = len,
		.key = key_len ? buf : NULL,
		.key_len = key_len,
	};
	return key_len + len;
}

/* ---- Records to messages --------------------------------------------------------- */

static void add_message(struct kafka *kafka, const struct netobs_record *record,
			uint64_t number)
{
	struct outbox *outbox = &kafka->outbox;
	rd_kafka_message_t *message = &outbox->messages[outbox->n++];

	outbox->used += message_make(message, outbox->bytes + outbox->used,
				     &kafka->settings.format, record);
	message->_private = (void *)(uintptr_t)number;
}

/** Make a message for the next record, if it needs one. @return false: there is no record */
static bool make_next(struct kafka *kafka)
{
	struct sink_item item;
	uint64_t number;

	if (!kafka->host->ops->next(kafka->host, &item))
		return false;
	if (window_place(&kafka->window, item.end, &number)) {
		reports_send_again(kafka);
		return false;
	}
	if (window_entry(&kafka->window, number)->state == WINDOW_UNSENT)
		add_message(kafka, item.record, number);
	return true;
}

/* When records are sent again, most may need no message. @return false: there is no further record */
static bool fill_outbox(struct kafka *kafka)
{
	struct outbox *outbox = &kafka->outbox;

	outbox->used = 0;
	for (uint32_t i = 0; i < LOOKS_MAX && outbox->n < OUTBOX_MESSAGES &&
			     outbox->used < OUTBOX_BYTES;
	     i++)
		if (!make_next(kafka))
			return false;
	return true;
}

/* ---- Messages to librdkafka ------------------------------------------------------ */

static struct window_entry *entry_of(const struct kafka *kafka,
				     const rd_kafka_message_t *message)
{
	return window_entry(&kafka->window, (uintptr_t)message->_private);
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

/* The number of messages at the front that one producer gets. */
static uint32_t count_run(const struct kafka *kafka)
{
	const struct outbox *outbox = &kafka->outbox;
	bool is_suspect = entry_of(kafka, outbox->messages)->is_suspect;
	uint32_t n = 1;

	while (n < outbox->n &&
	       entry_of(kafka, &outbox->messages[n])->is_suspect == is_suspect)
		n++;
	return n;
}

static void note_produced(struct kafka *kafka, const rd_kafka_message_t *message)
{
	struct window_entry *entry = entry_of(kafka, message);

	if (message->err)
		reports_fail(kafka, entry, message->err, true);
	else
		entry->state = WINDOW_SENT;
}

/** Of the first @n messages, keep those for which there was no room. @return their number */
static uint32_t note_run(struct kafka *kafka, uint32_t n)
{
	struct outbox *outbox = &kafka->outbox;
	uint32_t n_kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		const rd_kafka_message_t *message = &outbox->messages[i];

		if (message->err == RD_KAFKA_RESP_ERR__QUEUE_FULL)
			outbox->messages[n_kept++] = *message;
		else
			note_produced(kafka, message);
	}
	outbox->n -= n - n_kept;
	memmove(outbox->messages + n_kept, outbox->messages + n,
		(outbox->n - n_kept) * sizeof(*outbox->messages));
	return n_kept;
}

/** @return false: no more for now */
static bool send_run(struct kafka *kafka)
{
	struct outbox *outbox = &kafka->outbox;
	const struct producer *producer =
		entry_of(kafka, outbox->messages)->is_suspect ?
			find_single(kafka) :
			&kafka->producer;
	uint32_t n = count_run(kafka);

	if (!producer) {
		outbox_clear(outbox);
		reports_send_again(kafka);
		return false;
	}
	rd_kafka_produce_batch(producer->topic, RD_KAFKA_PARTITION_UA,
			       RD_KAFKA_MSG_F_COPY, outbox->messages, (int)n);
	if (note_run(kafka, n)) {
		kafka->full++; /* reports make room */
		return false;
	}
	return !kafka->resend.due_ms;
}

bool send_records(struct kafka *kafka, int64_t end_ms)
{
	const struct outbox *outbox = &kafka->outbox;
	bool was_empty = window_is_empty(&kafka->window);
	bool is_done;

	do {
		const bool has_more = outbox->n || fill_outbox(kafka);

		is_done = outbox->n ? !send_run(kafka) : !has_more;
	} while (!is_done && now_ms() < end_ms);
	if (was_empty)
		kafka->progress_ms = now_ms();
	return is_done;
}

/* ---- Opening --------------------------------------------------------------------- */

static int make_handle(struct producer *producer, const struct settings *settings,
		       bool is_single, char *text, size_t size)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_dup(settings->conf);

	if (is_single)
		rd_kafka_conf_set(conf, "batch.num.messages", "1", NULL, 0);
	producer->handle = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, size);
	if (!producer->handle) {
		rd_kafka_conf_destroy(conf);
		return -EINVAL;
	}
	producer->topic =
		rd_kafka_topic_new(producer->handle, settings->topic, NULL);
	if (!producer->topic) {
		snprintf(text, size, "%s",
			 rd_kafka_err2str(rd_kafka_last_error()));
		return -EINVAL;
	}
	return 0;
}

int producer_open(struct producer *producer, const struct settings *settings,
		  bool is_single, int event_fd, char *text, size_t size)
{
	static const uint64_t one = 1;
	int err = make_handle(producer, settings, is_single, text, size);

	if (err) {
		producer_close(producer, 0);
		return err;
	}
	producer->queue = rd_kafka_queue_get_main(producer->handle);
	rd_kafka_set_log_queue(producer->handle, producer->queue);
	rd_kafka_queue_io_event_enable(producer->queue, event_fd, &one,
				       sizeof(one));
	return 0;
}

/* ---- Closing --------------------------------------------------------------------- */

/* Waits for librdkafka's threads. */
static void destroy_handle(void *handle)
{
	rd_kafka_destroy_flags(handle, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
}

static void keep_destroyed(void *handle)
{
	(void)handle;
}

static void destroy_in_thread(rd_kafka_t *handle, int wait_ms)
{
	struct worker *worker;

	if (worker_new(destroy_handle, keep_destroyed, &worker)) {
		destroy_handle(handle);
		return;
	}
	worker_start_or_run(worker, handle);
	worker_wait(worker, wait_ms);
	worker_free(worker);
}

void producer_close(struct producer *producer, int wait_ms)
{
	if (producer->queue) {
		rd_kafka_queue_io_event_enable(producer->queue, -1, NULL, 0);
		rd_kafka_queue_destroy(producer->queue);
	}
	if (producer->topic)
		rd_kafka_topic_destroy(producer->topic);
	if (producer->handle) {
		rd_kafka_purge(producer->handle,
			       RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT |
				       RD_KAFKA_PURGE_F_NON_BLOCKING);
		destroy_in_thread(producer->handle, wait_ms);
	}
	*producer = (struct producer){ 0 };
}
