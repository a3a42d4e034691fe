/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A sink: its messages, those in flight, and what reports mean for them and its producer. */
#ifndef NETOBS_SINKS_KAFKA_KAFKA_H
#define NETOBS_SINKS_KAFKA_KAFKA_H

#include "base/outage.h"
#include "sink/host_fields.h"
#include "sink/module.h"
#include "sinks/pbflow/pbflow.h"

#include <librdkafka/rdkafka.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Options: settings.c ------------------------------------------------------------- */

enum message_encoding { MESSAGE_PROTOBUF, MESSAGE_JSON };

enum message_key {
	MESSAGE_KEY_ADDRESSES, /* of both hosts: NetObserv's */
	MESSAGE_KEY_FLOW,      /* the same for both directions of a flow */
	MESSAGE_KEY_HOST,      /* this host's name */
	MESSAGE_KEY_NONE,
};

enum { MESSAGE_KEY_MAX = 64 }; /* HOST_NAME_MAX, too */

struct message_format {
	enum message_encoding encoding;
	enum message_key key;
	struct pbflow_options pbflow;
	char host[MESSAGE_KEY_MAX + 1];
	struct host_fields host_fields; /* fields of the host in JSON */
};

/* kafka://BROKER[,BROKER]/TOPIC and its options, as librdkafka has them. */
struct settings {
	char *name; /* BROKERS/TOPIC, for messages */
	char *topic;
	struct message_format format;
	rd_kafka_conf_t *conf; /* copied for each producer */
};

/* @return -EINVAL: there are errors, which were logged */
int settings_read(struct settings *settings, struct spec *spec,
		  const struct sink_host *host);

void settings_free(struct settings *settings);

/* ---- What a record is in Kafka: send.c ---------------------------------------------- */

_Static_assert((int)PBFLOW_RECORD_MAX <= (int)SINK_JSON_MAX,
	       "room for JSON is room for protobuf");

enum {
	MESSAGE_MAX = MESSAGE_KEY_MAX + SINK_JSON_MAX
}; /* bytes of key and value */

/**
 * Make the message of a record: a value, and the key that chooses its partition.
 *
 * @param ret_message  refers to @buf
 * @param buf          room for MESSAGE_MAX bytes
 * @return the bytes that it takes of @buf
 */
size_t message_make(rd_kafka_message_t *ret_message, uint8_t *buf,
		    const struct message_format *format,
		    const struct netobs_record *record);

/* ---- The producer: send.c ----------------------------------------------------- */

/* librdkafka's producer. A fatal error makes it useless: another one takes its place. */
struct producer {
	rd_kafka_t *handle; /* NULL: no producer */
	rd_kafka_topic_t *topic;
	rd_kafka_queue_t *queue; /* queue of events */
};

/**
 * @param is_single  its batches have one record
 * @param event_fd   an eventfd that signals events
 * @param text       on failure, the reason
 */
int producer_open(struct producer *producer, const struct settings *settings,
		  bool is_single, int event_fd, char *text, size_t size);

/*
 * Discard what it has not delivered. Its threads may wait for a name server before they
 * end; this waits for them for @wait_ms at most, then a thread of its own does.
 */
void producer_close(struct producer *producer, int wait_ms);

/* ---- The window: reports.c ---------------------------------------------------------- */

/*
 * Records that were read from the spool and are not acknowledged yet, in their order.
 * Partitions acknowledge in any order; a spool needs the acknowledgement of all records
 * before a position. So the window has the state of each record, and settles them from the
 * front.
 *
 * After a rewind the same records are read again. Those that were delivered, or are still
 * on their way, are found here and not sent again.
 */

enum window_state {
	WINDOW_UNSENT,
	WINDOW_SENT,
	WINDOW_DELIVERED,
	WINDOW_REFUSED,
};

struct window_entry {
	struct position end;
	enum window_state state;
	bool is_suspect; /* its batch was refused: it is sent alone */
};

