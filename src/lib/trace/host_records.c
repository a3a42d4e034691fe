// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "host_records.h"

#include "base/slots.h"
#include "base/util.h"
#include "host/rtnl.h"
#include "host/netns.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

enum {
	SPACES_MAX = 16,
	UPLINKS_MAX = 8, /* of a namespace */
	PORTS = 1 << 16,
	FLAG_SYN = 0x02,
};

#define PERIOD_NS NSEC_PER_SEC
#define IDLE_NS (10 * NSEC_PER_SEC)

struct uplink {
	uint32_t ifindex;
	uint32_t changes; /* of its carrier */
	bool is_known;	  /* changes */
	char name[16];
};

struct space {
	uint32_t inode; /* first: the key */
	int fd;		/* once it is found: retry_ns is INT64_MAX then */
	int64_t used_ns, retry_ns;
	int64_t from_ns, from_wall_ns; /* when the counters were read; 0: never */
	struct netns_counters counters;
	struct uplink uplinks[UPLINKS_MAX]; /* the one that was used last is the first one */
	uint32_t n_uplinks;
	struct netobs_host next; /* what events have counted */
	uint8_t ports[PORTS / 8]; /* bits of ports that traced connections come to */
};

struct host_records {
	void (*on_record)(void *ctx, const struct netobs_record *record);
	void *ctx;
	uint32_t missing;
	struct utsname names;
	struct slots spaces;
};

/* ---- Events ------------------------------------------------------------------------- */

static void search(struct space *space, uint32_t pid, int64_t now_ns)
{
	if (now_ns < space->retry_ns)
		return;
	space->fd = netns_search(space->inode, pid);
	space->retry_ns = space->fd < 0 ? now_ns + PERIOD_NS : INT64_MAX;
}

/* NULL: there are too many. */
static struct space *get_space(struct host_records *records, uint32_t inode)
{
	if (records->spaces.n == SPACES_MAX)
		return slots_item(&records->spaces, &inode);
	return slots_add(&records->spaces, &inode, sizeof(inode),
			 sizeof(struct space));
}

static void note_uplink(struct space *space,
			const struct netobs_trace_event *event)
{
	struct uplink uplink = { .ifindex = event->ifindex };
	uint32_t i = 0;

	while (i < space->n_uplinks && space->uplinks[i].ifindex != uplink.ifindex)
		i++;
	if (!i && space->n_uplinks)
		return;
	if (i < space->n_uplinks)
		uplink = space->uplinks[i];
	else if (i < UPLINKS_MAX)
		space->n_uplinks++;
	else
		i--;
	memcpy(uplink.name, event->interface, sizeof(uplink.name));
	memmove(&space->uplinks[1], space->uplinks, i * sizeof(uplink));
	space->uplinks[0] = uplink;
}

/* A SYN that finds the accept queue full gets no further than to TCP. */
static bool has_server_port(const struct netobs_trace_event *event)
{
	return event->protocol == IPPROTO_TCP &&
	       (event->point == NETOBS_TRACE_SEGMENT ||
		(event->point == NETOBS_TRACE_RECEIVE &&
		 event->tcp_flags & FLAG_SYN));
}

static bool is_neighbour_failure(const struct netobs_trace_event *event)
{
	static const char prefix[] = "SKB_DROP_REASON_NEIGH_";

	return event->point == NETOBS_TRACE_DROP &&
	       !strncmp(event->cause, prefix, strlen(prefix));
}

void host_records_note(struct host_records *records,
		       const struct netobs_trace_event *event, bool is_uplink,
		       int64_t now_ns)
{
	struct space *space = event->netns_inode ?
				      get_space(records, event->netns_inode) :
				      NULL;

	if (!space)
		return;
	space->used_ns = now_ns;
	search(space, event->pid, now_ns);
	if (is_uplink)
		note_uplink(space, event);
	if (has_server_port(event))
		space->ports[event->dst_port / 8] |= 1 << event->dst_port % 8;
	space->next.neighbour_failures += is_neighbour_failure(event);
}

/* ---- Records ------------------------------------------------------------------------ */

static void take_listener(void *ctx, const struct nlmsghdr *message)
{
	const struct inet_diag_msg *found = NLMSG_DATA(message);
	const uint16_t port = ntohs(found->id.idiag_sport);
	struct space *space = ctx;
	struct netobs_host *host = &space->next;

	if (!(space->ports[port / 8] >> port % 8 & 1) ||
	    (host->accept_limit && found->idiag_rqueue <= host->accept_queue))
		return;
	host->accept_queue = found->idiag_rqueue;
	host->accept_limit = found->idiag_wqueue;
}

