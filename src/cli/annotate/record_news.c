/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "record_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/util.h"
#include "flow_face.h"

static uint64_t read_id(struct json_value record)
{
	char text[24];

	json_get_text(record, "ConversationId", text, sizeof(text));
	return strtoull(text, NULL, 16);
}

/* @return 0: it is not known */
static uint64_t read_agent(struct json_value record, const uint32_t *secret)
{
	const struct json_value agent = json_get(record, "AgentIP");
	char text[NEWS_SECRET_WORDS * sizeof(*secret)] = "";

	json_text(agent, text, sizeof(text));
	return agent.at ? hash_bytes(text, sizeof(text), secret) : 0;
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
	const struct flow_face *last = &news->faces[news->n_faces - 1];

	if (flow_face_read_other(record, prefix, last,
				 &news->faces[news->n_faces]))
		news->n_faces++;
}

static int read_flow(struct end_processes *processes, struct json_value record,
		     struct record_news *news)
{
	const struct flow_face face = news->faces[0];
	int err;

	if (flow_face_read_other(record, "Orig", &face, &news->faces[0]))
		news->faces[news->n_faces++] = face;
	add_face(news, record, "Xlat");
	news->vni = read_optional(record, "Vni");
	err = end_processes_find(processes, record, "Src", news->agent,
				 &news->ends[0]);
	if (err)
		return err;
	return end_processes_find(processes, record, "Dst", news->agent,
				  &news->ends[1]);
}

static int read_session(struct end_processes *processes,
			struct json_value record, struct record_news *news)
{
	return end_processes_find(processes, record, "", news->agent,
				  &news->ends[0]);
}

/* A mapping without a beginning began when it was first seen, at the latest. */
static int read_mapping(struct end_processes *processes,
			struct json_value record, struct record_news *news)
{
	const int64_t asked_ms = flow_time_ms(json_get(record, "TimeMs"));
	const int64_t ended_ms = flow_time_ms(json_get(record, "EndedMs"));
	const struct json_value last = json_get(record, "TimeFlowEndMs");
	char state[16], event[16];

	(void)processes;
	json_get_text(record, "State", state, sizeof(state));
	json_get_text(record, "Event", event, sizeof(event));
	news->is_open = !strcmp(event, "begin");
	news->is_end = !strcmp(event, "end");
	if (!strcmp(state, "active"))
		news->span.end_ms = asked_ms;
	else if (!last.at && ended_ms)
		news->span.end_ms = ended_ms;
	add_face(news, record, "Xlat");
	return 0;
}

static const struct {
	const char *type;
	int (*read)(struct end_processes *processes, struct json_value record,
		    struct record_news *news);
} types[] = {
	{ "", read_flow }, /* agents that send one type only */
	{ "flow", read_flow },
	{ "mapping", read_mapping },
	{ "session", read_session },
};

int record_news_read(struct json_value record, struct end_processes *processes,
		     const uint32_t *secret, struct record_news *ret_news)
{
	struct record_news *news = ret_news;
	char type[16];
	int r = -ENOENT;

	*news = (struct record_news){ .n_faces = 1 };
	json_get_text(record, "type", type, sizeof(type));
	if (!layout_read_netobs(record, &news->faces[0], &news->span) ||
	    !news->span.end_ms)
		return 0;
	news->id = read_id(record);
	news->agent = read_agent(record, secret);
	news->zone = read_optional(record, "ZoneId");
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (!strcmp(type, types[i].type))
			r = types[i].read(processes, record, news);
	return r == -ENOENT ? 0 : r ?: 1;
}
