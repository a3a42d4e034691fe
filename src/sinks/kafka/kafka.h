/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A sink: its messages, those in flight, and what reports mean for them and its producer. */
#ifndef NETOBS_SINKS_KAFKA_KAFKA_H
#define NETOBS_SINKS_KAFKA_KAFKA_H

#include "base/backoff.h"
#include "base/outage.h"
#include "producer.h"
#include "sink/position.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- What a record is in Kafka: a value, and the key that chooses its partition --- */

struct message {
	size_t key_len; /* 0: none */
	size_t value_len;
	uint8_t key[MESSAGE_KEY_MAX];
	uint8_t *value; /* of malloc(3); NULL: there is none */
};

/**
 * @return 0; -ENOMEM, without a change
 */
int message_make(struct message *message, const struct message_format *format,
		 const struct netobs_record *record);

/* ---- The window: reports.c ---------------------------------------------------------- */

/*
 * Records that were taken from the spool and are not acknowledged yet, in their
 * order. Partitions answer in any order; a spool wants to hear of all before a position.
 * So the window keeps what became of each, and settles them from the front.
 *
 * After a rewind the spool gives out the same records again. Those that need no
 * second sending are found here, and are not sent again.
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

/*
 * The number of the entry of a record that comes from the spool: a new one, or the
 * one it had before a rewind. -ENOMEM.
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

/* The spool begins again at the front. */
static inline void window_rewind(struct window *window)
{
	window->next = window->first;
}

/* What was sent is not on its way any more. */
void window_unsend(struct window *window);

/*
 * Remove what is settled alike from the front, up to *@ret_end. False: the first
 * entry is not settled, or the spool has to give it out again first.
 */
bool window_settle(struct window *window, enum window_state *ret_state,
		   struct position *ret_end);

/* ---- The sink ----------------------------------------------------------------------- */

struct kafka {
	struct sink_host *host;
	struct settings settings;
	struct producer producer;
	/* Batches of one record, for those that were in a batch that was refused:
	 * librdkafka 2.0 does not say which of them was why. NULL until needed. */
	struct producer single;
	struct outage outage;
	bool has_worked;	   /* records have arrived */
	rd_kafka_resp_err_t noted; /* a failure that is not logged yet */
	char noted_text[256];	   /* "": there is none */
	struct window window;
	int event_fd;

	struct message message; /* the next one to be sent, if it has a value */
	uint64_t held;		/* its number */

	bool is_single;		/* batches are of one record */
	struct backoff resend;	/* what failed; due_ms 0: nothing did */
	struct backoff replace; /* the producer; the same */
	int64_t progress_ms; /* the last acknowledgement, or since when one is due */

	uint64_t delivered, delivered_bytes, refused, retried, full, producers;
};

/* ---- What librdkafka reports: reports.c --------------------------------------------- */

/* All there is now. False: there is more, but it is @end_ms. */
bool reports_take(struct kafka *kafka, int64_t end_ms);

/* A record was not taken. @is_alone: none of a batch with it is why. */
void reports_fail(struct kafka *kafka, struct window_entry *entry,
		  rd_kafka_resp_err_t err, bool is_alone);

/* Some records are to be sent again, a while later. */
void reports_send_again(struct kafka *kafka);

/* Log a failure that is retried, unless this outage has a line about it. */
void reports_log(struct kafka *kafka, rd_kafka_resp_err_t err, const char *text);

/* Whether there is a failure that is logged only if records get stuck. */
bool reports_have_noted(const struct kafka *kafka);
void reports_log_noted(struct kafka *kafka);

/* Records arrive: an outage is over. */
void reports_recover(struct kafka *kafka);

#endif
