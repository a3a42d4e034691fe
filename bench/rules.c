// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "rules.h"

#include "alerts/alert_set.h"

#include <errno.h>
#include <stdio.h>

/* All with thresholds of their own. */
static const char *const formats[] = {
	[RULES_KEPT] = "rtt > %u.5s",
	[RULES_HELD] = "rtt > %u0ns hold 24h limit none",
	[RULES_STORM] = "rtt > %u0ns hold 0s limit 10/s",
};

static void ignore_alert(void *ctx, const struct alert_event *event)
{
	(void)ctx;
	(void)event;
}

static int set_rules(struct alerts *alerts, const char *format)
{
	static const struct alert_count totals[ALERT_SLOTS];
	struct alert_source sources[RULES];
	char texts[RULES][64], error[ALERT_ERROR_MAX];
	struct alert_table table;
	struct alert_set *set;
	int err;

	for (unsigned int i = 0; i < RULES; i++) {
		snprintf(texts[i], sizeof(texts[i]), format, i + 1);
		sources[i] = (struct alert_source){ NULL, texts[i] };
	}
	err = alert_set_new(sources, RULES, &set, &error);
	if (err) {
		fprintf(stderr, "netobsctl bench: %s\n", error);
		return err;
	}
	alert_set_succeed(set, NULL, totals);
	alert_set_compile(set, 1, &table);
	alerts_set_table(alerts, &table);
	alert_set_free(set);
	return 0;
}

int rules_open(struct alerts *ret_alerts, struct store *store,
	       enum rules_kind kind, const struct log *log)
{
	int err = alerts_open(ret_alerts, store, ignore_alert, NULL, log);

	if (err || kind == RULES_NONE)
		return err;
	err = set_rules(ret_alerts, formats[kind]);
	if (err)
		alerts_close(ret_alerts);
	return err;
}
