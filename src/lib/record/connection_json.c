// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* A connection as JSON: names are those that flow records have for the same things. */
#include <netobs/connection.h>

#include <netobs/flow.h>

#include "base/json.h"
#include "base/util.h"
#include "process_json.h"

#include <errno.h>

static const char *const state_names[] = {
	[NETOBS_CONNECTION_SYN_SENT] = "syn-sent",
	[NETOBS_CONNECTION_SYN_RECEIVED] = "syn-received",
	[NETOBS_CONNECTION_ESTABLISHED] = "established",
	[NETOBS_CONNECTION_CLOSING] = "closing",
	[NETOBS_CONNECTION_CLOSED] = "closed",
	[NETOBS_CONNECTION_RESET] = "reset",
};

const char *netobs_connection_state_name(unsigned int state)
{
	return state < ARRAY_SIZE(state_names) ? state_names[state] : NULL;
}

static void add_address(struct json *json, const char *key,
			const uint8_t addr[16])
{
	char text[NETOBS_ADDR_STR_MAX];

	netobs_addr_str(addr, text, sizeof(text));
	json_key(json, key);
	json_string(json, text);
}

/* As in other records: down to whole milliseconds. */
static void add_time(struct json *json, const char *key, int64_t ns)
{
	json_key(json, key);
	json_i64(json, ns / NSEC_PER_MSEC - (ns % NSEC_PER_MSEC < 0));
}

/* What the members for one kind of latency are called. */
struct latency_keys {
	const char *smoothed, *last, *min, *max, *samples, *classes;
};

static void add_latency(struct json *json, const struct latency_keys *keys,
			const struct netobs_latency *latency)
{
	if (!latency->samples)
		return;
	json_key_u64(json, keys->smoothed, latency->smoothed_ns);
	json_key_u64(json, keys->last, latency->last_ns);
	json_key_u64(json, keys->min, latency->min_ns);
	json_key_u64(json, keys->max, latency->max_ns);
	json_key_u64(json, keys->samples, latency->samples);
	json_key(json, keys->classes);
	json_open(json, '[');
	for (int i = 0; i < NETOBS_LATENCY_CLASSES; i++)
		json_u64(json, latency->classes[i]);
	json_close(json, ']');
}

static void add_way(struct json *json, const char *key,
		    const struct netobs_connection_way *way)
{
	static const struct latency_keys rtt = { "TimeFlowRttNs", "LastRttNs",
						 "MinRttNs",	  "MaxRttNs",
						 "RttSamples",	  "RttClasses" };
	static const struct latency_keys app = {
		"AppLatencyNs",	   "LastAppLatencyNs", "MinAppLatencyNs",
		"MaxAppLatencyNs", "AppResponses",     "AppLatencyClasses"
	};

	json_key(json, key);
	json_open(json, '{');
	json_key_u64(json, "DataBytes", way->data_bytes);
	json_key_u64(json, "PeakBytesPerSecond", way->peak_bytes_per_s);
	add_latency(json, &rtt, &way->rtt);
	if (way->handshake_rtt_ns)
		json_key_u64(json, "HandshakeRttNs", way->handshake_rtt_ns);
	add_latency(json, &app, &way->app);
	json_key_u64(json, "Retransmits", way->retransmits);
	json_key_u64(json, "BytesRetransmitted", way->retransmitted_bytes);
	json_key_u64(json, "OutOfOrder", way->out_of_order);
	json_key_u64(json, "DuplicateAcks", way->duplicate_acks);
	json_key_u64(json, "ZeroWindows", way->zero_windows);
	json_key_u64(json, "SynRetries", way->syn_retries);
	json_close(json, '}');
}

int netobs_connection_json(const struct netobs_connection *connection,
			   char *buf, size_t size)
{
	enum { PROTO_TCP = 6 };
	struct json json;

	if (!connection || !buf)
		return -EINVAL;
	json_begin(&json, buf, size);
	json_open(&json, '{');
	json_key(&json, "type");
	json_string(&json, "connection");
	add_time(&json, "TimeMs", connection->time_ns);
	add_time(&json, "TimeFlowStartMs", connection->start_ns);
	add_time(&json, "TimeFlowEndMs", connection->last_ns);
	add_address(&json, "SrcAddr", connection->client);
	add_address(&json, "DstAddr", connection->server);
	json_key_u64(&json, "SrcPort", connection->client_port);
	json_key_u64(&json, "DstPort", connection->server_port);
	json_key_u64(&json, "Proto", PROTO_TCP);
	json_key(&json, "State");
	json_string(&json, netobs_connection_state_name(connection->state) ?:
				   "unknown");
	json_key(&json, "Interface");
	json_string(&json, connection->interface);
	json_key_u64(&json, "IfIndex", connection->ifindex);
	json_key_u64(&json, "NetnsInode", connection->netns_inode);
	process_json(&json, connection->client_process,
		     connection->server_process);
	add_way(&json, "ToServer", connection->to_server);
	add_way(&json, "ToClient", connection->to_client);
	json_close(&json, '}');
	return json_end(&json);
}
