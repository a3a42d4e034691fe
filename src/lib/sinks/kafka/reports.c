// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "kafka.h"

#include "base/clock_ms.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_SIZE = 1024 };

/* ---- The window ------------------------------------------------------------------ */

void window_free(struct window *window)
{
	free(window->entries);
	*window = (struct window){ 0 };
}

static int grow_window(struct window *window)
{
	struct window larger = *window;

	larger.size = window->size ? 2 * window->size : FIRST_SIZE;
	larger.entries = malloc(larger.size * sizeof(*larger.entries));
	if (!larger.entries)
		return -ENOMEM;
	for (uint64_t n = window->first; n < window->end; n++)
		*window_entry(&larger, n) = *window_entry(window, n);
	free(window->entries);
	*window = larger;
	return 0;
}

int window_place(struct window *window, struct position end, uint64_t *ret_number)
{
	/* Records that are not read again were dropped by the spool. */
	for (; window->next < window->end; window->next++) {
		struct window_entry *entry = window_entry(window, window->next);

		if (entry->end.seq == end.seq) {
			*ret_number = window->next++;
			return 0;
		}
		if (!position_is_before(entry->end, end))
			break;
		if (entry->state == WINDOW_UNSENT)
			entry->state = WINDOW_DELIVERED;
	}
	if (window->end - window->first == window->size) {
		int err = grow_window(window);

		if (err)
			return err;
	}
	*ret_number = window->end++;
	window->next = window->end;
	*window_entry(window, *ret_number) =
		(struct window_entry){ .end = end, .state = WINDOW_UNSENT };
	return 0;
}

void window_unsend(struct window *window)
{
	for (uint64_t n = window->first; n < window->end; n++) {
		struct window_entry *entry = window_entry(window, n);

		if (entry->state == WINDOW_SENT)
			entry->state = WINDOW_UNSENT;
	}
}

bool window_settle(struct window *window, enum window_state *ret_state,
		   struct position *ret_end)
{
	const struct window_entry *entry;

	if (window->first == window->next)
		return false;
	entry = window_entry(window, window->first);
	if (entry->state < WINDOW_DELIVERED)
		return false;
	*ret_state = entry->state;
	do {
		*ret_end = entry->end;
		entry = window_entry(window, ++window->first);
	} while (window->first < window->next && entry->state == *ret_state);
	return true;
}

/* ---- Retries --------------------------------------------------------------------- */

void reports_send_again(struct kafka *kafka)
{
	if (!kafka->resend.due_ms)
		backoff_wait(&kafka->resend, now_ms());
}

/* Replace the producer once it has delivered its last reports. */
static void give_up_producer(struct kafka *kafka)
{
	if (kafka->replace.due_ms)
		return;
	backoff_wait(&kafka->replace, now_ms());
	rd_kafka_purge(kafka->producer.handle,
		       RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_NON_BLOCKING);
}

/* ---- Outages --------------------------------------------------------------------- */

/*
 * Brokers and librdkafka have different codes for the same error; librdkafka reports a failed
 * handshake as one of TLS or of the connection, whichever it notices first.
 */
static rd_kafka_resp_err_t common_code(rd_kafka_resp_err_t err, const char *text)
{
	if (err == RD_KAFKA_RESP_ERR__TRANSPORT && strstr(text, "SSL routines"))
		return RD_KAFKA_RESP_ERR__SSL;
	return err == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC ||
			       err == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION ?
		       RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART :
		       err;
}

void reports_log(struct kafka *kafka, rd_kafka_resp_err_t err, const char *text)
{
	/* Earlier errors, which are more specific, have caused it. */
	if (err == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN &&
	    outage_is_on(&kafka->outage))
		return;
	outage_log(&kafka->outage, kafka->host->log, NETOBS_LOG_ERROR,
		   rd_kafka_err2name(common_code(err, text)),
		   "kafka: %s: %s; trying again", kafka->settings.name, text);
}

/*
 * librdkafka reports each attempt to reach each broker; as long as records arrive,
 * none of that matters.
 */
static void note_failure(struct kafka *kafka, rd_kafka_resp_err_t err,
			 const char *text)
{
	if (outage_is_on(&kafka->outage) || !kafka->has_worked) {
		reports_log(kafka, err, text);
		return;
	}
	if (err == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN && *kafka->noted_text)
		return;
	kafka->noted = err;
	snprintf(kafka->noted_text, sizeof(kafka->noted_text), "%s", text);
}

bool reports_have_noted(const struct kafka *kafka)
{
	return *kafka->noted_text && !outage_is_on(&kafka->outage);
}

void reports_log_noted(struct kafka *kafka)
{
	if (reports_have_noted(kafka))
		reports_log(kafka, kafka->noted, kafka->noted_text);
}

void reports_recover(struct kafka *kafka)
{
	outage_end(&kafka->outage, kafka->host->log, NETOBS_LOG_INFO,
		   "kafka: %s accepts records again", kafka->settings.name);
	*kafka->noted_text = '\0';
	kafka->has_worked = true;
}

/* ---- Failures -------------------------------------------------------------------- */

