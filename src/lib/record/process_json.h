/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The processes at the ends of a flow or a connection, as members of its object. */
#ifndef NETOBS_RECORD_PROCESS_JSON_H
#define NETOBS_RECORD_PROCESS_JSON_H

struct json;
struct netobs_process;

/* @src, @dst: NULL: not known */
void process_json(struct json *json, const struct netobs_process *src,
		  const struct netobs_process *dst);

#endif
