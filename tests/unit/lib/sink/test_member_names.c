// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "sink/host_fields.h"

#include "lib_test.h"

static const char *name_of(const char *key)
{
	static char buf[NAME_MAX_LEN];
	char longer[64];

	/* What is behind the key is not part of it. */
	snprintf(longer, sizeof(longer), "%sX", key);
	return member_name(NAMES_OF_OTEL, longer, strlen(key), buf);
}

TEST(conventions_have_their_names)
{
	static const struct {
		const char *key, *otel, *ecs;
	} names[] = {
#define NAME(key, otel, ecs) { key, otel, ecs },
#include "catalogue/names.def"
	};
	char buf[NAME_MAX_LEN];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (*names[i].otel)
			assert_string_equal(name_of(names[i].key), names[i].otel);
		if (*names[i].ecs)
			assert_string_equal(
				member_name(NAMES_OF_ECS, names[i].key,
					    strlen(names[i].key), buf),
				names[i].ecs);
	}
}

TEST(others_follow_the_rule)
{
	static const struct {
		const char *key, *name;
	} cases[] = {
		{ "Bytes", "netobs.bytes" },
		{ "L2Bytes", "netobs.l2_bytes" },
		{ "Ipv6FlowLabel", "netobs.ipv6_flow_label" },
		{ "TimeFlowRttNs", "netobs.time_flow_rtt_ns" },
		{ "SrcPid", "netobs.src_pid" },
		{ "Src", "netobs.src" },
		{ "AgentIP", "netobs.agent_ip" },
		{ "type", "netobs.type" },
		{ "Pidx", "netobs.pidx" },
		{ "A", "netobs.a" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_string_equal(name_of(cases[i].key), cases[i].name);
}

/* Any two keys of records have names that differ, which fit. */
TEST(keys_have_names_of_their_own)
{
	static const char *const keys[] = {
#define FIELD(kind, member, type, has, key, ...) key,
#include "catalogue/records.def"
#define FIELD(member, type, has, merge, key, ...) key,
#define POINT_FIELD(member, type, key, ...) key,
#define PROCESS_FIELD(member, type, key, ...) "Src" key, "Dst" key,
#include "catalogue/fields.def"
	};
	const size_t n = sizeof(keys) / sizeof(*keys);
	char a[NAME_MAX_LEN], b[NAME_MAX_LEN];

	for (enum names_of of = 0; of < NAMES_OF; of++)
		for (size_t i = 0; i < n; i++) {
			const char *name =
				member_name(of, keys[i], strlen(keys[i]), a);

			assert_true(strlen(name) < NAME_MAX_LEN);
			for (size_t j = 0; j < i; j++)
				if (strcmp(keys[i], keys[j]) != 0)
					assert_string_not_equal(
						name,
						member_name(of, keys[j],
							    strlen(keys[j]), b));
		}
}
