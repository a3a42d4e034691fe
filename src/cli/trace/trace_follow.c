// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "trace_follow.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "service/observe/flows_config.h"

/* ---- Options ----------------------------------------------------------------------------- */

static int add_rule(struct trace_follow *follow, const char *text)
{
	char why[640];
	int err = alert_rules_add(&follow->rules, NULL, text);

	if (err) {
		fprintf(stderr, "netobsctl trace: --rule: %s\n",
			err == -E2BIG ? "there are more than 128" :
					strerror(-err));
		return -EINVAL;
	}
	err = netobs_alert_rule_check(
		follow->rules.list[follow->rules.n - 1].rule, why, sizeof(why));
	if (!err)
		return 0;
	fprintf(stderr, "netobsctl trace: --rule '%s': %s\n", text, why);
	return -EINVAL;
}

int trace_follow_rules(struct trace_follow *follow, const struct args_list *rules)
{
	int err = 0;

	for (size_t i = 0; !err && i < rules->n; i++)
		err = add_rule(follow, rules->items[i]);
	return err;
}

int trace_follow_interfaces(const struct args_list *interfaces)
{
	char why[160];

	for (size_t i = 0; i < interfaces->n; i++) {
		if (flows_check_interface(interfaces->items[i], why, sizeof(why)))
			continue;
		fprintf(stderr, "netobsctl trace: -i '%s': %s\n",
			interfaces->items[i], why);
		return -EINVAL;
	}
	return 0;
}

/* ---- Alerts ---------------------------------------------------------------------------- */

static void follow_alert(const struct netobs_alert *alert, void *user)
{
	struct trace_follow *follow = user;
	struct netobs_trace_target target = {
		.sz = sizeof(target),
		.client_port = alert->client_port,
		.server_port = alert->server_port,
		.duration_ms = follow->duration_ms,
		.alert_ns = alert->record.time_ns,
		.alert = alert->name,
	};

	memcpy(target.client, alert->client, sizeof(target.client));
	memcpy(target.server, alert->server, sizeof(target.server));
	follow->alerts++;
	follow->armed += alert->protocol == IPPROTO_TCP &&
			 !netobs_trace_arm(follow->trace, &target);
	follow->on_alert(alert, follow->user);
}

static void follow_log(int level, const char *message, void *user)
{
	const struct trace_follow *follow = user;

	follow->on_log(level, message, follow->user);
}

int trace_follow_open(struct trace_follow *follow,
		      const char *const *interfaces, const char *filter)
{
	NETOBS_OPTS(netobs_opts, opts, .interfaces = interfaces,
		    .filter = filter, .rtt = 1, .on_alert = follow_alert,
		    .on_log = follow_log, .user = follow);
	int err;

	if (!follow->rules.n)
		return 0;
	if (alert_rules_need_drops(&follow->rules))
		opts.flags |= NETOBS_DROPS;
	err = netobs_new(&opts, &follow->ctx);
	if (!err)
		err = netobs_alerts_set(follow->ctx, follow->rules.list,
					follow->rules.n);
	return err;
}

int trace_follow_start(struct trace_follow *follow)
{
	return follow->ctx ? netobs_start(follow->ctx) : 0;
}

int trace_follow_fd(const struct trace_follow *follow)
{
	return follow->ctx ? netobs_fd(follow->ctx) : -1;
}

int trace_follow_dispatch(struct trace_follow *follow)
{
	int r = follow->ctx ? netobs_dispatch(follow->ctx) : 0;

	return r < 0 ? r : 0;
}

void trace_follow_close(struct trace_follow *follow)
{
	netobs_free(follow->ctx);
	follow->ctx = NULL;
	alert_rules_clear(&follow->rules);
}
