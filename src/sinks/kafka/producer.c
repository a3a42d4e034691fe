// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "producer.h"

#include "base/detached.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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

struct ending {
	rd_kafka_t *handle;
	int done_fd; /* of a pipe; closed when it is over */
};

static void *end(void *arg)
{
	struct ending *ending = arg;

	rd_kafka_destroy_flags(ending->handle,
			       RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
	close_fd(&ending->done_fd);
	free(ending);
	return NULL;
}

/* The fd polls readable when @handle is gone; -1: it is gone, or that is unknown. */
static int start_to_end(rd_kafka_t *handle)
{
	struct ending *ending = calloc(1, sizeof(*ending));
	int fds[2] = { -1, -1 };

	if (!ending) {
		rd_kafka_destroy(handle);
		return -1;
	}
	if (pipe2(fds, O_CLOEXEC))
		fds[0] = fds[1] = -1;
	*ending = (struct ending){ .handle = handle, .done_fd = fds[1] };
	if (detached_run(end, ending, false))
		end(ending);
	return fds[0];
}

void producer_close(struct producer *producer, int wait_ms)
{
	struct pollfd done = { .fd = -1, .events = POLLIN };

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
		done.fd = start_to_end(producer->handle);
	}
	*producer = (struct producer){ 0 };
	if (done.fd >= 0 && wait_ms)
		poll(&done, 1, wait_ms);
	close_fd(&done.fd);
}

/* ---- Use ------------------------------------------------------------------------- */

rd_kafka_resp_err_t producer_send(const struct producer *producer,
				  const struct message *message, uint64_t number)
{
	if (!rd_kafka_produce(producer->topic, RD_KAFKA_PARTITION_UA,
			      RD_KAFKA_MSG_F_COPY, (void *)message->value,
			      message->value_len,
			      message->key_len ? message->key : NULL,
			      message->key_len, (void *)(uintptr_t)number))
		return RD_KAFKA_RESP_ERR_NO_ERROR;
	return rd_kafka_last_error();
}
