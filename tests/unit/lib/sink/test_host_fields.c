/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "lib_seed.h"
#include "lib_test.h"

#include "sink/host_fields.h"

static int read_fields(const char *text, bool has_host,
		       struct host_fields *ret_fields)
{
	static const struct log log;
	struct spec spec;
	int err;

	assert_int_equal(spec_parse(&spec, text, &log), 0);
	host_fields_read(ret_fields, &spec, has_host);
	err = spec_finish(&spec);
	spec_free(&spec);
	return err;
}

static void check_record(const char *spec, bool has_host, const char *expected)
{
	char json[64 + HOST_FIELDS_MAX] = "{\"Bytes\":1}";
	struct host_fields fields;
	size_t len;

	assert_int_equal(read_fields(spec, has_host, &fields), 0);
	len = host_fields_add(&fields, json, strlen(json));
	json[len] = '\0';
	assert_string_equal(json, expected);
}

TEST(records_have_the_host_and_fields)
{
	char name[AGENT_NAME_SIZE], id[AGENT_ID_SIZE], expected[256];

	agent_find_name(name, sizeof(name));
	agent_find_id(id);
	snprintf(expected, sizeof(expected),
		 "{\"Bytes\":1,\"AgentIP\":\"192.0.2.9\",\"HostName\":\"%s\"%s%s%s}",
		 name, *id ? ",\"HostId\":\"" : "", id, *id ? "\"" : "");
	check_record("x?agent_ip=192.0.2.9", true, expected);
	check_record("x?agent_ip=192.0.2.9&host=yes", false, expected);
	check_record("x", false, "{\"Bytes\":1}");
	check_record("x?host=no", true, "{\"Bytes\":1}");
	check_record("x?host=no&field.site=a%22b&field.rack.u=7", true,
		     "{\"Bytes\":1,\"site\":\"a\\\"b\",\"rack.u\":\"7\"}");
}

TEST(without_options_nothing_is_added)
{
	static const struct host_fields none;
	char json[64] = "{}";

	assert_int_equal(host_fields_add(&none, json, 2), 2);
	assert_string_equal(json, "{}");
}

static void check_ecs(const char *record, const char *expected)
{
	char json[1024 + ECS_MORE + HOST_FIELDS_MAX];
	struct host_fields fields;
	size_t len;

	assert_int_equal(
		read_fields("x?layout=ecs&host=no&field.a=b", true, &fields), 0);
	strcpy(json, record);
	len = host_fields_add(&fields, json, strlen(json));
	json[len] = '\0';
	assert_string_equal(json, expected);
}

#define ECS(kind, type)                                                \
	"{\"ecs.version\":\"8.11.0\",\"event.kind\":\"" kind           \
	"\",\"event.dataset\":\"netobs." type "\",\"event.category\":" \
	"[\"network\"]"

TEST(ecs_names_members_and_keeps_their_values)
{
	check_ecs("{\"TimeFlowEndMs\":-5,\"SrcAddr\":\"::1\",\"Proto\":17,"
		  "\"Interfaces\":[\"a,\\\"]}\",\"b\"],\"L2Bytes\":1}",
		  ECS("event",
		      "flow") ",\"event.end\":-5,\"@timestamp\":-5,"
			      "\"source.ip\":\"::1\",\"network.type\":\"ipv6\","
			      "\"network.iana_number\":17,\"network.transport\":\"udp\","
			      "\"netobs.interfaces\":[\"a,\\\"]}\",\"b\"],"
			      "\"netobs.l2_bytes\":1,\"a\":\"b\"}");
	check_ecs("{\"type\":\"alert\",\"TimeMs\":7,\"Alert\":\"x\",\"Pid\":3}",
		  ECS("alert", "alert") ",\"netobs.time_ms\":7,"
					"\"@timestamp\":7,\"rule.name\":\"x\","
					"\"process.pid\":3,\"a\":\"b\"}");
	check_ecs("{\"type\":\"stats\",\"TimeMs\":7,\"seen\":{\"packets\":1,"
		  "\"in\":{\"b\":[{}]}},\"z\":0}",
		  ECS("metric",
		      "stats") ",\"netobs.time_ms\":7,"
			       "\"@timestamp\":7,\"netobs.seen\":{\"packets\":1,"
			       "\"in\":{\"b\":[{}]}},\"netobs.z\":0,\"a\":\"b\"}");
}

