// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Records of several types through a sink and its spool. */
#include "lib_lines.h"
#include "lib_test.h"

#include "record/any.h"
#include "sink/spool/spool.h"

static int get_stats(struct netobs_stats *ret_stats, void *user)
{
	const uint64_t *seen = user;

	ret_stats->seen.packets = *seen;
	return 0;
}

/* @spec: with one %s, for the path. */
static void open_with_stats(struct lines_fixture *f, const char *format,
			    uint64_t *seen)
{
	const NETOBS_OPTS(netobs_sink_opts, opts, .user = seen,
			  .get_stats = get_stats);
	char spec[2 * PATH_MAX];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(spec, sizeof(spec), format, f->path);
#pragma GCC diagnostic pop
	assert_int_equal(netobs_sink_open(spec, &opts, &f->sink), 0);
}

/* 'f' and 's' for a flow and statistics, in the order of the file's lines. */
static void assert_file_has_types(const struct lines_fixture *f,
				  const char *expected)
{
	char *text = read_text(f->path), *rest = text, *line;
	char types[64] = "";
	size_t n = 0;

	while ((line = strsep(&rest, "\n")) && *line)
		types[n++] = strstr(line, "{\"type\":\"stats\",") == line ? 's' :
			     strstr(line, "{\"TimeFlowStartMs\":") == line ? 'f' :
									     '?';
	assert_string_equal(types, expected);
	free(text);
}

static struct netobs_stats_record make_stats(uint64_t seen)
{
	return (struct netobs_stats_record){
		.record = { .sz = sizeof(struct netobs_stats_record),
			    .type = NETOBS_RECORD_STATS,
			    .time_ns = 1700000000123456789 },
		.stats = { .sz = sizeof(struct netobs_stats),
			   .seen = { seen, 100 * seen } },
	};
}

static void write_stats(struct lines_fixture *f, uint64_t seen)
{
	const struct netobs_stats_record stats = make_stats(seen);

	assert_int_equal(netobs_sink_write(f->sink, &stats.record), 0);
}

/* ---- The option ------------------------------------------------------------------ */

LINES_TEST(statistics_follow_each_batch_once_they_have_changed)
{
	uint64_t seen = 0;

	open_with_stats(f, "json:%s?records=flow,stats", &seen);
	write_flows(f, 0, 2);
	seen = 3;
	flush_all(f);
	assert_file_has_types(f, "ffs");
	flush_all(f);
	assert_file_has_types(f, "ffs");
	seen = 4;
	write_flows(f, 2, 3);
	flush_all(f);
	assert_int_equal(netobs_sink_wait(f->sink, 1000), 0);
	assert_file_has_types(f, "ffsfs");
	assert_int_equal(sink_stats_of(f).taken.records, 5);
	assert_int_equal(sink_stats_of(f).taken.packets, 1 + 2 + 3);
	assert_sink_identity(f);
}

/* Another run may send the record, with a sampling of its own. */
LINES_TEST(records_get_the_sampling_of_the_sink_if_they_have_none)
{
	const NETOBS_OPTS(netobs_sink_opts, opts, .sampling = 50);
	struct netobs_flow flow = make_numbered_flow(1);
	char spec[2 * PATH_MAX], *text;

	snprintf(spec, sizeof(spec), "json:%s", f->path);
	assert_int_equal(netobs_sink_open(spec, &opts, &f->sink), 0);
	assert_int_equal(netobs_sink_write(f->sink, &flow.record), 0);
	flow.has |= NETOBS_HAS_SAMPLING;
	flow.sampling = 7;
	assert_int_equal(netobs_sink_write(f->sink, &flow.record), 0);
	flush_all(f);
	text = read_text(f->path);
	assert_non_null(strstr(text, "\"Sampling\":50"));
	assert_non_null(strstr(text, "\"Sampling\":7"));
	free(text);
}

LINES_TEST(flows_are_the_default)
{
	uint64_t seen = 1;

	open_with_stats(f, "json:%s", &seen);
	write_flows(f, 0, 1);
	write_stats(f, 9);
	flush_all(f);
	assert_file_has_types(f, "f");
	assert_int_equal(sink_stats_of(f).taken.records, 1);
}

LINES_TEST(statistics_can_be_alone)
{
	open_sink(f, "json:%s?records=stats");
	write_flows(f, 0, 3);
	write_stats(f, 9);
	flush_all(f);
	assert_file_has_types(f, "s");
}

