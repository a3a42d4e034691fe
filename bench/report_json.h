/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What the JSON of all benchmarks has in common. */
#ifndef NETOBS_BENCH_REPORT_JSON_H
#define NETOBS_BENCH_REPORT_JSON_H

#include "host.h"
#include "base/json.h"

#include <stdint.h>
#include <stdio.h>

/* The object of all, and its members that say where and how it was measured. */
void report_json_begin(struct json *json, char *text, size_t size,
		       const struct machine *host, uint32_t rounds);

/* A member of nanoseconds, to a hundredth. */
void report_json_ns(struct json *json, const char *key, double ns);

/* Ends the object, and prints it. 0 or -errno. */
int report_json_print(struct json *json, FILE *file);

#endif
