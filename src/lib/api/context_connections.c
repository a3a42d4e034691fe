// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The live metrics of TCP connections: netobs_connections(). */
#include "context.h"

#include "base/options.h"
#include "base/util.h"
#include "bpf/parse/headers.h"
#include "host/host_state.h"

#include <netobs/connection.h>

#include <errno.h>
#include <string.h>

_Static_assert((int)NETOBS_LATENCY_CLASSES == (int)CONN_HIST, "the same classes");

enum {
	SLICE_MS = 4,
	ENTRIES_PER_LOOK = 64, /* at the clock */
	IDLE_S = 300,
};

/* Values that all connections of a call need. */
struct reading {
	const struct netobs *ctx;
	void (*take)(const struct netobs_connection *connection, void *user);
	void *user;
	int64_t now_ns; /* by the programs' clock */
};

/* ---- One connection ---------------------------------------------------------------------- */

static struct netobs_latency latency_of(const struct conn_latency *from)
{
	struct netobs_latency latency = {
		.samples = from->n,
		.sum_ns = connection_ns(from->sum),
		.last_ns = connection_ns(from->last),
		.smoothed_ns = connection_ns(from->smoothed),
		.min_ns = connection_ns(conn_min(from)),
		.max_ns = connection_ns(from->max),
	};

	for (int i = 0; i < CONN_HIST; i++)
		latency.classes[i] = from->hist[i];
	return latency;
}

/* @return the server's part of response times; only their sum is known, so it has no classes */
static struct netobs_latency app_of(const struct conn_latency *turn, uint32_t path)
{
	const uint64_t paths = (uint64_t)turn->n * path;

	if (!path || !turn->n)
		return (struct netobs_latency){ 0 };
	return (struct netobs_latency){
		.samples = turn->n,
		.sum_ns = connection_ns(turn->sum > paths ? turn->sum - paths : 0),
		.last_ns = connection_ns(conn_app_latency(turn->last, path)),
		.smoothed_ns =
			connection_ns(conn_app_latency(turn->smoothed, path)),
		.min_ns = connection_ns(conn_app_latency(conn_min(turn), path)),
		.max_ns = connection_ns(conn_app_latency(turn->max, path)),
	};
}

static uint64_t peak_bytes_per_s(const struct conn_rate *rate)
{
	const uint64_t window_ns = (uint64_t)CONN_RATE_WINDOW << CONN_TICK_SHIFT;

	return rate->peak_bytes * (uint64_t)NSEC_PER_SEC / window_ns;
}

/* @return the metrics of what direction @dir has sent */
static struct netobs_connection_way way_of(const struct connection *conn, int dir)
{
	const struct conn_stats *stats = &conn->body->stats[dir];

	return (struct netobs_connection_way){
		.rtt = latency_of(&stats->rtt),
		.handshake_rtt_ns = connection_ns(conn_handshake(conn, dir)),
		.path_rtt_ns = connection_ns(conn_path_rtt(conn, dir)),
		.data_bytes = conn_data_bytes(conn, dir),
		.peak_bytes_per_s = peak_bytes_per_s(&conn->rates->sides[dir]),
		.retransmits = stats->retransmitted,
		.retransmitted_bytes = stats->retransmitted_bytes,
		.out_of_order = stats->out_of_order,
		.late_unknown = stats->late_unknown,
		.duplicate_acks = stats->duplicate_acks,
		.zero_windows = stats->zero_windows,
		.syn_retries = stats->syn_retries,
	};
}

/* @ways: to the server, and to the client. */
static void add_turns(const struct connection *conn, uint32_t client,
		      struct netobs_connection_way ways[2])
{
	const struct conn_stats *stats = conn->body->stats;

	if (!conn_knows_client(conn))
		return;
	ways[0].response = latency_of(&stats[!client].turn);
	ways[0].app = app_of(&stats[!client].turn, conn_path(conn, client));
	ways[1].think = latency_of(&stats[client].turn);
}

