// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "sessions.h"

#include "base/util.h"
#include "containers.h"
#include "owners.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <time.h>

enum { NSEC_PER_USEC = 1000 };

_Static_assert((int)SESSION_BY_USING == (int)NETOBS_SESSION_BY_USING &&
		       (int)SESSION_BY_HOLDING == (int)NETOBS_SESSION_BY_HOLDING &&
		       (int)SESSION_OPENED_PASSIVE == (int)NETOBS_SESSION_PASSIVE,
	       "they are copied");
#define AS_OF_PROCESSES(member)                                        \
	_Static_assert(sizeof(((struct netobs_session *)0)->member) == \
			       PROCESS_SIZE(member),                   \
		       "names of processes fit")
AS_OF_PROCESSES(container_name);
AS_OF_PROCESSES(container_image);
AS_OF_PROCESSES(pod_name);
AS_OF_PROCESSES(pod_namespace);

int64_t session_tick_ns(void)
{
	struct timespec tick;

	/* The coarse clock advances once per tick (kernel/time/posix-timers.c, KTIME_LOW_RES). */
	return clock_getres(CLOCK_MONOTONIC_COARSE, &tick) ?
		       4 * NSEC_PER_MSEC :
		       tick.tv_sec * NSEC_PER_SEC + tick.tv_nsec;
}

/* ---- Endings -------------------------------------------------------------------------- */

static enum netobs_session_ended ended_by_error(int error)
{
	switch (error) {
	case ECONNREFUSED:
		return NETOBS_SESSION_REFUSED;
	case ECONNRESET:
	case EPIPE: /* after the other end's FIN: tcp_reset() */
		return NETOBS_SESSION_RESET;
	case ETIMEDOUT:
		return NETOBS_SESSION_TIMEOUT;
	case ECONNABORTED: /* by another process: SOCK_DESTROY of sock_diag(7) */
		return NETOBS_SESSION_ABORTED;
	default:
		return NETOBS_SESSION_FAILED;
	}
}

enum netobs_session_ended session_ended(const struct session_end *end)
{
	if (!end->time_ns)
		return NETOBS_SESSION_OPEN;
	if (end->error)
		return ended_by_error(end->error);
	/* In these states this end's FIN was acknowledged before, or is acknowledged now. */
	return end->state == TCP_FIN_WAIT2 || end->state == TCP_CLOSING ||
			       end->state == TCP_LAST_ACK ?
		       NETOBS_SESSION_FIN :
		       NETOBS_SESSION_ABORTED;
}

/* ---- Control groups --------------------------------------------------------------------- */

static void fill_cgroup(const struct session_source *source,
			const struct session_owner *owner,
			struct netobs_session *session)
{
	struct cgroup_info info;

	if (!cgroups_find(source->cgroups_fd, &owner->cgroup, &info))
		return;
	memcpy(session->cgroup_path, info.path, sizeof(session->cgroup_path));
	memcpy(session->container_id, info.names.container_id,
	       sizeof(session->container_id));
	memcpy(session->pod_uid, info.names.pod_uid, sizeof(session->pod_uid));
	memcpy(session->unit, info.names.unit, sizeof(session->unit));
	memcpy(session->slice, info.names.slice, sizeof(session->slice));
	memcpy(session->machine, info.names.machine, sizeof(session->machine));
	container_names_fill(source->names, &info.names,
			     CONTAINER_TEXTS(session));
}

static void fill_session_process(const struct session_source *source,
				 const struct session_owner *owner,
				 struct netobs_session *session)
{
	if (!owner->by)
		return;
	session->record.has |= NETOBS_SESSION_HAS_PROCESS;
	session->process_by = owner->by;
	session->pid = owner->pid_tgid >> 32;
	session->tid = (uint32_t)owner->pid_tgid;
	session->uid = owner->uid;
	session->cgroup_id = owner->cgroup_id;
	memcpy(session->process, owner->comm, sizeof(session->process));
	if (strncmp(owner->thread, owner->comm, sizeof(owner->comm)) != 0)
		memcpy(session->thread, owner->thread, sizeof(session->thread));
	process_name_find(source->names_fd, owner, session->long_name);
	fill_cgroup(source, owner, session);
}

/* ---- All of it -------------------------------------------------------------------------- */

static void fill_connection(const struct session_source *source,
			    const struct session_event *event,
			    struct netobs_session *session)
{
	const int64_t end_ns = event->end.time_ns ?: event->time_ns;

	memcpy(session->local_addr, event->local, sizeof(session->local_addr));
	memcpy(session->remote_addr, event->remote, sizeof(session->remote_addr));
	session->local_port = event->local_port;
	session->remote_port = event->remote_port;
	session->protocol = IPPROTO_TCP;
	session->opened = event->opened;
	session->ended = session_ended(&event->end);
	session->error = event->end.error;
	session->netns_inode = event->netns;
	session->end_ns = clock_to_wall(source->clock, end_ns);
	if (!event->start_ns)
		return;
	session->record.has |= NETOBS_SESSION_HAS_START;
	session->start_ns = clock_to_wall(source->clock, event->start_ns);
}

static void fill_counters(const struct session_event *event,
			  struct netobs_session *session)
{
	if (event->has_fin)
		session->record.has |= NETOBS_SESSION_HAS_FIN;
	session->bytes_acked = event->bytes_acked;
	session->bytes_received = event->bytes_received;
	session->bytes_sent = event->bytes_sent;
	session->bytes_retransmitted = event->bytes_retrans;
	session->segments_sent = event->segs_out;
	session->segments_received = event->segs_in;
	session->data_segments_sent = event->data_segs_out;
	session->data_segments_received = event->data_segs_in;
	session->retransmits = event->retransmits;
	session->lost = event->lost;
	session->reordering = event->reordering;
	session->reordered = event->reordered;
	session->delivered = event->delivered;
	session->delivered_ce = event->delivered_ce;
	session->duplicates = event->dsack_dups;
	session->cwnd = event->cwnd;
	session->mss = event->mss;
}

static void fill_times(int64_t tick_ns, const struct session_event *event,
		       struct netobs_session *session)
{
	const int64_t tick_us = tick_ns / NSEC_PER_USEC;

	if (event->srtt_us) {
		session->record.has |= NETOBS_SESSION_HAS_RTT;
		session->rtt_ns = (uint64_t)event->srtt_us * NSEC_PER_USEC;
		session->rtt_variation_ns =
			(uint64_t)event->rttvar_us * NSEC_PER_USEC;
	}
	if (event->min_rtt_us != UINT32_MAX) {
		session->record.has |= NETOBS_SESSION_HAS_MIN_RTT;
		session->min_rtt_ns = (uint64_t)event->min_rtt_us * NSEC_PER_USEC;
	}
	session->busy_us = (uint64_t)(event->busy_ticks * tick_us);
	session->window_limited_us = (uint64_t)(event->rwnd_ticks * tick_us);
	session->buffer_limited_us = (uint64_t)(event->sndbuf_ticks * tick_us);
}

void session_fill(const struct session_source *source,
		  const struct session_event *event,
		  struct netobs_session *ret_session)
{
	*ret_session = (struct netobs_session){
		.record = {
			.sz = sizeof(*ret_session),
			.type = NETOBS_RECORD_SESSION,
			.time_ns = clock_to_wall(source->clock, event->time_ns),
		},
	};
	fill_connection(source, event, ret_session);
	fill_counters(event, ret_session);
	fill_times(source->tick_ns, event, ret_session);
	fill_session_process(source, &event->owner, ret_session);
}
