// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What is said again: templates by time, names when they change. */
#include "sinks/ipfix/ipfix.h"

#include "lib_ipfix.h"
#include "lib_seed.h"

TEST(templates_come_soon_again_and_then_rarely)
{
	struct refresh refresh = { .interval_ms = 60000, .repeats = true };
	int64_t now = 5000;

	refresh_start(&refresh, now);
	assert_true(refresh_is_due(&refresh, now));
	refresh_done(&refresh, now);
	assert_false(refresh_is_due(&refresh, now + 999));
	assert_true(refresh_is_due(&refresh, now + 1000));
	refresh_done(&refresh, now + 1000);
	assert_false(refresh_is_due(&refresh, now + 4999));
	assert_true(refresh_is_due(&refresh, now + 5000));
	for (int i = 0; i < 100; i++) {
		now += 100000;
		refresh_done(&refresh, now);
		assert_false(refresh_is_due(&refresh, now + 59999));
		assert_true(refresh_is_due(&refresh, now + 60000));
	}
}

TEST(reliable_transports_have_them_once)
{
	struct refresh refresh = { .interval_ms = 1000 };

	refresh_start(&refresh, 0);
	assert_true(refresh_is_due(&refresh, 0));
	refresh_done(&refresh, 0);
	assert_false(refresh_is_due(&refresh, 1000000));
	refresh_start(&refresh, 1000000);
	assert_true(refresh_is_due(&refresh, 1000000));
}

static struct slots names;

static bool tell(uint32_t ifindex, uint32_t netns, const char *text)
{
	const struct netobs_point point = { .ifindex = ifindex,
					    .netns_inode = netns,
					    .name = text };
	struct name name;

	if (!names_is_new(&names, &point, &name))
		return false;
	names_note(&names, &name);
	return true;
}

TEST(names_are_told_once_and_when_they_change)
{
	slots_clear(&names);
	assert_true(tell(2, 1, "eth0"));
	assert_false(tell(2, 1, "eth0"));
	assert_true(tell(2, 7, "eth0"));
	assert_true(tell(2, 1, "uplink"));
	assert_false(tell(2, 1, "uplink"));
	assert_false(tell(0, 1, "nowhere"));
	assert_false(tell(3, 1, NULL));
	assert_true(tell(3, 1, "a-name-of-sixteen-and-more"));
	assert_false(tell(3, 1, "a-name-of-sixteen-and-more"));
	slots_clear(&names);
	assert_true(tell(2, 1, "uplink"));
	slots_free(&names);
}

TEST(any_number_of_interfaces_finds_an_end)
{
	unsigned int told = 0;
	char text[16];

	slots_clear(&names);
	for (uint32_t i = 1; i <= 10000; i++) {
		snprintf(text, sizeof(text), "veth%u", i);
		told += tell(i, 1, text);
		assert_true(names.n <= NAMES_MAX);
	}
	assert_int_equal(told, 10000);
	slots_free(&names);
}

/* ---- Names at a collector ------------------------------------------------------------------ */

enum { INDEXES = 3, INODES = 3, PEN = 32473, TEXT_SIZE = 16 };

/* Names of interfaces, as they are in their namespaces, and as a collector has read them. */
struct known {
	char told[INDEXES][INODES][TEXT_SIZE]; /* at the last flow; "": none yet */
	char plain[INDEXES][TEXT_SIZE];
	char in_netns[INDEXES][INODES][TEXT_SIZE];
	bool is_extended;
	unsigned int n_checked;
};

static void take_text(const struct ipfix_record *record, char *to)
{
	size_t len;
	const uint8_t *text = ipfix_get(record, 0, 82, &len);

	assert_int_equal(len, TEXT_SIZE);
	memcpy(to, text, len);
}

/* "": interfaces with that index have different names. */
static const char *common_name(const struct known *known, uint64_t index)
{
	const char *found = NULL;

	for (int i = 0; i < INODES; i++) {
		const char *text = known->told[index][i];

		if (*text && found && strcmp(found, text) != 0)
			return "";
		found = *text ? text : found;
	}
	assert_non_null(found);
	return found;
}