static enum netobs_connection_state
find_connection_state(const struct connection *conn, int client)
{
	const uint16_t all = conn->head->state[0] | conn->head->state[1];
	const uint16_t both = conn->head->state[0] & conn->head->state[1];

	if (all & CONN_RST)
		return NETOBS_CONNECTION_RESET;
	if (both & CONN_FIN)
		return NETOBS_CONNECTION_CLOSED;
	if (all & CONN_FIN)
		return NETOBS_CONNECTION_CLOSING;
	if (!(conn->head->state[client] & CONN_SYN))
		return NETOBS_CONNECTION_ESTABLISHED;
	if (!(conn->head->state[!client] & CONN_SEEN))
		return NETOBS_CONNECTION_SYN_SENT;
	return conn->head->state[client] & CONN_ACKED ?
		       NETOBS_CONNECTION_ESTABLISHED :
		       NETOBS_CONNECTION_SYN_RECEIVED;
}

/* @return when the newest packet was seen, as exactly as known: see conn_side.window_end */
static int64_t last_of(const struct connection *conn, int64_t now_ns)
{
	const uint32_t now = (uint32_t)((uint64_t)now_ns >> CONN_TICK_SHIFT);
	int32_t age = INT32_MAX;

	for (int dir = 0; dir < 2; dir++) {
		const int32_t one =
			(int32_t)(now - conn->head->sides[dir].window_end);

		if (conn->head->state[dir] && one < age)
			age = one;
	}
	if (age == INT32_MAX)
		age = 0;
	return now_ns - ((int64_t)(age > 0 ? age : 0) << CONN_TICK_SHIFT);
}

static bool has_ended(enum netobs_connection_state state)
{
	return state == NETOBS_CONNECTION_CLOSED ||
	       state == NETOBS_CONNECTION_RESET;
}

bool context_find_process(const struct netobs *ctx, const struct flow_key *at,
			  bool is_source, int64_t now_ns,
			  struct netobs_process *ret_process)
{
	const struct host *host = &ctx->host;
	/* Lookups fill a cache. */
	struct who *who = (struct who *)&ctx->features.who;
	const struct netns *netns = &host->netns[at->netns];
	const struct netif *netif = host_find(host, at->netns, at->ifindex);
	const struct flow_key key = { .src = at->src,
				      .dst = at->dst,
				      .src_port = at->src_port,
				      .dst_port = at->dst_port,
				      .proto = IP_PROTO_TCP };
	const uint32_t peer = netif ? peers_inode(host, netns, netif) : 0;

	if (!who_is_on(who))
		return false;
	return who_find(who, netns->inode, &key, is_source, now_ns, ret_process) ||
	       (peer && who_find(who, peer, &key, is_source, now_ns, ret_process));
}

static const struct netobs_process *process_of(const struct reading *reading,
					       const struct connection *conn,
					       bool is_source,
					       struct netobs_process *room)
{
	return context_find_process(reading->ctx, &conn->body->key, is_source,
				    reading->now_ns, room) ?
		       room :
		       NULL;
}