/* With all bits set, and the longest texts. */
TEST(largest_records_fit_with_the_names_of_ecs)
{
	static char json[SINK_JSON_MAX];
	static union any_record any;

	for (uint32_t type = 0; type < NETOBS_RECORD_TYPES; type++) {
		int len;

		memset(&any, 0xff, sizeof(any));
		any.record.type = type;
		any.record.sz = sizeof(any);
		if (type == NETOBS_RECORD_STATS)
			continue; /* its numbers are checked */
		if (type == NETOBS_RECORD_FLOW) {
			any.flow.n_points = 0;
			any.flow.src_process = any.flow.dst_process = NULL;
		}
		len = netobs_record_json(&any.record, json, RECORD_JSON_MAX);
		assert_true(len > 0);
		assert_true(ecs_rename(json, (size_t)len) <=
			    (size_t)len + ECS_MORE / 2);
	}
}

/* ---- Names that records have -------------------------------------------------------- */

enum { NAMES_SEEN_MAX = 1024, NAME_SIZE = 96 };

/* Names of members, each of which some record has. */
static struct names {
	char names[NAMES_SEEN_MAX][NAME_SIZE];
	size_t n;
} known[2]; /* by layout */

/* @return whether one is the other, or the path to it */
static bool are_twins(const char *one, const char *other)
{
	while (*one && *one == *other) {
		one++;
		other++;
	}
	return (!*one || *one == '.') && (!*other || *other == '.') &&
	       (!*one || !*other);
}

static bool has_twin(const struct names *names, const char *name)
{
	for (size_t i = 0; i < names->n; i++)
		if (are_twins(names->names[i], name))
			return true;
	return false;
}

/* Note the members of an object in JSON. */
static void note_members(const char *json, struct names *names)
{
	const char *at = json + 1;
	struct raw_member raw;

	while (raw_member_next(&at, &raw)) {
		assert_true(names->n < NAMES_SEEN_MAX);
		snprintf(names->names[names->n++], NAME_SIZE, "%.*s",
			 (int)raw.key_len, raw.key);
	}
	assert_string_equal(at, "}");
}

/* A record with each member that its type may have. */
static void make_full(uint32_t type, union any_record *any)
{
	static const struct netobs_point point = { 1, 1, 1, { 0 }, "a" };
	static struct netobs_process process;

	memset(any, 0xff, sizeof(*any));
	if (type == NETOBS_RECORD_STATS) /* no number is too large */
		memset(any, 0x01, sizeof(*any));
	any->record.type = type;
	any->record.sz = sizeof(*any);
	if (type != NETOBS_RECORD_FLOW)
		return;
	for (size_t i = 0; i < sizeof(process); i++) /* short texts */
		((uint8_t *)&process)[i] = i % 8 == 7 ? 0 : 0x7f;
	process.sz = sizeof(process);
	any->flow.proto = 17;
	any->flow.points = &point;
	any->flow.n_points = 1;
	any->flow.point_size = sizeof(point);
	any->flow.src_process = any->flow.dst_process = &process;
}

/* Write a record of the type, with the fields. */
static const char *write_full(uint32_t type, const struct host_fields *fields)
{
	static char json[SINK_JSON_MAX + 1];
	static union any_record any;

	make_full(type, &any);
	json[host_fields_json(fields, &any.record, json)] = '\0';
	return json;
}

static void note_known(void)
{
	struct host_fields fields = { 0 };

	if (known[0].n)
		return;
	for (int layout = 0; layout < 2; layout++)
		for (uint32_t type = 0; type < NETOBS_RECORD_TYPES; type++) {
			fields.is_ecs = layout;
			note_members(write_full(type, &fields), &known[layout]);
		}
	strcpy(known[0].names[known[0].n++], "@timestamp"); /* encoding=bulk */
	strcpy(known[1].names[known[1].n++], "netobs");
}

TEST(names_of_records_are_refused)
{
	static const char *const more[] = { "AgentIP", "HostName", "HostId",
					    "a b",     "",	   "a..b",
					    ".a",      "a." };
	struct host_fields fields;
	char spec[NAME_SIZE + 64];

	note_known();
	for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
		snprintf(spec, sizeof(spec), "x?field.%s=1", more[i]);
		assert_int_equal(read_fields(spec, true, &fields), -EINVAL);
	}
	for (int layout = 0; layout < 2; layout++)
		for (size_t i = 0; i < known[layout].n; i++) {
			snprintf(spec, sizeof(spec), "x?layout=%s&field.%s=1",
				 layout ? "ecs" : "netobs",
				 known[layout].names[i]);
			assert_int_equal(read_fields(spec, true, &fields),
					 -EINVAL);
		}
}

