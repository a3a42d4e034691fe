// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Lines of any bytes, which are the records of netobs and those to annotate at once: times are in order, what
 * is found is of the record's protocol, and what is added to it is JSON.
 */
#include "service/annotate/record_index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES_MAX = 64, ADDED_MAX = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_process(const struct end_process *process, int end)
{
	char text[ADDED_MAX];

	if (!process)
		return;
	snprintf(text, sizeof(text), "{\"a\":0%s}", process->members[end]);
	if (!process->pid || !json_parse(text).at)
		__builtin_trap();
}

static void check_record(const struct record_index *index,
			 struct json_value record)
{
	struct conversation_facts facts;
	struct flow_span span = { 0 };
	struct flow_face face;

	if (!flow_face_read(record, &face, &span))
		return;
	if (span.start_ms > span.end_ms || span.start_ms < 0)
		__builtin_trap();
	if (!span.end_ms ||
	    record_index_find(index, &face, span, 1000, &facts) != RECORD_FOUND)
		return;
	if ((facts.has_before && facts.before.proto != face.proto) ||
	    (facts.has_after && facts.after.proto != face.proto))
		__builtin_trap();
	for (int end = 0; end < 2; end++)
		check_process(facts.ends[end], end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct record_index *index = record_index_new();
	struct json_value records[LINES_MAX];
	char *text = malloc(size + 1), *rest = text;
	size_t n = 0;

	if (!text || !index)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	for (char *line; n < LINES_MAX && (line = strsep(&rest, "\n"));) {
		records[n] = json_parse(line);
		if (records[n].at && *records[n].at == '{')
			record_index_add(index, records[n++]);
	}
	for (size_t i = 0; i < n; i++)
		check_record(index, records[i]);
	record_index_free(index);
	free(text);
	return 0;
}