static bool is_too_large(rd_kafka_resp_err_t err)
{
	return err == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE ||
	       err == RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE;
}

/*
 * Not among them: INVALID_MSG, which Kafka calls CORRUPT_MESSAGE and retriable, and
 * INVALID_TIMESTAMP, for a message has another time when it is sent again.
 */
static bool is_refusal(rd_kafka_resp_err_t err)
{
	return err == RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE ||
	       err == RD_KAFKA_RESP_ERR_INVALID_RECORD || is_too_large(err);
}

/* The consequence of another error, which is logged. */
static bool is_consequence(rd_kafka_resp_err_t err)
{
	return err == RD_KAFKA_RESP_ERR__PURGE_QUEUE ||
	       err == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT ||
	       err == RD_KAFKA_RESP_ERR__FATAL;
}

static void refuse_record(struct kafka *kafka, struct window_entry *entry,
			  rd_kafka_resp_err_t err)
{
	if (!kafka->refused)
		log_error(kafka->host->log,
			  "kafka: %s refuses records permanently, they are dropped: %s",
			  kafka->settings.name, rd_kafka_err2str(err));
	kafka->refused++;
	entry->state = WINDOW_REFUSED;
}

static void keep_record(struct kafka *kafka, struct window_entry *entry,
			rd_kafka_resp_err_t err)
{
	entry->state = WINDOW_UNSENT;
	kafka->retried++;
	if (err == RD_KAFKA_RESP_ERR__FATAL)
		give_up_producer(kafka);
	if (!is_consequence(err))
		reports_log(kafka, err, rd_kafka_err2str(err));
	reports_send_again(kafka);
}

/* Another record of its batch may have caused the refusal, or their size together. */
static void suspect_record(struct kafka *kafka, struct window_entry *entry,
			   rd_kafka_resp_err_t err)
{
	if (is_too_large(err) && !kafka->has_warned) {
		kafka->has_warned = true;
		log_warning(kafka->host->log,
			    "kafka: %s refuses batches of that size, their records are sent one by one: make rdkafka.batch.size smaller",
			    kafka->settings.name);
	}
	entry->is_suspect = true;
	entry->state = WINDOW_UNSENT;
	kafka->retried++;
	reports_send_again(kafka);
	if (is_too_large(err))
		kafka->resend.due_ms = now_ms(); /* there is nothing to wait for */
}

void reports_fail(struct kafka *kafka, struct window_entry *entry,
		  rd_kafka_resp_err_t err, bool is_alone)
{
	if (!is_refusal(err))
		keep_record(kafka, entry, err);
	else if (is_alone || entry->is_suspect)
		refuse_record(kafka, entry, err);
	else
		suspect_record(kafka, entry, err);
}

/* ---- Events ---------------------------------------------------------------------- */

static void take_report(struct kafka *kafka, const rd_kafka_message_t *message)
{
	uint64_t number = (uintptr_t)message->_private;
	struct window_entry *entry;

	if (number < kafka->window.first || number >= kafka->window.end)
		return;
	entry = window_entry(&kafka->window, number);
	if (message->err) {
		reports_fail(kafka, entry, message->err, false);
		return;
	}
	entry->state = WINDOW_DELIVERED;
	kafka->delivered++;
	kafka->delivered_bytes += message->len;
}

static void take_kafka_error(struct kafka *kafka, rd_kafka_event_t *event)
{
	const char *text = rd_kafka_event_error_string(event);

	if (!rd_kafka_event_error_is_fatal(event)) {
		note_failure(kafka, rd_kafka_event_error(event), text);
		return;
	}
	reports_log(kafka, RD_KAFKA_RESP_ERR__FATAL, text);
	give_up_producer(kafka);
}

static void take_log(struct kafka *kafka, rd_kafka_event_t *event)
{
	const char *facility, *text;
	int level;

	if (!rd_kafka_event_log(event, &facility, &text, &level))
		log_debug(kafka->host->log, "kafka: %s: %s", facility, text);
}

static void take_kafka_event(struct kafka *kafka, rd_kafka_event_t *event)
{
	const rd_kafka_message_t *message;

	switch (rd_kafka_event_type(event)) {
	case RD_KAFKA_EVENT_DR:
		while ((message = rd_kafka_event_message_next(event)))
			take_report(kafka, message);
		break;
	case RD_KAFKA_EVENT_ERROR:
		take_kafka_error(kafka, event);
		break;
	case RD_KAFKA_EVENT_LOG:
		take_log(kafka, event);
		break;
	}
	rd_kafka_event_destroy(event);
}

static bool take_reports(struct kafka *kafka, const struct producer *producer,
			 int64_t end_ms)
{
	rd_kafka_event_t *event;

	while (producer->handle) {
		if (now_ms() >= end_ms)
			return false;
		event = rd_kafka_queue_poll(producer->queue, 0);
		if (!event)
			break;
		take_kafka_event(kafka, event);
	}
	return true;
}

bool reports_take(struct kafka *kafka, int64_t end_ms)
{
	return take_reports(kafka, &kafka->producer, end_ms) &&
	       take_reports(kafka, &kafka->single, end_ms);
}
