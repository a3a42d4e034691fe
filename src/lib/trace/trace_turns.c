// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Turns of a tracer: what only the tracer knows of them. */
#include "base/util.h"
#include "trace_state.h"

#include <string.h>

const char *trace_find_container(struct trace *trace, uint32_t pid)
{
	struct trace_known_container *known =
		&trace->containers[pid % TRACE_PROCESSES_KNOWN];
	const int64_t now_ns = clock_boot_ns();

	if (known->pid == pid && now_ns < known->until_ns)
		return known->id;
	known->pid = pid;
	known->until_ns = now_ns + NSEC_PER_SEC;
	memcpy(known->id, trace_process_names(pid).container_id,
	       sizeof(known->id));
	return known->id;
}

static void deliver_turn(struct netobs_turn *turn, void *ctx)
{
	struct trace *trace = ctx;

	trace_name_alert(trace, turn->connection, &turn->alert_ns, turn->alert);
	if (turn->pid)
		memcpy(turn->container_id, trace_find_container(trace, turn->pid),
		       sizeof(turn->container_id));
	if (trace->queues)
		queues_note_uplink(trace->queues, turn->uplink_netns_inode,
				   turn->uplink_ifindex, turn->uplink);
	trace->stats.turns++;
	trace_deliver(trace, &turn->record);
}

static bool thread_time(void *ctx, uint32_t tid, int64_t from_ns,
			int64_t until_ns, uint64_t ns[NETOBS_THREAD_STATES])
{
	const struct trace *trace = ctx;
	const int64_t offset = clock_to_wall(&trace->clock, 0);

	return trace->threads &&
	       threads_time(trace->threads, tid, from_ns - offset,
			    until_ns - offset, ns);
}

static bool sees(void *ctx, uint32_t points)
{
	const struct trace *trace = ctx;

	return (trace->programs.missing & points) != points;
}

int trace_turns_new(struct trace *trace)
{
	const struct turns_ops ops = {
		.on_turn = deliver_turn,
		.thread_time = thread_time,
		.sees = sees,
		.ctx = trace,
	};
	int err = turns_new(&ops, &trace->turns);

	if (!err)
		journeys_watch(trace->journeys, turns_take, trace->turns);
	return err;
}