static void check_flow(struct known *known, const struct ipfix_record *record)
{
	const uint64_t index = ipfix_value(record, 0, 10);

	assert_string_equal(known->plain[index], common_name(known, index));
	known->n_checked++;
	if (!known->is_extended)
		return;
	for (int i = 0; i < INODES; i++)
		assert_string_equal(known->in_netns[index][i],
				    known->told[index][i]);
}

static void read_by_collector(const struct ipfix_record *record, void *ctx)
{
	struct known *known = ctx;
	size_t len;

	if (ipfix_has(record, 1))
		check_flow(known, record);
	else if (ipfix_get(record, PEN, 12, &len))
		take_text(record, known->in_netns[ipfix_value(record, 0, 10)]
						 [ipfix_value(record, PEN, 12)]);
	else if (ipfix_has(record, 82))
		take_text(record, known->plain[ipfix_value(record, 0, 10)]);
}

static void send_message(struct encoder *encoder, struct ipfix_reader *reader)
{
	struct encoder_message message;

	if (encoder_is_empty(encoder))
		return;
	assert_int_equal(encoder_take(encoder, &message), 0);
	ipfix_read(reader, message.bytes, message.len);
}

/* Send a flow that came in at an interface, with what is due before it, as the sink does. */
static void send_at(struct reports *reports, struct encoder *encoder,
		    struct ipfix_reader *reader, const struct netobs_point *point)
{
	const struct netobs_flow flow = { .sz = sizeof(flow),
					  .ethertype = 0x0800,
					  .n_points = 1,
					  .point_size = sizeof(*point),
					  .points = point };
	const struct output_counts counts = { 0 };

	while (!reports_add(reports, encoder, &counts))
		send_message(encoder, reader);
	while (!reports_add_names(reports, encoder, &flow))
		send_message(encoder, reader);
	while (!encoder_add_flow(encoder, &flow))
		send_message(encoder, reader);
	/* So that the collector knows no more than what is in front of the flow. */
	send_message(encoder, reader);
}

static bool has_no_stats(struct sink_host *host, struct netobs_stats *ret_stats)
{
	(void)host;
	(void)ret_stats;
	return false;
}

/* Interfaces of random indexes, namespaces and names, which change. */
static void observe(struct known *known)
{
	static const char *const texts[] = { "eth0", "uplink", "h\xc3\xa9" };
	const struct sink_host_ops ops = { .get_stats = has_no_stats };
	struct sink_host host = { .ops = &ops };
	struct config config = { .layout = { .is_extended = known->is_extended,
					     .pen = PEN } };
	struct ipfix_reader reader = { .on_record = read_by_collector,
				       .ctx = known };
	struct reports reports;
	struct encoder *encoder;

	assert_int_equal(encoder_open(1, &config.layout, &encoder), 0);
	assert_int_equal(encoder_start(encoder, 776 + test_below(800), 0), 0);
	reports_open(&reports, &config, &host);
	for (int kind = 0; kind < LAYOUT_KINDS; kind++)
		if (!encoder_add_template(encoder, kind)) {
			send_message(encoder, &reader);
			encoder_add_template(encoder, kind);
		}
	for (int i = 0; i < 60; i++) {
		struct netobs_point point = {
			.ifindex = 1 + test_below(INDEXES - 1),
			.netns_inode = test_below(INODES),
			.direction = NETOBS_INGRESS,
		};
		char *told = known->told[point.ifindex][point.netns_inode];

		if (!*told || !test_below(4))
			strcpy(told, texts[test_below(ARRAY_SIZE(texts))]);
		point.name = told;
		if (!test_below(8))
			reports_begin(&reports);
		send_at(&reports, encoder, &reader, &point);
	}
	slots_free(&reports.names);
	encoder_free(encoder);
}

TEST(a_flow_comes_behind_the_name_of_its_interface_or_none)
{
	const char *given = getenv("NETOBS_TEST_NAMES");
	const unsigned long n = given ? strtoul(given, NULL, 0) : 50;

	for (unsigned long i = 0; i < n; i++) {
		struct known known = { .is_extended = i % 2 };

		observe(&known);
		assert_int_equal(known.n_checked, 60);
	}
}
