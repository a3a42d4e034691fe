// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "flow_extra.h"

#include "bpf/parse/echo.h"
#include "bpf/parse/headers.h"

#include <netobs/flow.h>

#include <errno.h>
#include <stdlib.h>

/* Per-flow data: the key of the entry at which the flow's connection is measured. */
struct place {
	struct flow_key key;
	uint64_t is_known;
};

/* A packet comes in before it goes out, and is at its first point if it was not counted before. */
static bool is_earlier(const struct flow_key *a, const struct flow_key *b)
{
	uint32_t a_again = a->flags & KEY_AGAIN, b_again = b->flags & KEY_AGAIN;

	if (a_again != b_again)
		return !a_again;
	return (a->flags & KEY_EGRESS) < (b->flags & KEY_EGRESS);
}

static void note_health(void *data, const struct flow_entry *entry, void *ctx)
{
	struct place *place = data;

	(void)ctx;
	if (entry->key.proto != IP_PROTO_TCP &&
	    echo_kind(&entry->key) != ECHO_REQUEST)
		return;
	if (place->is_known && !is_earlier(&entry->key, &place->key))
		return;
	place->key = entry->key;
	if (entry->key.proto != IP_PROTO_TCP)
		place->key.dst_port = 0; /* as in the table */
	place->is_known = true;
}

static void join_health(void *data, const void *from, void *ctx)
{
	const struct place *other = from;
	struct place *place = data;

	(void)ctx;
	if (other->is_known &&
	    (!place->is_known || is_earlier(&other->key, &place->key)))
		*place = *other;
}

/* ---- What is new ------------------------------------------------------------------------ */

/* Counters of a connection only grow; those of another connection at its place begin at 0. */
static struct health_reported *reported_of(const struct health *health,
					   const struct connection *conn,
					   uint32_t index, int dir)
{
	struct health_place *place = &health->places[index];

	if (place->born_ns != conn->body->born_ns)
		*place = (struct health_place){ .born_ns = conn->body->born_ns };
	return &place->reported[dir];
}

#define TAKE_NEW(reported, now)                            \
	({                                                 \
		typeof(reported) new = (now) - (reported); \
		(reported) = (now);                        \
		new;                                       \
	})

static void fill_rtt(const struct connection *conn, int dir,
		     struct health_reported *reported, struct netobs_flow *record)
{
	const struct conn_stats *stats = &conn->body->stats[dir];
	const uint32_t handshake = conn_handshake(conn, dir);

	if (handshake) {
		record->has |= NETOBS_HAS_HANDSHAKE_RTT;
		record->handshake_rtt_ns = connection_ns(handshake);
		record->path_rtt_ns = connection_ns(conn_path_rtt(conn, dir));
	}
	if (!stats->rtt.n)
		return;
	record->has |= NETOBS_HAS_RTT;
	record->rtt_ns = connection_ns(stats->rtt.smoothed);
	record->rtt_min_ns = connection_ns(conn_min(&stats->rtt));
	record->rtt_max_ns = connection_ns(stats->rtt.max);
	record->rtt_samples = TAKE_NEW(reported->rtt_samples, stats->rtt.n);
}

/* Fill the record of the client's direction. */
static void fill_response(const struct connection *conn, uint32_t client,
			  struct health_reported *reported,
			  struct netobs_flow *record)
{
	const struct conn_latency *turn = &conn->body->stats[!client].turn;
	const uint32_t path = conn_path(conn, client), least = conn_min(turn);

	if (!turn->n)
		return;
	record->has |= NETOBS_HAS_RESPONSE_TIME;
	record->response_time_ns = connection_ns(turn->smoothed);
	record->response_time_min_ns = connection_ns(least);
	record->response_time_max_ns = connection_ns(turn->max);
	record->app_responses = TAKE_NEW(reported->responses, turn->n);
	if (!path)
		return;
	record->has |= NETOBS_HAS_APP_LATENCY;
	record->app_latency_ns =
		connection_ns(conn_app_latency(turn->smoothed, path));
	record->app_latency_min_ns = connection_ns(conn_app_latency(least, path));
	record->app_latency_max_ns =
		connection_ns(conn_app_latency(turn->max, path));
}

static void fill_counts(const struct conn_stats *stats,
			struct health_reported *reported,
			struct netobs_flow *record)
{
	record->has |= NETOBS_HAS_TCP_HEALTH;
	record->retransmits =
		TAKE_NEW(reported->retransmits, stats->retransmitted);
	record->retransmitted_bytes = TAKE_NEW(reported->retransmitted_bytes,
					       stats->retransmitted_bytes);
	record->out_of_order =
		TAKE_NEW(reported->out_of_order, stats->out_of_order);
	record->late_unknown =
		TAKE_NEW(reported->late_unknown, stats->late_unknown);
	record->duplicate_acks =
		TAKE_NEW(reported->duplicate_acks, stats->duplicate_acks);
	record->zero_windows =
		TAKE_NEW(reported->zero_windows, stats->zero_windows);
}

/* Set the fields of @record from direction @dir of a copy of the entry at @index. */
static void fill_from(struct health *health, const struct connection *conn,
		      uint32_t index, int dir, struct netobs_flow *record)
{
	struct health_reported *reported = reported_of(health, conn, index, dir);
	const struct conn_stats *stats = conn->body->stats;

	fill_rtt(conn, dir, reported, record);
	if (conn->body->key.proto != IP_PROTO_TCP)
		return;
	if (conn_knows_client(conn) && conn_client(conn) == (uint32_t)dir)
		fill_response(conn, (uint32_t)dir, reported, record);
	fill_counts(&stats[dir], reported, record);
}

static void fill_health(void *data, struct netobs_flow *record, void *ctx)
{
	const struct place *place = data;
	struct health *health = ctx;
	struct conn_copy copy;
	struct connection conn = conn_of(&copy);
	int dir, index;

	if (!place->is_known)
		return;
	index = connections_find(health->table, &place->key, &copy, &dir);
	if (index >= 0)
		fill_from(health, &conn, (uint32_t)index, dir, record);
}

/* Places that are not used take no memory. */
int health_init(struct health *health, const struct connections *table)
{
	*health = (struct health){
		.table = table,
		.places = calloc(connections_size(table), sizeof(*health->places)),
		.extra = { .size = sizeof(struct place),
			   .note = note_health,
			   .join = join_health,
			   .fill = fill_health,
			   .ctx = health },
	};
	return health->places ? 0 : -ENOMEM;
}

void health_done(struct health *health)
{
	free(health->places);
	health->places = NULL;
}