static void take_carrier(void *ctx, const struct nlmsghdr *message)
{
	const struct ifinfomsg *link = NLMSG_DATA(message);
	const uint32_t changes = rtnl_attr_u32(
		rtnl_attr_find(IFLA_RTA(link), (int)IFLA_PAYLOAD(message),
			       IFLA_CARRIER_CHANGES));
	struct space *space = ctx;
	struct netobs_host *host = &space->next;

	for (uint32_t i = 0; i < space->n_uplinks; i++) {
		struct uplink *uplink = &space->uplinks[i];

		if (uplink->ifindex != (uint32_t)link->ifi_index)
			continue;
		if (uplink->is_known && changes != uplink->changes) {
			host->carrier_changes += changes - uplink->changes;
			memcpy(host->uplink, uplink->name, sizeof(host->uplink));
		}
		uplink->changes = changes;
		uplink->is_known = true;
	}
}

static void add_counters(struct netobs_host *host,
			 const struct netns_counters *now,
			 const struct netns_counters *before)
{
	host->listen_overflows = now->listen_overflows - before->listen_overflows;
	host->listen_drops = now->listen_drops - before->listen_drops;
	host->udp_buffer_errors =
		now->udp_buffer_errors - before->udp_buffer_errors;
	host->conntrack_drops = now->conntrack_drops - before->conntrack_drops;
}

static void deliver(const struct host_records *records, struct space *space,
		    int64_t wall_ns)
{
	struct netobs_host *host = &space->next;

	host->record = (struct netobs_record){ .sz = sizeof(*host),
					       .type = NETOBS_RECORD_HOST,
					       .time_ns = space->from_wall_ns };
	host->end_ns = wall_ns;
	host->netns_inode = space->inode;
	host->missing_points = records->missing;
	if (!*host->uplink)
		memcpy(host->uplink, space->uplinks[0].name,
		       sizeof(host->uplink));
	snprintf(host->host, sizeof(host->host), "%.63s",
		 records->names.nodename);
	snprintf(host->kernel, sizeof(host->kernel), "%.63s",
		 records->names.release);
	records->on_record(records->ctx, &host->record);
}

/* The first reading is what the next one is compared with. */
static void read_space(const struct host_records *records, struct space *space,
		       int64_t now_ns, int64_t wall_ns)
{
	const struct netns_counters before = space->counters;

	if (netns_counters_read(space->fd, &space->counters))
		return;
	netns_dump_links(space->fd, take_carrier, space);
	netns_dump_listeners(space->fd, take_listener, space);
	add_counters(&space->next, &space->counters, &before);
	if (space->from_ns)
		deliver(records, space, wall_ns);
	space->next = (struct netobs_host){ 0 };
	space->from_ns = now_ns;
	space->from_wall_ns = wall_ns;
}

static void forget_space(struct host_records *records, struct space *space)
{
	const uint32_t inode = space->inode;

	if (space->retry_ns == INT64_MAX)
		close_fd(&space->fd);
	slots_remove(&records->spaces, &inode);
}

void host_records_sweep(struct host_records *records, int64_t now_ns,
			int64_t wall_ns)
{
	for (uint32_t i = records->spaces.n; i--;) {
		struct space *space = slots_at(&records->spaces, i);

		if (now_ns - space->used_ns > IDLE_NS)
			forget_space(records, space);
		else if (space->retry_ns == INT64_MAX &&
			 (!space->from_ns || now_ns - space->from_ns >= PERIOD_NS))
			read_space(records, space, now_ns, wall_ns);
	}
}

int host_records_open(void (*on_record)(void *ctx,
					const struct netobs_record *record),
		      void *ctx, uint32_t missing,
		      struct host_records **ret_records)
{
	struct host_records *records = calloc(1, sizeof(*records));

	if (!records)
		return -ENOMEM;
	records->on_record = on_record;
	records->ctx = ctx;
	records->missing = missing;
	uname(&records->names);
	*ret_records = records;
	return 0;
}

void host_records_close(struct host_records *records)
{
	if (!records)
		return;
	while (records->spaces.n)
		forget_space(records, slots_at(&records->spaces, 0));
	slots_free(&records->spaces);
	free(records);
}
