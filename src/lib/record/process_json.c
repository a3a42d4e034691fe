// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "process_json.h"

#include "base/json.h"
#include "catalogue/fields.h"

#define add_number json_key_u64
#define add_count json_key_u64

static void add_text(struct json *json, const char *key, const char *text)
{
	if (!*text)
		return;
	json_key(json, key);
	json_string(json, text);
}

#define FIELD(...)
#define POINT_FIELD(...)
#define PROCESS_FIELD(member, type, key, ...) \
	add_##type(json, "Src" key, process->member);

static void add_process_source(struct json *json,
			       const struct netobs_process *process)
{
#include "catalogue/fields.def"
}

#define FIELD(...)
#define POINT_FIELD(...)
#define PROCESS_FIELD(member, type, key, ...) \
	add_##type(json, "Dst" key, process->member);

static void add_destination(struct json *json,
			    const struct netobs_process *process)
{
#include "catalogue/fields.def"
}

void process_json(struct json *json, const struct netobs_process *src,
		  const struct netobs_process *dst)
{
	if (src)
		add_process_source(json, src);
	if (dst)
		add_destination(json, dst);
}
