// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Records to Kafka, a message each. The threads of librdkafka put events into a queue,
 * among them reports on records that arrived.
 */
#include "kafka.h"

#include "base/clock_ms.h"
#include "base/util.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

enum {
	SLICE_MS = 5,	 /* time of work per call */
	STUCK_MS = 2000, /* without a delivery: something is wrong */
	CLOSE_MS = 100, /* for librdkafka's threads to end, which may take longer */
	TEXT_SIZE = 512,
};

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

static void resend_window(struct kafka *kafka)
{
	kafka->resend.due_ms = 0;
	outbox_clear(&kafka->outbox);
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
	.types = SINK_TYPES_ALL, /* in JSON */
	.state_size = sizeof(struct kafka),
	.open = kafka_open,
	.work = kafka_work,
	.close = kafka_close,
	.counters = kafka_counters,
};
