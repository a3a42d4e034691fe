// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Any bytes, whose records are those of netobs and those to annotate at once: the lines are all of the
 * bytes, times are in order, what is found is of the record's protocol, and what is added to it is JSON.
 */
#include "lib_fuzz.h"
#include "reports/record_index.h"
#include "cli/annotate/record_input.h"

#include <sys/mman.h>

enum { RECORDS_MAX = 64, ADDED_MAX = 4096 };

static void check_process(const struct end_process *process, int end)
{
	char text[ADDED_MAX];

	if (!process)
		return;
	snprintf(text, sizeof(text), "{\"a\":0%s}", process->members[end]);
	check(process->pid && json_parse(text).at);
}

static void check_record(const struct netobs_annotator *index,
			 struct json_value record)
{
	struct conversation_facts facts;
	struct flow_span span = { 0 };
	struct flow_face face;

	if (!layout_read(record, &face, &span))
		return;
	check(span.start_ms <= span.end_ms && span.start_ms >= 0);
	if (!span.end_ms ||
	    record_index_find(index, &face, span, &facts) != RECORD_FOUND)
		return;
	check(!facts.has_before || facts.before.proto == face.proto);
	check(!facts.has_after || facts.after.proto == face.proto);
	for (int end = 0; end < 2; end++)
		check_process(facts.ends[end], end);
}

/* @return copies of the first records */
static size_t read_records(const uint8_t *data, size_t size,
			   char *ret_texts[RECORDS_MAX])
{
	struct record_input input = { .fd = memfd_create("records", 0) };
	struct record_line line;
	size_t n = 0, len = 0;

	check(input.fd >= 0 && write(input.fd, data, size) == (ssize_t)size &&
	      !lseek(input.fd, 0, SEEK_SET));
	while (record_input_next(&input, &line) > 0) {
		check(line.len + line.has_end <= size - len &&
		      !memcmp(data + len, line.text, line.len));
		check(!line.has_end || data[len + line.len] == '\n');
		len += line.len + line.has_end;
		if (line.kind != LINE_RECORD)
			continue;
		check(strlen(line.text) == line.len);
		if (n < RECORDS_MAX)
			ret_texts[n++] = strdup(line.text);
	}
	check(len == size);
	record_input_close(&input);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct netobs_annotator *index;
	char *texts[RECORDS_MAX];
	size_t n = read_records(data, size, texts);

	check(!netobs_annotator_new(&index));
	for (size_t i = 0; i < n; i++)
		record_index_add(index, json_parse(texts[i]));
	for (size_t i = 0; i < n; i++)
		check_record(index, json_parse(texts[i]));
	netobs_annotator_free(index);
	for (size_t i = 0; i < n; i++)
		free(texts[i]);
	return 0;
}
