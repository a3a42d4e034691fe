// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "kafka.h"

#include "base/worker.h"

#include <errno.h>
#include <stdio.h>

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
