/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "annotate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <netobs/flow.h>

#include "base/text.h"
#include "base/util.h"
#include "reports/flow_face.h"
#include "reports/record_index.h"
#include "record_input.h"
#include "cli/client/control_request.h"
#include "cli/client/mapping_list.h"

struct annotation {
	const struct map_options *options;
	struct record_index *index;
	struct record_reader reader;
	uint64_t records, annotated, ambiguous, unknown;
};

/* ---- Sources -------------------------------------------------------------------------- */

/* @return 0; -ENOMEM, which was reported */
static int check_memory(int err)
{
	if (err)
		record_reader_complain("%s", strerror(-err));
	return err;
}

static int index_record(const struct record_input *input, const char *text,
			struct json_value record, void *user)
{
	struct annotation *all = user;

	(void)input;
	(void)text;
	return check_memory(record_index_add(all->index, record));
}

static int load_mappings(struct annotation *all)
{
	const struct map_options *options = all->options;
	struct mapping_list list = { 0 };
	bool has_service = options->socket || control_is_there(NULL);
	int r = options->netns ? mapping_list_kernel(&list, options->netns) :
				 mapping_list_ask(&list, options->socket, NULL,
						  &has_service);

	if (!r && list.is_out_of_memory)
		r = check_memory(-ENOMEM);
	for (uint32_t i = 0; !r && i < list.n; i++)
		r = check_memory(record_index_add(
			all->index, json_parse(list.rows[i].line)));
	mapping_list_clear(&list);
	return r;
}

static int load_sources(struct annotation *all)
{
	const struct map_options *options = all->options;
	int r = 0;

	for (size_t i = 0; !r && i < options->records.n; i++)
		r = record_reader_read(&all->reader, options->records.items[i],
				       index_record, all);
	if (!r && (!options->records.n || options->socket || options->netns))
		r = load_mappings(all);
	return r;
}

/* ---- Adding --------------------------------------------------------------------------- */

static bool has_member(struct json_value record, const char *prefix,
		       const char *name)
{
	char key[32];

	snprintf(key, sizeof(key), "%s%s", prefix, name);
	return json_get(record, key).at;
}

static void print_address(const char *prefix, const char *name,
			  const uint8_t ip[16])
{
	char text[NETOBS_ADDR_STR_MAX + TEXT_SPARE];

	*text_ip(text, ip) = '\0';
	printf(",\"%s%s\":\"%s\"", prefix, name, text);
}

/* @return whether it was added */
static bool add_face(struct json_value record, const char *prefix,
		     bool is_known, const struct flow_face *face)
{
	if (!is_known || has_member(record, prefix, "SrcAddr"))
		return false;
	print_address(prefix, "SrcAddr", face->src);
	print_address(prefix, "DstAddr", face->dst);
	if (face->src_port || face->dst_port)
		printf(",\"%sSrcPort\":%u,\"%sDstPort\":%u", prefix,
		       face->src_port, prefix, face->dst_port);
	return true;
}

static bool add_numbers(struct json_value record,
			const struct conversation_facts *facts)
{
	const bool has_zone = facts->zone && !has_member(record, "", "ZoneId") &&
			      (facts->has_before || facts->has_after);
	const bool has_id = facts->id &&
			    !has_member(record, "", "ConversationId");

	if (has_zone)
		printf(",\"ZoneId\":%" PRIu64, facts->zone - 1);
	if (has_id)
		printf(",\"ConversationId\":\"%016" PRIx64 "\"", facts->id);
	return has_zone || has_id;
}

static bool add_process(struct json_value record, int end,
			const struct conversation_facts *facts)
{
	const char *prefix = end ? "Dst" : "Src";

	if (!facts->ends[end] || has_member(record, prefix, "Pid") ||
	    has_member(record, prefix, "Process"))
		return false;
	fputs(facts->ends[end]->members[end], stdout);
	return true;
}

/* Members of JSON, with a comma before each. @return whether there are any */
static bool add_members(struct json_value record,
			const struct conversation_facts *facts)
{
	bool is_added =
		add_face(record, "Orig", facts->has_before, &facts->before);

	is_added |= add_face(record, "Xlat", facts->has_after, &facts->after);
	is_added |= add_numbers(record, facts);
	is_added |= add_process(record, 0, facts);
	is_added |= add_process(record, 1, facts);
	return is_added;
}

/* Write the record as it came, with the known members before its last brace. */
static void annotate_record(struct annotation *all,
			    const struct record_piece *piece)
{
	struct conversation_facts facts = { 0 };
	enum record_answer answer = RECORD_NONE;
	struct flow_span span = { 0 };
	struct flow_face face;

	if (!layout_read(piece->record, &face, &span))
		all->unknown++;
	else if (span.end_ms)
		answer = record_index_find(all->index, &face, span, &facts);
	fwrite(piece->text, 1, piece->len - 1, stdout);
	if (answer == RECORD_FOUND && add_members(piece->record, &facts))
		all->annotated++;
	else if (answer == RECORD_AMBIGUOUS || facts.is_contradicted[0] ||
		 facts.is_contradicted[1])
		all->ambiguous++;
	putchar('}');
}

static void pass_on(struct annotation *all, const struct record_piece *piece)
{
	all->records += piece->kind != PIECE_BETWEEN;
	all->unknown += piece->kind == PIECE_DAMAGED;
	if (piece->kind == PIECE_RECORD)
		annotate_record(all, piece);
	else
		fwrite(piece->text, 1, piece->len, stdout);
}

/* Flush the output while waiting for input: its reader may wait for it. */
static void annotate_file(struct annotation *all, const char *path)
{
	struct record_input input;
	struct record_piece piece;
	int r = record_input_open(&input, path);

	input.flushed = stdout;
	while (!r && !ferror(stdout) &&
	       (r = record_input_next(&input, &piece)) > 0) {
		pass_on(all, &piece);
		r = 0;
	}
	if (r < 0)
		record_reader_fail(&all->reader, path, r);
	record_input_close(&input);
}

static void print_summary(const struct annotation *all)
{
	fprintf(stderr,
		"netobsctl map: %" PRIu64 " records: %" PRIu64
		" annotated, %" PRIu64 " of which nothing is known, %" PRIu64
		" ambiguous\n",
		all->records, all->annotated,
		all->records - all->annotated - all->ambiguous, all->ambiguous);
	if (all->unknown)
		fprintf(stderr,
			"netobsctl map: %" PRIu64 " of %" PRIu64
			" lines have no addresses in a known layout\n",
			all->unknown, all->records);
}

int annotate_files(const struct map_options *options)
{
	struct annotation all = { .options = options,
				  .index = record_index_new() };
	int r = all.index ? load_sources(&all) : check_memory(-ENOMEM);

	if (!r) {
		for (size_t i = 1; i < options->operands.n; i++)
			annotate_file(&all, options->operands.items[i]);
		if (options->operands.n <= 1)
			annotate_file(&all, "-");
		if (fflush(stdout) || ferror(stdout)) {
			record_reader_complain("cannot write: %s",
					       strerror(errno));
			all.reader.is_failed = true;
		}
		print_summary(&all);
	}
	record_index_free(all.index);
	return r || all.reader.is_failed ? EXIT_FAILED : EXIT_FINE;
}
