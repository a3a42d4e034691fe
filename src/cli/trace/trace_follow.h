/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Alerts that arm a tracer: connections are traced from when they break a rule. */
#ifndef NETOBS_CLI_TRACE_TRACE_FOLLOW_H
#define NETOBS_CLI_TRACE_TRACE_FOLLOW_H

#include <stdint.h>

#include <netobs/netobs.h>
#include <netobs/trace.h>

#include "service/options/args.h"
#include "service/options/rules.h"

struct trace_follow {
	struct netobs *ctx;
	struct netobs_trace *trace;
	struct alert_rules rules;
	uint32_t duration_ms; /* time for which a connection is traced */
	uint64_t alerts,
		armed; /* so far; an alert of an armed connection prolongs its trace */
	void (*on_alert)(const struct netobs_alert *alert, void *user);
	void (*on_log)(int level, const char *message, void *user);
	void *user;
};

/** @return 0; -EINVAL, which is reported: a rule is wrong */
int trace_follow_rules(struct trace_follow *follow,
		       const struct args_list *rules);

/** @return 0; -EINVAL, which is reported: one is no name of an interface */
int trace_follow_interfaces(const struct args_list *interfaces);

/**
 * Make the observer, if there are rules.
 *
 * @param interfaces  NULL-terminated; NULL: all
 * @param filter  packets that rules are about; NULL: all
 * @return 0; as netobs_new() and netobs_alerts_set()
 */
int trace_follow_open(struct trace_follow *follow,
		      const char *const *interfaces, const char *filter);

/** Start the observer, if there is one. @return 0; as netobs_start() */
int trace_follow_start(struct trace_follow *follow);

/** @return -1 without rules */
int trace_follow_fd(const struct trace_follow *follow);

/** @return 0, < 0 */
int trace_follow_dispatch(struct trace_follow *follow);

void trace_follow_close(struct trace_follow *follow);

#endif
