// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What the probes say of this kernel, and that they leave nothing behind. */
#include "lib_lab.h"
#include "lib_test.h"
#include "util.h"

#include <errno.h>
#include <netobs/probe.h>
#include <string.h>
#include <sys/stat.h>

static ino_t own_netns(void)
{
	struct stat st;

	assert_int_equal(stat("/proc/thread-self/ns/net", &st), 0);
	return st.st_ino;
}

static void probe_describes_every_feature(void **state)
{
	struct netobs_feature features[NETOBS_FEATURES];

	(void)state;
	memset(features, 0xee, sizeof(features));
	assert_true(netobs_probe(0, features) >= 0);
	for (int i = 0; i < NETOBS_FEATURES; i++) {
		assert_true(strlen(features[i].name) > 0);
		assert_true(strlen(features[i].description) > 0);
		assert_true(strlen(features[i].without) > 0);
		assert_true(features[i].need <= NETOBS_NEED_OPTIONAL);
		assert_int_equal(features[i].available, features[i].error == 0);
		assert_true(features[i].error <= 0);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(features[i].name,
						features[k].name);
	}
}

/* The other tests here need them all; this one tells what is absent. */
static void probe_finds_what_flows_need(void **state)
{
	struct netobs_feature features[NETOBS_FEATURES];
	int ret = netobs_probe(0, features);

	(void)state;
	for (int i = 0; i < NETOBS_FEATURES; i++)
		if (features[i].need == NETOBS_NEED_REQUIRED &&
		    !features[i].available)
			fail_msg("%s: %s", features[i].name,
				 strerror(-features[i].error));
	assert_int_equal(ret, 1);
}

static bool can_attach(const struct netobs_feature *features)
{
	return features[NETOBS_FEATURE_TCX].available ||
	       features[NETOBS_FEATURE_CLSACT].available;
}

static void probe_reports_disabled_features_as_absent(void **state)
{
	struct netobs_feature features[NETOBS_FEATURES];

	(void)state;
	for (int i = 0; i < NETOBS_FEATURES; i++) {
		int ret = netobs_probe(1ULL << i, features);

		assert_false(features[i].available);
		assert_true(features[i].error < 0);
		assert_int_equal(ret, features[i].need != NETOBS_NEED_REQUIRED &&
					      can_attach(features));
	}
}

static void probe_finds_tcx_where_it_is(void **state)
{
	struct netobs_feature features[NETOBS_FEATURES];

	(void)state;
	netobs_probe(0, features);
	assert_int_equal(features[NETOBS_FEATURE_TCX].available, lab_has_tcx());
}

static void probe_needs_one_way_to_attach(void **state)
{
	const uint64_t tcx = 1 << NETOBS_FEATURE_TCX;
	const uint64_t clsact = 1 << NETOBS_FEATURE_CLSACT;
	struct netobs_feature features[NETOBS_FEATURES];

	(void)state;
	assert_int_equal(netobs_probe(tcx, features), 1);
	assert_int_equal(netobs_probe(clsact, features), lab_has_tcx());
	assert_int_equal(netobs_probe(tcx | clsact, features), 0);
}

static void probe_leaves_nothing_behind(void **state)
{
	struct netobs_feature features[NETOBS_FEATURES];
	ino_t netns = own_netns();
	int fds = lab_count_fds();

	(void)state;
	netobs_probe(0, features);
	assert_int_equal(lab_count_fds(), fds);
	assert_int_equal(own_netns(), netns);
}

static void probe_without_room_is_refused(void **state)
{
	(void)state;
	assert_int_equal(netobs_probe(0, NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probe_describes_every_feature),
		cmocka_unit_test(probe_finds_what_flows_need),
		cmocka_unit_test(probe_reports_disabled_features_as_absent),
		cmocka_unit_test(probe_finds_tcx_where_it_is),
		cmocka_unit_test(probe_needs_one_way_to_attach),
		cmocka_unit_test(probe_leaves_nothing_behind),
		cmocka_unit_test(probe_without_room_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
