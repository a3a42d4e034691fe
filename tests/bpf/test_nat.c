/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* NAT is looked for where the kernel shows how, and refused elsewhere. */
#include "engine/store.h"

#include "lib_lab.h"
#include "lib_test.h"

#include <netobs/netobs.h>
#include <netobs/stats.h>

static const struct log silent;

static bool is_there(void)
{
	struct nat_layout layout;

	return !nat_find_layout(&layout, &silent);
}

TEST(the_layout_is_within_the_kernels_structs)
{
	struct nat_layout layout = { 0 };

	if (!is_there())
		skip();
	assert_int_equal(nat_find_layout(&layout, &silent), 0);
	assert_true(layout.skb_nfct > 0 && layout.skb_nfct % 8 == 0);
	assert_true(layout.tuples[NAT_REPLY] >=
		    layout.tuples[NAT_ORIGINAL] + sizeof(struct nat_tuple));
	assert_true(!layout.has_zone || layout.zone % 2 == 0);
}

static int start(uint64_t flags, uint64_t disabled,
		 struct netobs_engine_stats *ret_stats)
{
	static const char *const interfaces[] = { "lo", NULL };
	NETOBS_OPTS(netobs_opts, opts, .interfaces = interfaces, .flags = flags,
		    .disable_features = disabled);
	struct netobs *ctx;
	int err;

	assert_int_equal(netobs_new(&opts, &ctx), 0);
	err = netobs_start(ctx);
	if (!err)
		assert_int_equal(netobs_engine_stats_get(ctx, ret_stats), 0);
	if (err == -ENOTSUP)
		assert_non_null(strstr(netobs_last_error(ctx), "conntrack"));
	netobs_free(ctx);
	return err;
}

TEST(a_context_with_it_starts_where_the_kernel_has_it)
{
	struct netobs_engine_stats stats = { .sz = sizeof(stats) };

	assert_int_equal(start(NETOBS_NAT, 0, &stats), is_there() ? 0 : -ENOTSUP);
	assert_int_equal(stats.translations_lost, 0);
	assert_int_equal(start(NETOBS_NAT, 1 << NETOBS_FEATURE_NAT, &stats),
			 -ENOTSUP);
	assert_int_equal(start(0, 1 << NETOBS_FEATURE_NAT, &stats), 0);
}

TEST(the_probe_says_the_same)
{
	assert_int_equal(!lab_lacks(LAB_FEATURE(NAT)), is_there());
}
