/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "record_index.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

/* ---- Processes ----------------------------------------------------------------------- */

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

struct process_item {
	uint64_t pid, agent, members; /* the key; a hash of the members */
	struct end_process *process;
};

static struct end_process *make_process(uint64_t pid, uint64_t agent,
					const char *as_src, const char *as_dst)
{
	struct end_process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->pid = pid;
	process->agent = agent;
	process->members[0] = strdup(as_src);
	process->members[1] = strdup(as_dst);
	return process;
}

/*
 * Find the process that a record names at @end, or add it. @prefix: before the names of its members in
 * the record: "Src", "Dst", "". @return 0; -ENOMEM
 */
static int read_process(struct slots *processes, struct json_value record,
			const char *prefix, int end, struct record_facts *facts)
{
	char as_src[MEMBERS_MAX], as_dst[MEMBERS_MAX], name[16];
	struct process_item key = { .agent = facts->agent }, *item;
	uint32_t index;

	snprintf(name, sizeof(name), "%sPid", prefix);
	key.pid = json_number(json_get(record, name));
	if (!key.pid || !copy_members(record, prefix, "Src", as_src))
		return 0;
	key.members = slots_hash(processes, as_src, strlen(as_src));
	index = slots_get(processes, &key,
			  offsetof(struct process_item, process), sizeof(key));
	if (index == SLOT_NONE)
		return -ENOMEM;
	item = slots_at(processes, index);
	if (!item->process) {
		copy_members(record, prefix, "Dst", as_dst);
		item->process = make_process(key.pid, key.agent, as_src, as_dst);
	}
	facts->ends[end] = item->process;
	return item->process && item->process->members[0] &&
			       item->process->members[1] ?
		       0 :
		       -ENOMEM;
}

bool end_process_is_same(const struct end_process *a, const struct end_process *b)
{
	return a->pid == b->pid && a->agent == b->agent;
}

void end_processes_done(struct slots *processes)
{
	for (uint32_t i = 0; i < processes->n; i++) {
		const struct process_item *item = slots_at(processes, i);

		if (item->process) {
			free(item->process->members[0]);
			free(item->process->members[1]);
		}
		free(item->process);
	}
	slots_free(processes);
}

/* ---- Records ------------------------------------------------------------------------- */

static uint64_t read_id(struct json_value record)
{
	char text[24];

	json_get_text(record, "ConversationId", text, sizeof(text));
	return strtoull(text, NULL, 16);
}

/* @return 0: it is not known */
static uint64_t read_agent(struct json_value record, struct slots *processes)
{
	const struct json_value agent = json_get(record, "AgentIP");
	char text[40];

	json_text(agent, text, sizeof(text));
	return agent.at ? slots_hash(processes, text, strlen(text)) : 0;
}

/* @return the number plus 1; 0: the record has none */
static uint64_t read_optional(struct json_value record, const char *key)
{
	const struct json_value value = json_get(record, key);

	return value.at ? json_number(value) + 1 : 0;
}

static void add_face(struct record_news *news, struct json_value record,
		     const char *prefix)
{
	struct flow_face *next = &news->faces[news->facts.n_faces];

	if (flow_face_read_other(record, prefix, next - 1, next))
		news->facts.n_faces++;
}

static int read_flow(struct slots *processes, struct json_value record,
		     struct record_news *news)
{
	const struct flow_face face = news->faces[0];

	if (flow_face_read_other(record, "Orig", &face, &news->faces[0]))
		news->faces[news->facts.n_faces++] = face;
	add_face(news, record, "Xlat");
	news->facts.vni = read_optional(record, "Vni");
	return read_process(processes, record, "Src", 0, &news->facts) ?:
		       read_process(processes, record, "Dst", 1, &news->facts);
}

static int read_session(struct slots *processes, struct json_value record,
			struct record_news *news)
{
	return read_process(processes, record, "", 0, &news->facts);
}

/* A mapping without a beginning began when it was first seen, at the latest. */
static int read_mapping(struct slots *processes, struct json_value record,
			struct record_news *news)
{
	const int64_t asked_ms = flow_time_ms(json_get(record, "TimeMs"));
	const int64_t ended_ms = flow_time_ms(json_get(record, "EndedMs"));
	const struct json_value last = json_get(record, "TimeFlowEndMs");
	char state[16], event[16];

	(void)processes;
	json_get_text(record, "State", state, sizeof(state));
	json_get_text(record, "Event", event, sizeof(event));
	news->facts.is_open = !strcmp(event, "begin");
	news->is_end = !strcmp(event, "end");
	if (!strcmp(state, "active"))
		news->facts.span.end_ms = asked_ms;
	else if (!last.at && ended_ms)
		news->facts.span.end_ms = ended_ms;
	add_face(news, record, "Xlat");
	return 0;
}

static const struct {
	const char *type;
	int (*read)(struct slots *processes, struct json_value record,
		    struct record_news *news);
} types[] = {
	{ "", read_flow }, /* agents that send one type only */
	{ "flow", read_flow },
	{ "mapping", read_mapping },
	{ "session", read_session },
};

int record_news_read(struct json_value record, struct slots *processes,
		     struct record_news *ret_news)
{
	struct record_news *news = ret_news;
	char type[16];
	int r = -ENOENT;

	*news = (struct record_news){ .facts.n_faces = 1 };
	json_get_text(record, "type", type, sizeof(type));
	if (!layout_read_netobs(record, &news->faces[0], &news->facts.span) ||
	    !news->facts.span.end_ms)
		return 0;
	news->facts.id = read_id(record);
	news->facts.agent = read_agent(record, processes);
	news->facts.zone = read_optional(record, "ZoneId");
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (!strcmp(type, types[i].type))
			r = types[i].read(processes, record, news);
	return r == -ENOENT ? 0 : r ?: 1;
}