TEST(names_of_other_layouts_are_free)
{
	check_record("x?host=no&field.host.name=a&field.source.ip=b", true,
		     "{\"Bytes\":1,\"host.name\":\"a\",\"source.ip\":\"b\"}");
	check_record(
		"x?layout=ecs&host=no&field.SrcAddr=a&field.host.name=b", true,
		ECS("event", "flow") ",\"network.bytes\":1,"
				     "\"SrcAddr\":\"a\",\"host.name\":\"b\"}");
}

/* A word, a name of either layout, or such a name shorter or longer by a part. */
static void pick_name(char name[NAME_SIZE])
{
	static const char *const words[] = { "a",	"b",	  "host",
					     "host.ip", "HostId", "@timestamp",
					     "netobs.x" };
	const struct names *of = &known[test_below(2)];
	char *dot;

	if (!test_below(2))
		strcpy(name, words[test_below(ARRAY_SIZE(words))]);
	else
		strcpy(name, of->names[test_below((uint32_t)of->n)]);
	dot = strrchr(name, '.');
	if (!test_below(4))
		strcat(name, test_below(2) ? ".x" : "x");
	else if (dot && !test_below(4))
		*dot = '\0';
}

/* Two fields that are accepted are members beside all others; those that are refused could not be. */
static void try_names(void)
{
	const bool is_ecs = test_below(2), has_host = test_below(2);
	struct names all = known[is_ecs];
	char one[NAME_SIZE], other[NAME_SIZE], spec[3 * NAME_SIZE];
	struct host_fields fields;
	bool clash;

	pick_name(one);
	do
		pick_name(other);
	while (!strcmp(one, other)); /* no option may be given twice */
	if (has_host)
		for (int i = 0; i < 3; i++)
			strcpy(all.names[all.n++],
			       ((const char *[]){ "AgentIP", "HostName", "HostId",
						  "host.ip", "host.name",
						  "host.id" })[i + 3 * is_ecs]);
	clash = has_twin(&all, one) || has_twin(&all, other) ||
		are_twins(one, other);
	snprintf(spec, sizeof(spec), "x?layout=%s&field.%s=1&field.%s=2",
		 is_ecs ? "ecs" : "netobs", one, other);
	if ((read_fields(spec, has_host, &fields) < 0) != clash)
		fail_msg("%s, host %d: clash %d", spec, has_host, clash);
	for (uint32_t type = 0; !clash && type < NETOBS_RECORD_TYPES; type++) {
		all.n = 0;
		note_members(write_full(type, &fields), &all);
		assert_string_equal(all.names[all.n - 2], one);
		assert_string_equal(all.names[all.n - 1], other);
		while (all.n--)
			if (has_twin(&all, all.names[all.n]))
				fail_msg("%s: %s", spec, all.names[all.n]);
	}
}

/* NETOBS_TEST_CASES: how many. */
TEST(random_names_are_no_twins)
{
	const char *cases = getenv("NETOBS_TEST_CASES");

	note_known();
	for (int i = cases ? atoi(cases) : 300; i > 0; i--)
		try_names();
}

/* The ids are those of systemd-id128 --app-specific=612f6e4e06d642c8bc14afa3671d64fb. */
TEST(the_id_is_that_of_the_machine_and_netobs)
{
	static const char *const wrong[] = { "", "uninitialized",
					     "0123456789abcdef0123456789abcde",
					     "0123456789abcdef0123456789abcdef0",
					     "00000000000000000000000000000000" };
	char id[AGENT_ID_SIZE];

	agent_make_id("0123456789abcdef0123456789abcdef", id);
	assert_string_equal(id, "1ce29165869248afb2edad5446f311ca");
	agent_make_id("0123456789ABCDEF0123456789ABCDEF", id);
	assert_string_equal(id, "1ce29165869248afb2edad5446f311ca");
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		agent_make_id(wrong[i], id);
		assert_string_equal(id, "");
	}
}

TEST(texts_of_any_bytes_are_json)
{
	check_record(
		"x?field.a=%22%5c%0a%01%ff%c3%a9", false,
		"{\"Bytes\":1,\"a\":\"\\\"\\\\\\u000a\\u0001\xef\xbf\xbd\xc3\xa9\"}");
}

TEST(what_is_too_long_is_refused)
{
	char spec[HOST_FIELDS_MAX + 64];
	struct host_fields fields;

	memset(spec, 'a', sizeof(spec));
	spec[sizeof(spec) - 1] = '\0';
	memcpy(spec, "x?field.a=", strlen("x?field.a="));
	assert_int_equal(read_fields(spec, false, &fields), -EINVAL);
}
