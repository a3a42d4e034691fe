// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Names of reasons are those of the kernel that the test runs under, if it has any. */
#include "lib_test.h"

#include "drops/drop_names.h"

#include <bpf/btf.h>

static const struct log silent;

TEST(reasons_have_the_kernels_names)
{
	const char *const wanted[] = { "SKB_DROP_REASON_NOT_SPECIFIED",
				       "SKB_DROP_REASON_NO_SOCKET" };
	struct drop_names names;
	char text[64];
	int found = 0;

	drop_names_open(&names, true, &silent);
	if (!names.n_causes) {
		drop_names_close(&names);
		skip(); /* before Linux 5.17, or without BTF */
	}
	for (uint32_t reason = 0; reason < 256; reason++) {
		drop_names_cause(&names, reason, text, sizeof(text));
		for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
			found += !strcmp(text, wanted[i]);
	}
	assert_int_equal(found, ARRAY_SIZE(wanted));
	drop_names_close(&names);
}

TEST(reasons_without_a_name_are_numbers)
{
	char subsystem[] = "SKB_DROP_REASON_SUBSYS_MAC80211_UNUSABLE";
	char cause[] = "SKB_NOT_DROPPED_YET";
	char *subsystems[] = { NULL, subsystem }, *causes[] = { cause };
	const struct drop_names names = {
		.causes = causes,
		.n_causes = ARRAY_SIZE(causes),
		.subsystems = subsystems,
		.n_subsystems = ARRAY_SIZE(subsystems),
	};
	static const struct {
		uint32_t reason;
		const char *text;
	} rows[] = {
		{ 0, "SKB_NOT_DROPPED_YET" },
		{ 77, "SKB_DROP_REASON_77" },
		{ 1 << 16 | 5, "MAC80211_UNUSABLE_5" },
		{ 2 << 16 | 5, "SKB_DROP_REASON_131077" },
	};
	char text[64];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		drop_names_cause(&names, rows[i].reason, text, sizeof(text));
		assert_string_equal(text, rows[i].text);
	}
}

TEST(reasons_of_subsystems_have_their_names)
{
	enum { OVS = 2 << 16, WIRELESS = 1 << 16 };
	struct drop_names names = { 0 };
	struct btf *btf = btf__new_empty();
	char text[64];

	assert_non_null(btf);
	assert_true(btf__add_enum(btf, "ovs_drop_reason", 4) > 0);
	assert_int_equal(btf__add_enum_value(btf, "__OVS_DROP_REASON", OVS), 0);
	assert_int_equal(
		btf__add_enum_value(btf, "OVS_DROP_LAST_ACTION", OVS | 1), 0);
	assert_int_equal(btf__add_enum_value(btf, "OVS_DROP_METER", OVS | 2), 0);
	assert_true(btf__add_enum(btf, "mac80211_drop_reason", 4) > 0);
	assert_int_equal(btf__add_enum_value(btf, "RX_CONTINUE", 1), 0);
	assert_int_equal(
		btf__add_enum_value(btf, "RX_DROP_U_MIC_FAIL", WIRELESS | 1), 0);
	drop_names_add(&names, btf, "ovs_drop_reason");
	drop_names_add(&names, btf, "mac80211_drop_reason");
	drop_names_add(&names, btf, "there_is_none");
	drop_names_cause(&names, OVS | 2, text, sizeof(text));
	assert_string_equal(text, "OVS_DROP_METER");
	drop_names_cause(&names, WIRELESS | 1, text, sizeof(text));
	assert_string_equal(text, "RX_DROP_U_MIC_FAIL");
	drop_names_cause(&names, OVS, text, sizeof(text));
	assert_string_equal(text, "SKB_DROP_REASON_131072");
	drop_names_cause(&names, 1, text, sizeof(text));
	assert_string_equal(text, "SKB_DROP_REASON_1");
	btf__free(btf);
	drop_names_close(&names);
}

TEST(places_are_a_function_and_an_offset)
{
	static const struct {
		const char *text, *function;
		uint32_t offset;
	} rows[] = {
		{ "tcp_v4_rcv+0xbe/0x1180", "tcp_v4_rcv", 0xbe },
		{ "nft_do_chain+0x10/0x400 [nf_tables]", "nft_do_chain", 16 },
		{ "ip_rcv_finish_core.constprop.0+0x1/0x2",
		  "ip_rcv_finish_core", 1 },
		{ "0xffffffffc0001234", NULL, 0 },
		{ "", NULL, 0 },
		{ "+0x1/0x2", NULL, 0 },
		{ "name+", NULL, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char function[64];
		uint32_t offset;

		assert_int_equal(drop_names_split(rows[i].text, function,
						  sizeof(function), &offset),
				 rows[i].function != NULL);
		if (!rows[i].function)
			continue;
		assert_string_equal(function, rows[i].function);
		assert_int_equal(offset, rows[i].offset);
	}
}
