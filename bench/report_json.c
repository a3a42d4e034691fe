// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "report_json.h"

#include <errno.h>
#include <math.h>

void report_json_begin(struct json *json, char *text, size_t size,
		       const struct machine *host, uint32_t rounds)
{
	json_begin(json, text, size);
	json_open(json, '{');
	json_key(json, "kernel");
	json_string(json, host->kernel.release);
	json_key(json, "cpu");
	json_string(json, host->cpu);
	json_key_u64(json, "rounds", rounds);
}

void report_json_ns(struct json *json, const char *key, double ns)
{
	json_key(json, key);
	json_decimal(json, lround(ns * 100), 2);
}

int report_json_print(struct json *json, FILE *file)
{
	int len;

	json_close(json, '}');
	len = json_end(json);
	if (len < 0)
		return len;
	return fprintf(file, "%s\n", json->start) < 0 ? -errno : 0;
}
