// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* netobs_trace_arm(): trace a connection that the caller names. */
#include "trace_state.h"

#include "base/util.h"
#include "bpf/parse/headers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static uint64_t end_of(uint32_t duration_ms)
{
	if (!duration_ms)
		return 0;
	return (uint64_t)clock_boot_ns() + duration_ms * (uint64_t)NSEC_PER_MSEC;
}

/* @until_ns: 0 is later than all other times. */
static void prolong(struct traced *traced, uint64_t until_ns)
{
	if (traced->until_ns && (!until_ns || until_ns > traced->until_ns))
		traced->until_ns = until_ns;
}

static void name_alert(struct traced *traced,
		       const struct netobs_trace_target *target)
{
	if (!target->alert_ns)
		return;
	traced->alert_ns = target->alert_ns;
	snprintf(traced->alert, sizeof(traced->alert), "%s", target->alert ?: "");
}

/* Arm a connection that was not known. If that fails, the next sweep removes what was attached for it. */
static int arm_another(struct trace *trace,
		       const struct netobs_trace_target *target,
		       const struct trace_tuple *tuple, bool is_turned)
{
	struct traced *traced;
	uint64_t id;
	int err = 0;

	if (trace->n_chosen >= trace->opts.max_connections)
		return -ENOSPC;
	if (trace->opts.only_armed)
		err = trace_programs_attach(&trace->programs);
	if (!err)
		err = trace_programs_add(&trace->programs, tuple, is_turned, &id);
	if (err)
		return err;
	traced = trace_slot(trace, id);
	traced_begin(traced, id, (uint64_t)clock_boot_ns(), true);
	traced_add_face(traced, tuple);
	traced->until_ns = end_of(target->duration_ms);
	name_alert(traced, target);
	trace_choose(trace, traced);
	return 0;
}

/* Arm a candidate, which nothing has chosen. */
static int arm_candidate(struct trace *trace,
			 const struct netobs_trace_target *target,
			 struct traced *traced)
{
	if (trace->n_chosen >= trace->opts.max_connections)
		return -ENOSPC;
	traced->is_refused = false;
	traced->until_ns = end_of(target->duration_ms);
	name_alert(traced, target);
	trace_programs_conn(&trace->programs, traced->id)->is_rejected = 0;
	trace_choose(trace, traced);
	return 0;
}

static int arm_target(struct trace *trace,
		      const struct netobs_trace_target *target)
{
	struct trace_report ends = { .src_port = target->client_port,
				     .dst_port = target->server_port,
				     .proto = IP_PROTO_TCP };
	struct trace_tuple tuple;
	struct traced *traced;
	bool is_turned;

	memcpy(ends.src.bytes, target->client, sizeof(ends.src.bytes));
	memcpy(ends.dst.bytes, target->server, sizeof(ends.dst.bytes));
	tuple = traced_tuple(&ends);
	is_turned = memcmp(&tuple.addrs[0], &ends.src, sizeof(ends.src)) ||
		    tuple.ports[0] != ends.src_port;
	traced = trace_find(trace, &tuple);
	if (!traced)
		return arm_another(trace, target, &tuple, is_turned);
	if (!traced->is_chosen)
		return arm_candidate(trace, target, traced);
	name_alert(traced, target);
	prolong(traced, end_of(target->duration_ms));
	return 0;
}

int netobs_trace_arm(struct netobs *netobs,
		     const struct netobs_trace_target *target)
{
	struct trace *trace = trace_of(netobs);

	if (!trace || !target)
		return -EINVAL;
	log_expect_error(&trace->life.log);
	if (target->sz < sizeof(*target)) {
		log_error(&trace->life.log, "target: its size is wrong");
		return -EINVAL;
	}
	if (trace->life.state != LIFE_RUNNING) {
		log_error(&trace->life.log, "the tracer does not run");
		return -EINVAL;
	}
	return arm_target(trace, target);
}