LINES_TEST(types_that_cannot_be_are_refused_at_the_start)
{
	static const struct {
		const char *spec, *words;
	} cases[] = {
		{ "null?records=flow,flaw", "'flaw' is not flow or stats" },
		{ "null?records=", "'' is not flow or stats" },
		{ "null?records=flow,", "'' is not flow or stats" },
		{ "ipfix:udp://127.0.0.1?records=flow,stats",
		  "ipfix cannot represent stats" },
		{ "grpc://127.0.0.1:1?records=stats",
		  "grpc cannot represent stats" },
		{ "kafka://127.0.0.1/flows?records=stats",
		  "protobuf cannot represent stats" },
		{ "kafka://127.0.0.1/flows?records=flow,session",
		  "flow needs a topic and a sink of its own" },
		{ "grpc://127.0.0.1:1?records=alert,flow",
		  "give flow a sink of its own" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(try_open_sink(f, cases[i].spec), -EINVAL);
		if (!strstr(f->logged, cases[i].words))
			fail_msg("'%s' is not in: %s", cases[i].words, f->logged);
	}
	assert_int_equal(try_open_sink(f, "null?records=stats,flow"), 0);
}

/* ---- Callers of other versions ----------------------------------------------------- */

LINES_TEST(statistics_of_other_sizes_are_taken)
{
	struct {
		struct netobs_stats_record stats;
		uint64_t more[2];
	} later = { make_stats(5), { 1, 2 } };
	const size_t sz = offsetof(struct netobs_stats_record, stats.observed);
	struct netobs_record *earlier = malloc(sz);
	char *text;

	open_sink(f, "json:%s?records=flow,stats");
	later.stats.record.sz = sizeof(later);
	assert_int_equal(netobs_sink_write(f->sink, &later.stats.record), 0);
	memcpy(earlier, &later, sz);
	earlier->sz = sz;
	assert_int_equal(netobs_sink_write(f->sink, earlier), 0);
	earlier->sz = sizeof(*earlier) - 1;
	assert_int_equal(netobs_sink_write(f->sink, earlier), -EINVAL);
	earlier->sz = sz;
	earlier->type = NETOBS_RECORD_TYPES;
	assert_int_equal(netobs_sink_write(f->sink, earlier), -EINVAL);
	free(earlier);
	flush_all(f);
	text = read_text(f->path);
	assert_non_null(strstr(text, "{\"type\":\"stats\",\"TimeMs\":1700000000123,"
				     "\"seen\":{\"packets\":5,\"bytes\":500,"));
	free(text);
	assert_file_has_types(f, "ss");
}

/* ---- Spools -------------------------------------------------------------------------- */

LINES_TEST(all_types_wait_on_disk_and_in_memory_in_their_order)
{
	for (int i = 0; i < 2; i++) {
		open_sink(f, i ? "json:unix:%1$s.sock?records=flow,stats&"
				 "spool=disk:%1$s.spool" :
				 "json:unix:%s.sock?records=flow,stats");
		write_flows(f, 0, 2);
		write_stats(f, 1);
		write_flows(f, 2, 3);
		flush_all(f);
		assert_int_equal(sink_stats_of(f).pending.records, 4);
		assert_sink_identity(f);
		netobs_sink_close(f->sink);
	}
	open_sink(f, "json:%1$s?records=flow,stats&spool=disk:%1$s.spool");
	flush_all(f);
	assert_file_has_types(f, "ffsf");
	assert_int_equal(sink_stats_of(f).delivered.records, 4);
	assert_int_equal(sink_stats_of(f).delivered.packets, 1 + 2 + 3);
	assert_sink_identity(f);
}

/* Between two flows, a record of a type that only a later version has. */
static void write_spool_of_a_later_version(const char *dir)
{
	const struct log log = { 0 };
	const struct spool_options options = { .dir = dir,
					       .max_bytes = 1 << 20,
					       .log = &log };
	struct spool spool;

	assert_int_equal(spool_open(&spool, &options), 0);
	for (uint64_t i = 0; i < 3; i++) {
		struct netobs_flow flow = make_numbered_flow(i);
		struct netobs_stats_record later = make_stats(i);
		const struct netobs_record *record = i == 1 ? &later.record :
							      &flow.record;
		const struct position own = { 1, flow.packets, flow.bytes };
		void *place = spool_reserve(&spool, pack_room(record), own, 0);
		size_t len;

		assert_non_null(place);
		len = pack_record(record, place);
		if (i == 1)
			((struct netobs_record *)packed_record(place))->type =
				NETOBS_RECORD_TYPES + 7;
		spool_commit(&spool, len);
	}
	spool_close(&spool);
}

LINES_TEST(later_types_are_skipped_and_counted)
{
	struct netobs_sink_stats stats;
	char dir[PATH_MAX + 8];

	snprintf(dir, sizeof(dir), "%s.spool", f->path);
	write_spool_of_a_later_version(dir);
	open_sink(f, "json:%1$s?records=flow,stats&spool=disk:%1$s.spool");
	for (int i = 0; i < 3; i++)
		flush_all(f);
	assert_file_has_types(f, "ff");
	stats = sink_stats_of(f);
	assert_int_equal(stats.delivered.records, 2);
	assert_int_equal(stats.dropped[NETOBS_SINK_UNSUPPORTED].records, 1);
	assert_int_equal(stats.dropped[NETOBS_SINK_UNSUPPORTED].packets, 2);
	assert_int_equal(stats.dropped[NETOBS_SINK_DAMAGED].records, 0);
	assert_sink_identity(f);
}

/* The next process takes other types of records than the last one. */
LINES_TEST(types_that_are_left_out_are_skipped_and_counted)
{
	open_sink(f,
		  "json:unix:%1$s.sock?records=flow,stats&spool=disk:%1$s.spool");
	write_stats(f, 1);
	write_flows(f, 0, 2);
	write_stats(f, 2);
	netobs_sink_close(f->sink);
	open_sink(f, "json:%1$s?spool=disk:%1$s.spool");
	for (int i = 0; i < 3; i++)
		flush_all(f);
	assert_file_has_types(f, "ff");
	assert_int_equal(
		sink_stats_of(f).dropped[NETOBS_SINK_UNSUPPORTED].records, 2);
	assert_sink_identity(f);
}
