// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib_journeys.h"

#include "cli/trace/trace_summary.h"

static void add(struct netobs_journeys *all, uint8_t direction, uint64_t tcp_ns,
		uint64_t reader_ns, uint64_t unknown_ns)
{
	struct netobs_journey journey = make_journey(tcp_ns, reader_ns);

	journey.direction = direction;
	journey.unknown_ns = unknown_ns;
	journey.end_ns += (int64_t)unknown_ns;
	assert_int_equal(netobs_journeys_add(all, &journey), 0);
}

static char *print(struct netobs_journeys *all, const char *title)
{
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	assert_non_null(file);
	trace_svg_print(file, all, title);
	assert_int_equal(fclose(file), 0);
	netobs_journeys_free(all);
	return text;
}

/* ---- What XML has to be -------------------------------------------------------------------- */

enum { DEPTH_MAX = 16, NAME_MAX_LEN = 16 };

static void check_reference(const char *at)
{
	static const char *const known[] = { "&lt;", "&gt;", "&amp;", "&quot;" };
	size_t i = 0;

	while (i < ARRAY_SIZE(known) &&
	       strncmp(at, known[i], strlen(known[i])) != 0)
		i++;
	assert_true(i < ARRAY_SIZE(known));
}

/* Each tag is closed, in order; attributes and text have no character of the markup. */
static void check_xml(const char *text)
{
	char open[DEPTH_MAX][NAME_MAX_LEN + 1];
	int depth = 0;

	for (const char *at = text; *at; at++) {
		const char *end;
		char name[NAME_MAX_LEN + 1] = { 0 };

		if (*at == '&')
			check_reference(at);
		assert_true((unsigned char)*at >= ' ' || *at == '\n');
		if (*at != '<')
			continue;
		end = strchr(at, '>');
		assert_non_null(end);
		assert_null(memchr(at + 1, '<', (size_t)(end - at - 1)));
		sscanf(at + 1, "%16[?/a-z]", name);
		if (*name == '/') {
			assert_true(depth > 0);
			assert_string_equal(name + 1, open[--depth]);
		} else if (end[-1] != '/' && end[-1] != '?') {
			assert_true(depth < DEPTH_MAX);
			strcpy(open[depth++], name);
		}
		at = end;
	}
	assert_int_equal(depth, 0);
}

/* ---- Cases --------------------------------------------------------------------------------- */

TEST(bars_have_shares_and_tooltips)
{
	struct netobs_journeys *all = make_sums();
	char *text;

	add(all, 0, 25000, 75000, 0);
	add(all, 1, 0, 0, 5000);
	text = print(all, "tcp port 80");
	check_xml(text);
	assert_non_null(strstr(text, "<title>tcp port 80</title>"));
	assert_non_null(strstr(text, "<title>tcp: 25.0 us, 25.0%</title>"
				     "<rect x=\"150.00\" y=\"52\" "
				     "width=\"210.00\""));
	assert_non_null(strstr(text, "<title>reader: 75.0 us, 75.0%</title>"
				     "<rect x=\"360.00\""));
	assert_non_null(strstr(text, "<title>unknown: 5.00 us, 100.0%</title>"));
	assert_non_null(strstr(text, ">p99  100 us</text>"));
	assert_non_null(strstr(text, "client &gt; server: 1 journeys"));
	free(text);
}

TEST(titles_are_any_text)
{
	struct netobs_journeys *all = make_sums();
	char title[1000], *text;

	add(all, 0, 1, 0, 0);
	memset(title, '<', sizeof(title) - 1);
	title[sizeof(title) - 1] = '\0';
	memcpy(title, "a&b\"'\033\xff\xc3\xa9", 9);
	text = print(all, title);
	check_xml(text);
	assert_non_null(strstr(text, "a&amp;b&quot;'"));
	free(text);
}

TEST(journeys_without_time_or_end_are_drawn)
{
	struct netobs_journeys *all = make_sums();
	struct netobs_journey journey = {
		.record = { .sz = sizeof(journey), .type = NETOBS_RECORD_JOURNEY },
		.end_ns = 500,
		.unknown_ns = 500
	};
	char *text;

	check_xml(text = print(all, ""));
	free(text);
	all = make_sums();
	add(all, 0, 0, 0, 0);
	netobs_journeys_add(all, &journey);
	journey.direction = 1;
	netobs_journeys_add(all, &journey);
	text = print(all, "");
	check_xml(text);
	assert_null(strstr(text, "nan"));
	assert_non_null(strstr(text, "unknown: 0.50 us"));
	free(text);
}
