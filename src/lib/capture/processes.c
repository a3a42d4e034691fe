// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "capture.h"

#include "base/clock.h"
#include "base/util.h"
#include "bpf/parse/parse.h"
#include "host/host_state.h"

#include <poll.h>

enum {
	SOCKETS_MAX = 1 << 18,
	/* Sockets that have ended are known for so long: packets may still follow. */
	KEEP_S = 30,
	/* Lists take at most one part in so many of the time. */
	LIST_SHARE = 5,
	/*
	 * A packet is on its way before its process has returned from sending it, and may be
	 * known to have sent it.
	 */
	SETTLE_MS = 5,
	URGENT_MS = 10, /* for so long, a list goes on though packets should not wait */
};

int processes_open(struct processes *processes, const struct host *host,
		   uint64_t disabled, const struct log *log)
{
	const struct who_options options = { .disabled = disabled,
					     .max = SOCKETS_MAX,
					     .keep_ns = KEEP_S * NSEC_PER_SEC };

	return who_init(&processes->who, host, &options, log);
}

void processes_close(struct processes *processes)
{
	who_done(&processes->who);
}

int processes_fd(const struct processes *processes)
{
	return who_is_on(&processes->who) ? owners_fd(&processes->who.owners) :
					    -1;
}

void processes_read(struct processes *processes)
{
	owners_read(&processes->who.owners);
}

/* ---- Lists ------------------------------------------------------------------------------ */

/* @return whether it is complete */
static bool go_on_listing(struct processes *processes, uint32_t *ret_wait_ms)
{
	int64_t now_ns;

	if (who_step(&processes->who, ret_wait_ms))
		return false;
	now_ns = clock_boot_ns();
	processes->next_ns =
		now_ns + (now_ns - processes->begun_ns) * (LIST_SHARE - 1);
	processes->state = PROCESSES_KNOWN;
	return true;
}

static void begin_listing(struct processes *processes)
{
	processes->begun_ns = clock_boot_ns();
	who_begin(&processes->who);
	processes->state = PROCESSES_LISTING;
}

void processes_list(struct processes *processes)
{
	if (!who_is_on(&processes->who))
		return;
	begin_listing(processes);
	for (uint32_t wait_ms = 0; !go_on_listing(processes, &wait_ms);
	     wait_ms = 0)
		poll(NULL, 0, (int)wait_ms);
}

/* Read reports of ended sockets first, so that none is mistaken for a newer socket. */
static int64_t skip_list(struct processes *processes, int64_t *ret_until_ns)
{
	if (owners_read(&processes->who.owners))
		return 1;
	*ret_until_ns = INT64_MAX;
	return 0;
}

static bool is_urgent_over(const struct processes *processes, int64_t now_ns)
{
	return processes->state == PROCESSES_OLD ||
	       now_ns - processes->begun_ns >= URGENT_MS * NSEC_PER_MSEC;
}

int64_t processes_prepare(struct processes *processes, bool is_urgent,
			  int64_t *ret_until_ns)
{
	const int64_t now_ns = clock_boot_ns();
	uint32_t wait_ms = 0;

	*ret_until_ns = INT64_MAX;
	if (!who_is_on(&processes->who))
		return 0;
	if (processes->state == PROCESSES_OLD && now_ns >= processes->next_ns)
		begin_listing(processes);
	if (processes->state == PROCESSES_LISTING)
		go_on_listing(processes, &wait_ms);
	if (processes->state == PROCESSES_KNOWN) {
		*ret_until_ns = processes->begun_ns - SETTLE_MS * NSEC_PER_MSEC;
		return 0;
	}
	if (is_urgent && is_urgent_over(processes, now_ns))
		return skip_list(processes, ret_until_ns);
	return processes->state == PROCESSES_OLD ?
		       processes->next_ns :
		       now_ns + wait_ms * NSEC_PER_MSEC;
}

void processes_done_reading(struct processes *processes)
{
	if (processes->state == PROCESSES_KNOWN)
		processes->state = PROCESSES_OLD;
}

/* ---- Packets ---------------------------------------------------------------------------- */

/* Read the outer key: packets in a tunnel have addresses of other hosts. */
static bool read_key(const struct capture_packet *packet, struct flow_key *ret_key)
{
	const uint8_t *bytes = (const uint8_t *)(packet + 1);
	struct cursor cursor = { bytes, bytes, bytes + packet->captured };
	struct packet parsed;
	int type;

	packet_init(&parsed);
	type = packet->link == LINK_ETHERNET ? parse_ether(&cursor, &parsed) :
					       peek_ip(&cursor);
	if (type < 0 || !cursor_settle(&cursor) ||
	    parse_network(&cursor, &parsed, type) < 0 ||
	    parsed.fragment == FRAGMENT_LATER)
		return false;
	*ret_key = parsed.key;
	return true;
}

/* The namespaces of the sockets that a packet may come from, or else go to; 0: none. */
struct sides {
	uint32_t source, destination;
};

static struct sides find_sides(const struct host *host,
			       const struct capture_packet *packet)
{
	const bool is_out = packet->direction == EGRESS;
	const struct netns *netns = &host->netns[packet->netns];
	const struct netif *netif =
		host_find(host, packet->netns, packet->ifindex);
	uint32_t far = 0;

	if (netif && netif->type == LINK_TYPE_LOOPBACK)
		far = netns->inode;
	else if (netif)
		far = peers_inode(host, netns, netif);
	return is_out ? (struct sides){ netns->inode, far } :
			(struct sides){ far, netns->inode };
}

void processes_find(struct processes *processes,
		    const struct capture_packet *packet,
		    struct netobs_packet *out)
{
	struct who *who = &processes->who;
	const int64_t time_ns = (int64_t)packet->time_ns;
	struct netobs_process *ends = processes->ends;
	struct flow_key key;
	struct sides sides;

	if (!who_is_on(who) || packet->netns >= who->host->n_netns ||
	    !read_key(packet, &key))
		return;
	sides = find_sides(who->host, packet);
	if (sides.source &&
	    who_find_packet(who, sides.source, &key, true, time_ns, &ends[0]))
		out->src_process = &ends[0];
	if (sides.destination && who_find_packet(who, sides.destination, &key,
						 false, time_ns, &ends[1]))
		out->dst_process = &ends[1];
}