struct window {
	struct window_entry *entries; /* a ring */
	size_t size;		      /* a power of two */
	uint64_t first, next, end;    /* numbers of entries: [first, end) */
};

void window_free(struct window *window);

/**
 * Find the entry of a record that was read from the spool: a new one, or the one it had
 * before a rewind.
 *
 * @param end         behind the record
 * @param ret_number  of the entry
 * @return 0 or -ENOMEM
 */
int window_place(struct window *window, struct position end,
		 uint64_t *ret_number);

static inline struct window_entry *window_entry(const struct window *window,
						uint64_t number)
{
	return &window->entries[number & (window->size - 1)];
}

static inline bool window_is_empty(const struct window *window)
{
	return window->first == window->end;
}

/* The spool is read from the front again. */
static inline void window_rewind(struct window *window)
{
	window->next = window->first;
}

/* Records that were sent are not on their way any more. */
void window_unsend(struct window *window);

/**
 * Remove settled entries of one state from the front.
 *
 * @param ret_end  behind the last of them
 * @return false: the first entry is not settled, or has to be read again before
 */
bool window_settle(struct window *window, enum window_state *ret_state,
		   struct position *ret_end);

/* ---- The outbox: send.c --------------------------------------------------------------- */

enum {
	OUTBOX_MESSAGES = 64,
	OUTBOX_BYTES = 32 << 10, /* if so many are used, no message is added */
};

/* Messages in the order of their records, which librdkafka has not taken yet. */
struct outbox {
	uint32_t n;
	size_t used;				      /* bytes in use */
	rd_kafka_message_t messages[OUTBOX_MESSAGES]; /* _private: numbers in the window */
	uint8_t bytes[OUTBOX_BYTES + MESSAGE_MAX];
};

/* Discard the messages: their records are read from the spool again. */
static inline void outbox_clear(struct outbox *outbox)
{
	outbox->n = 0;
}

/* ---- The sink ----------------------------------------------------------------------- */

struct kafka {
	struct sink_host *host;
	struct settings settings;
	struct producer producer;
	/* Batches of one record, for those that were in a batch that was refused:
	 * librdkafka 2.0 does not report which of them was the cause. NULL until needed. */
	struct producer single;
	struct outage outage;
	bool has_worked;	   /* records have arrived */
	rd_kafka_resp_err_t noted; /* a failure that is not logged yet */
	char noted_text[256];	   /* "": no note */
	struct window window;
	int event_fd;

	struct outbox outbox;

	bool has_warned;       /* of batches that are too large */
	struct backoff resend; /* for failed records; due_ms 0: there are none */
	struct backoff replace; /* for a failed producer; due_ms 0: it has not failed */
	int64_t progress_ms; /* the last acknowledgement, or since when one is due */

	uint64_t delivered, delivered_bytes, refused, retried, full, producers;
};

/** Hand records to librdkafka until @end_ms. @return false: there are more */
bool send_records(struct kafka *kafka, int64_t end_ms);

/* ---- What librdkafka reports: reports.c --------------------------------------------- */

/** Take reports until @end_ms. @return false: there are more */
bool reports_take(struct kafka *kafka, int64_t end_ms);

/* A record was refused. @is_alone: no other record of its batch can be the cause. */
void reports_fail(struct kafka *kafka, struct window_entry *entry,
		  rd_kafka_resp_err_t err, bool is_alone);

/* Send failed records again after a pause. */
void reports_send_again(struct kafka *kafka);

/* Log a failure that is retried, unless it was logged in this outage. */
void reports_log(struct kafka *kafka, rd_kafka_resp_err_t err, const char *text);

/** @return whether there is a failure that is logged only if no record arrives */
bool reports_have_noted(const struct kafka *kafka);
void reports_log_noted(struct kafka *kafka);

/* Records arrive: end an outage. */
void reports_recover(struct kafka *kafka);

#endif
