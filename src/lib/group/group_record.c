/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "group_record.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "catalogue/direction.h"
#include "key_values.h"
#include "table.h"

/* ---- Addresses and ports -------------------------------------------------------------- */

/* Each address has a member, and a bit. */
void group_record_addr(enum group_addr addr, const uint8_t value[16],
		       struct netobs_group_record *record)
{
	static const struct {
		size_t offset;
		uint32_t bit;
	} members[GROUP_ADDRS] = {
#define MEMBER(name, NAME)                                            \
	[ADDR_##NAME] = { offsetof(struct netobs_group_record, name), \
			  NETOBS_GROUP_HAS_##NAME }
		MEMBER(src, SRC),	MEMBER(dst, DST),
		MEMBER(client, CLIENT), MEMBER(server, SERVER),
		MEMBER(host, HOST),
	};

	memcpy((char *)record + members[addr].offset, value, 16);
	record->record.has |= members[addr].bit;
}

void group_record_proto(const void *value, struct netobs_group_record *record)
{
	record->protocol = *(const uint8_t *)value;
	record->record.has |= NETOBS_GROUP_HAS_PROTO;
}

void group_record_port(const void *value, struct netobs_group_record *record)
{
	const struct port_value *port = value;

	group_record_proto(&port->proto, record);
	if (!port->has_port)
		return;
	record->server_port = ntohs(port->port);
	record->record.has |= NETOBS_GROUP_HAS_SERVER_PORT;
}

void group_record_service(const void *value, struct netobs_group_record *record)
{
	const struct service_value *service = value;

	group_record_addr(ADDR_SERVER, service->addr, record);
	group_record_port(&service->port, record);
}

void group_record_pair(const void *value, struct netobs_group_record *record)
{
	const struct pair_value *pair = value;

	group_record_addr(ADDR_HOST, pair->addrs[0], record);
	memcpy(record->peer, pair->addrs[1], sizeof(record->peer));
	record->record.has |= NETOBS_GROUP_HAS_PEER;
}

void group_record_tuple(const void *value, struct netobs_group_record *record)
{
	const struct tuple_value *tuple = value;

	group_record_addr(ADDR_SRC, tuple->src, record);
	group_record_addr(ADDR_DST, tuple->dst, record);
	group_record_proto(&tuple->proto, record);
	if (!tuple->has_ports)
		return;
	record->src_port = tuple->src_port;
	record->dst_port = tuple->dst_port;
	record->record.has |= NETOBS_GROUP_HAS_PORTS;
}

void group_record_conversation(const void *value,
			       struct netobs_group_record *record)
{
	const struct conversation_note *note = value;
	const struct tuple_value *tuple = &note->tuple;

