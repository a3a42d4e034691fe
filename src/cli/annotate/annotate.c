/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "annotate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <netobs/annotate.h>

#include "record_input.h"
#include "cli/client/client.h"

struct annotation {
	const struct map_options *options;
	struct netobs_annotator *annotator;
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
			void *user)
{
	struct annotation *all = user;

	(void)input;
	return check_memory(netobs_annotator_add(all->annotator, text));
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
		r = check_memory(netobs_annotator_add(all->annotator,
						      list.rows[i].line));
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

/* Write the record as it came, with the known members before its last brace. */
static void annotate_record(struct annotation *all, const struct record_line *line)
{
	char members[NETOBS_ANNOTATION_MAX];
	const char *end = strrchr(line->text, '}');
	const int r = netobs_annotator_find(all->annotator, line->text, members,
					    sizeof(members));

	all->annotated += r > 0;
	all->ambiguous += r == -ENOTUNIQ;
	all->unknown += r == -EINVAL;
	fwrite(line->text, 1, (size_t)(end - line->text), stdout);
	if (r > 0)
		fputs(members, stdout);
	fputs(end, stdout);
}

static void pass_on(struct annotation *all, const struct record_line *line)
{
	all->records += line->kind != LINE_BLANK;
	all->unknown += line->kind == LINE_DAMAGED;
	if (line->kind == LINE_RECORD)
		annotate_record(all, line);
	else
		fwrite(line->text, 1, line->len, stdout);
	if (line->has_end)
		putchar('\n');
}

/* Flush the output while waiting for input: its reader may wait for it. */
static void annotate_file(struct annotation *all, const char *path)
{
	struct record_input input;
	struct record_line line;
	int r = record_input_open(&input, path);

	input.flushed = stdout;
	while (!r && !ferror(stdout) &&
	       (r = record_input_next(&input, &line)) > 0) {
		pass_on(all, &line);
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
	struct annotation all = { .options = options };
	int r = check_memory(netobs_annotator_new(&all.annotator)) ?:
			load_sources(&all);

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
	netobs_annotator_free(all.annotator);
	return r || all.reader.is_failed ? EXIT_FAILED : EXIT_FINE;
}
