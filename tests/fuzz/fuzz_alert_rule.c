// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Rules of alerts of any bytes: one that is right is within its bounds, and one that is wrong is
 * so at a place in it.
 */
#include "lib_fuzz.h"
#include "alerts/alerts.h"

static void check_spec(const char *text, const struct alert_spec *spec)
{
	const struct alert_rule rule = alert_rule_compile(spec);

	check(spec->metric < ALERT_RULE_METRICS);
	check(spec->needed >= 1 && spec->needed <= spec->among);
	check(spec->among <= ALERT_SAMPLES_MAX);
	check(spec->hold_ns <= ALERT_HOLD_MAX_S * NSEC_PER_SEC);
	check(!spec->limit || rule.period_ns);
	check(rule.burst_ns < (uint64_t)3600 * NSEC_PER_SEC);
	check(!spec->hold_ns || rule.hold);
	if (spec->filter)
		check(spec->filter > text && *spec->filter &&
		      spec->filter < text + strlen(text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), why[96];
	struct alert_spec spec = { 0 };
	unsigned int column;

	if (alert_rule_parse(text, &spec, why, sizeof(why)) == 0) {
		check_spec(text, &spec);
	} else {
		check(sscanf(why, "column %u: ", &column) == 1);
		check(column >= 1 && column <= strlen(text) + 1);
	}
	free(text);
	return 0;
}
