/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "record_index.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

enum { MEMBERS_MAX = 1024 };

static const char *const process_keys[] = {
#define FIELD(...)
#define POINT_FIELD(...)
#define PROCESS_FIELD(member, type, key, ...) key,
#include "catalogue/fields.def"
};

/* Members of the process in @record, with @from before their names there, and @to in @buf. */
static size_t copy_members(struct json_value record, const char *from,
			   const char *to, char buf[MEMBERS_MAX])
{
	size_t len = 0;

	for (size_t i = 0; i < ARRAY_SIZE(process_keys); i++) {
		char key[32];
		struct json_value value;
		int n;

		snprintf(key, sizeof(key), "%s%s", from, process_keys[i]);
		value = json_get(record, key);
		if (!value.at)
			continue;
		n = snprintf(buf + len, MEMBERS_MAX - len, ",\"%s%s\":%.*s", to,
			     process_keys[i], (int)json_length(value), value.at);
		if (n < 0 || (size_t)n >= MEMBERS_MAX - len)
			break;
		len += (size_t)n;
	}
	buf[len] = '\0';
	return len;
}

int end_processes_find(struct end_processes *processes,
		       struct json_value record, const char *prefix,
		       uint64_t agent, const struct end_process **ret_process)
{
	char as_src[MEMBERS_MAX], as_dst[MEMBERS_MAX], key[16];
	struct end_process **bucket, *process;
	uint64_t pid;

	snprintf(key, sizeof(key), "%sPid", prefix);
	pid = json_number(json_get(record, key));
	if (!pid || !copy_members(record, prefix, "Src", as_src))
		return 0;
	bucket = &processes->buckets[pid % END_PROCESS_BUCKETS];
	for (process = *bucket; process; process = process->next)
		if (process->agent == agent &&
		    !strcmp(process->members[0], as_src)) {
			*ret_process = process;
			return 0;
		}
	copy_members(record, prefix, "Dst", as_dst);
	process = calloc(1, sizeof(*process));
	if (!process)
		return -ENOMEM;
	process->next = *bucket;
	*bucket = process;
	process->pid = pid;
	process->agent = agent;
	process->members[0] = strdup(as_src);
	process->members[1] = strdup(as_dst);
	if (!process->members[0] || !process->members[1])
		return -ENOMEM;
	*ret_process = process;
	return 0;
}

bool end_process_is_same(const struct end_process *a, const struct end_process *b)
{
	return a->pid == b->pid && a->agent == b->agent;
}

void end_processes_done(struct end_processes *processes)
{
	for (size_t i = 0; i < END_PROCESS_BUCKETS; i++)
		while (processes->buckets[i]) {
			struct end_process *process = processes->buckets[i];

			processes->buckets[i] = process->next;
			free(process->members[0]);
			free(process->members[1]);
			free(process);
		}
}