static void pass_connection(const struct reading *reading,
			    const struct connection *conn)
{
	const struct host *host = &reading->ctx->host;
	const struct clock *clock = &reading->ctx->pipeline.clock;
	const struct netif *netif =
		host_find(host, conn->body->key.netns, conn->body->key.ifindex);
	const int client = (int)conn_client(conn);
	struct netobs_connection_way ways[] = { way_of(conn, client),
						way_of(conn, !client) };
	const struct ip_addr *ends[] = { &conn->body->key.src,
					 &conn->body->key.dst };
	const uint16_t ports[] = { conn->body->key.src_port,
				   conn->body->key.dst_port };
	const int64_t last_ns = last_of(conn, reading->now_ns);
	struct netobs_process processes[2];
	struct netobs_connection out = {
		.sz = sizeof(out),
		.client_port = ports[client],
		.server_port = ports[!client],
		.state = find_connection_state(conn, client),
		.ifindex = conn->body->key.ifindex,
		.netns_inode = host->netns[conn->body->key.netns].inode,
		.time_ns = clock_to_wall(clock, reading->now_ns),
		.interface = netif ? netif->name : "",
		.start_ns = clock_to_wall(clock, (int64_t)conn->body->born_ns),
		.last_ns = clock_to_wall(clock, last_ns),
		.to_server = &ways[0],
		.to_client = &ways[1],
	};

	if (reading->now_ns - last_ns >
	    (has_ended(out.state) ? CONTEXT_ENDED_S : IDLE_S) * NSEC_PER_SEC)
		return;
	add_turns(conn, (uint32_t)client, ways);
	out.client_process = process_of(reading, conn, !client, &processes[0]);
	out.server_process = process_of(reading, conn, client, &processes[1]);
	memcpy(out.client, ends[client]->bytes, sizeof(out.client));
	memcpy(out.server, ends[!client]->bytes, sizeof(out.server));
	reading->take(&out, reading->user);
}

/* ---- All of them ------------------------------------------------------------------------- */

/* @return the cursor for the next call */
static uint64_t read_slice(const struct reading *reading, uint64_t cursor)
{
	const struct connections *table =
		&reading->ctx->pipeline.store.connections;
	const int64_t end_ns = clock_boot_ns() + SLICE_MS * NSEC_PER_MSEC;
	struct conn_copy copy;
	const struct connection conn = conn_of(&copy);

	for (; cursor < connections_size(table); cursor++) {
		if (cursor % ENTRIES_PER_LOOK == ENTRIES_PER_LOOK - 1 &&
		    clock_boot_ns() >= end_ns)
			break;
		if (table->buckets[cursor / CONN_WAYS].tags[cursor % CONN_WAYS] &&
		    connections_read(table, (uint32_t)cursor, &copy) &&
		    copy.body.key.proto == IP_PROTO_TCP)
			pass_connection(reading, &conn);
	}
	return cursor;
}

int netobs_connections(const struct netobs *ctx, uint64_t *cursor,
		       void (*take)(const struct netobs_connection *connection,
				    void *user),
		       void *user)
{
	const struct connections *table;
	struct reading reading;

	if (!is_context(ctx) || !cursor || !take ||
	    ctx->life.state == LIFE_NEW || ctx->life.state == LIFE_FAILED)
		return -EINVAL;
	table = &ctx->pipeline.store.connections;
	if (!table->n_buckets)
		return -ENOTSUP;
	reading = (struct reading){
		.ctx = ctx,
		.take = take,
		.user = user,
		.now_ns = clock_to_stamp(&ctx->pipeline.clock, clock_boot_ns()),
	};
	*cursor = read_slice(&reading, *cursor);
	return *cursor < connections_size(table);
}

int netobs_connection_stats_get(const struct netobs *ctx,
				struct netobs_connection_stats *ret_stats)
{
	const struct connections *table;
	struct netobs_connection_stats stats;
	struct conn_counters counters;

	if (!is_context(ctx) || !ret_stats)
		return -EINVAL;
	table = &ctx->pipeline.store.connections;
	if (!table->n_buckets)
		return -ENOTSUP;
	counters = connections_count(table);
	stats = (struct netobs_connection_stats){
		.capacity = connections_size(table),
		.memory = connections_bytes(table),
		.created = counters.created,
		.evicted_half_open = counters.evicted_half_open,
		.evicted_closed = counters.evicted_closed,
		.evicted_idle = counters.evicted_idle,
		.refused_packets = counters.refused,
		.contended_packets = counters.contended,
		.used = connections_used(&counters),
	};
	return sized_fill(ret_stats, &stats, sizeof(stats));
}