	record->conversation_id = note->id;
	group_record_addr(ADDR_CLIENT, tuple->src, record);
	group_record_addr(ADDR_SERVER, tuple->dst, record);
	group_record_proto(&tuple->proto, record);
	if (!tuple->has_ports)
		return;
	record->client_port = tuple->src_port;
	record->server_port = tuple->dst_port;
	record->record.has |= NETOBS_GROUP_HAS_CLIENT_PORT |
			      NETOBS_GROUP_HAS_SERVER_PORT;
}

/* ---- Places ---------------------------------------------------------------------------- */

void group_record_interface(const void *value, struct netobs_group_record *record)
{
	const struct interface_value *interface = value;

	record->ifindex = interface->ifindex;
	record->netns_inode = interface->netns_inode;
	memcpy(record->interface, interface->name, sizeof(record->interface));
}

void group_record_direction(const void *value, struct netobs_group_record *record)
{
	const uint8_t direction = *(const uint8_t *)value;

	if (!direction)
		return;
	record->direction = direction_index(direction);
	record->record.has |= NETOBS_GROUP_HAS_DIRECTION;
}

void group_record_vlan(const void *value, struct netobs_group_record *record)
{
	const struct vlan_value *vlan = value;

	record->vlan_id = ntohs(vlan->inner);
	record->outer_vlan_id = ntohs(vlan->outer);
	record->record.has |= (vlan->has_inner ? NETOBS_GROUP_HAS_VLAN : 0) |
			      (vlan->has_outer ? NETOBS_GROUP_HAS_OUTER_VLAN : 0);
}

void group_record_tunnel(const void *value, struct netobs_group_record *record)
{
	const struct tunnel_value *tunnel = value;

	if (tunnel->type)
		snprintf(record->tunnel, sizeof(record->tunnel), "%s",
			 human_tunnel_name(tunnel->type));
	record->vni = ntohl(tunnel->vni);
	record->record.has |= tunnel->has_vni ? NETOBS_GROUP_HAS_VNI : 0;
}

/* ---- Processes ------------------------------------------------------------------------- */

void group_record_process(const void *value, struct netobs_group_record *record)
{
	const struct process_value *process = value;

	record->pid = ntohl(process->pid);
	memcpy(record->process, process->command, sizeof(record->process));
}

void group_record_container(const void *value, struct netobs_group_record *record)
{
	const struct container_note *note = value;

	memcpy(record->container_id, note->container.id,
	       sizeof(record->container_id));
	memcpy(record->container_name, note->name,
	       sizeof(record->container_name));
}

void group_record_pod(const void *value, struct netobs_group_record *record)
{
	const struct pod_note *note = value;

	memcpy(record->pod_uid, note->pod.uid, sizeof(record->pod_uid));
	memcpy(record->pod_name, note->name, sizeof(record->pod_name));
	memcpy(record->pod_namespace, note->namespace,
	       sizeof(record->pod_namespace));
}

/* ---- Networks -------------------------------------------------------------------------- */

void group_record_network(const void *value, struct netobs_group_record *record)
{
	memcpy(record->client_network, value, sizeof(record->client_network));
}

void group_record_src_network(const void *value,
			      struct netobs_group_record *record)
{
	memcpy(record->src_network, value, sizeof(record->src_network));
}

void group_record_dst_network(const void *value,
			      struct netobs_group_record *record)
{
	memcpy(record->dst_network, value, sizeof(record->dst_network));
}

/* ---- All ------------------------------------------------------------------------------- */

static void fill_flows(struct netobs_group_record *record,
		       const struct netobs_group_sum *sum)
{
	record->start_ns = sum->start_ns;
	record->end_ns = sum->end_ns;
	record->flows = sum->flows;
	record->packets = sum->packets;
	record->bytes = sum->bytes;
	record->sent_packets = sum->sent_packets;
	record->sent_bytes = sum->sent_bytes;
	record->rtt_samples = sum->rtt_samples;
	record->rtt_ns = sum_rtt_ns(sum);
	record->rtt_sum_ns = sum->rtt_sum_ns;
	record->retransmits = sum->retransmits;
	record->drop_packets = sum->drop_packets;
	record->drop_bytes = sum->drop_bytes;
	record->sampling = sum->is_mixed ? 0 : sum->sampling;
	record->record.has |= sum->rtt_samples ? NETOBS_GROUP_HAS_RTT : 0;
}

static void fill_connections(struct netobs_group_record *record,
			     const struct series_sum *sum)
{
	if (!sum->connections)
		return;
	record->connections = sum->connections;
	record->connections_failed = sum->connections_failed;
	if (!sum->flows.flows || sum->first_end_ns < record->start_ns)
		record->start_ns = sum->first_end_ns;
	if (!sum->flows.flows || sum->last_end_ns > record->end_ns)
		record->end_ns = sum->last_end_ns;
}

static void fill_times(struct netobs_times *ret_times,
		       const struct netobs_times *times,
		       struct netobs_group_record *record, uint32_t bit)
{
	if (!times || !times->n)
		return;
	*ret_times = *times;
	record->record.has |= bit;
}

static void fill_histograms(struct netobs_group_record *record,
			    struct netobs_times *times, uint32_t histograms)
{
	fill_times(&record->rtt_times,
		   series_times_at(times, histograms, NETOBS_SERIES_RTT),
		   record, NETOBS_GROUP_HAS_RTT_TIMES);
	fill_times(&record->app_latency_times,
		   series_times_at(times, histograms, NETOBS_SERIES_APP_LATENCY),
		   record, NETOBS_GROUP_HAS_APP_LATENCY_TIMES);
}

static void fill_keys(struct netobs_group_record *record,
		      const struct group_keys *keys, const uint8_t *value)
{
	for (size_t i = 0; i < keys->n; i++) {
		const struct group_key *key = keys->keys[i];
		const uint8_t *shown = group_keys_shown(keys, i, value);

		if (key->record)
			key->record(shown, record);
		else
			group_record_addr(key->addr, shown, record);
	}
}

void group_record_fill(struct netobs_group_record *ret_record,
		       const struct group_keys *keys, const uint8_t *value,
		       const struct series_sum *sum, struct netobs_times *times,
		       uint32_t histograms)
{
	*ret_record = (struct netobs_group_record){
		.record = { .sz = sizeof(*ret_record),
			    .type = NETOBS_RECORD_GROUP },
		.series = value ? NETOBS_SERIES_GROUP : NETOBS_SERIES_OTHER,
	};
	fill_flows(ret_record, &sum->flows);
	fill_connections(ret_record, sum);
	fill_histograms(ret_record, times, histograms);
	if (keys->flags & NETOBS_GROUP_BOTH_ENDS)
		ret_record->record.has |= NETOBS_GROUP_HAS_SENT;
	if (value)
		fill_keys(ret_record, keys, value);
}
