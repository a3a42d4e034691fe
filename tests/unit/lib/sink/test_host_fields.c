/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
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

TEST(names_of_records_are_refused)
{
	static const char *const names[] = {
		"Bytes",   "SrcAddr",	  "Interfaces", "SrcProcess",
		"AgentIP", "HostName",	  "HostId",	"type",
		"Alert",   "NetnsInodes", "a b",	""
	};
	struct host_fields fields;
	char spec[64];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(spec, sizeof(spec), "x?field.%s=1", names[i]);
		assert_int_equal(read_fields(spec, false, &fields), -EINVAL);
	}
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
