// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Which interfaces of which namespaces options ask for. */
#include "lib_test.h"
#include "lib_witness.h"
#include "host/selection.h"

static const struct log silent;

static struct selection select_from(const char *const *interfaces,
				    const char *const *exclude)
{
	struct selection selection;

	assert_int_equal(
		selection_init(&selection, interfaces, exclude, &silent), 0);
	return selection;
}

static bool has(const struct selection *selection, const char *netns,
		const char *interface)
{
	const struct selected *selected = selection_find(selection, netns);

	return selected && selection_has(selection, selected, interface, NULL);
}

TEST(without_options_it_is_all_of_the_own_namespace)
{
	static const char *const none[] = { NULL };
	struct selection selection = select_from(NULL, NULL);

	assert_true(has(&selection, NULL, "eth0"));
	assert_false(has(&selection, "a", "eth0"));
	selection_done(&selection);

	selection = select_from(none, none);
	assert_true(has(&selection, NULL, "eth0"));
	selection_done(&selection);
}

TEST(namespaces_have_patterns_of_their_own)
{
	static const char *const interfaces[] = { "netns:a/eth0",
						  "lo",
						  "netns:/run/netns/b//^v/",
						  "netns:a//q/",
						  "netns:/p/c/eth1",
						  NULL };
	static const char *const exclude[] = { "/9$/", NULL };
	static const struct {
		const char *netns, *interface;
		bool is_selected;
	} cases[] = {
		{ NULL, "lo", true },
		{ NULL, "eth0", false },
		{ "a", "eth0", true },
		{ "a", "xqx", true },
		{ "a", "q9", false },
		{ "a", "lo", false },
		{ "/run/netns/b", "v1", true },
		{ "/run/netns/b", "v19", false },
		{ "b", "v1", false },
		{ "/p/c", "eth1", true },
	};
	struct selection selection = select_from(interfaces, exclude);

	assert_int_equal(selection.count, 4);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(has(&selection, cases[i].netns,
				     cases[i].interface),
				 cases[i].is_selected);
	selection_done(&selection);
}

TEST(altnames_are_as_good_as_names)
{
	static const char *const interfaces[] = { "enp1s0", "/^wan/", NULL };
	static const char *const exclude[] = { "other", NULL };
	static const struct {
		const char *name, *altnames;
		bool is_selected;
	} cases[] = {
		{ "eth0", "x\0enp1s0\0", true },
		{ "eth1", "wan1\0", true },
		{ "wan1", NULL, true },
		{ "eth2", "wan2\0other\0", false },
		{ "eth3", "enp1s0x\0enp1s\0", false },
		{ "eth4", "", false },
		{ "eth4", NULL, false },
	};
	struct selection selection = select_from(interfaces, exclude);
	const struct selected *own = selection_find(&selection, NULL);
	char altnames[] = "x\0enp1s0\0";
	const struct netif netif = { .name = "eth0", .altnames = altnames };
	const struct netif matched = { .name = "wan1" };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(selection_has(&selection, own, cases[i].name,
					       cases[i].altnames),
				 cases[i].is_selected);
	assert_true(selected_names(own, &netif));
	assert_false(selected_names(own, &matched));
	selection_done(&selection);
}

TEST(wrong_options_leave_nothing)
{
	static const struct {
		const char *name, *words;
	} wrong[] = {
		{ "", "neither" },
		{ "eth0/", "eth0/" },
		{ "/[/", "/[/" },
		{ "netns:", "netns:NAME/INTERFACE" },
		{ "netns:blue", "netns:NAME/INTERFACE" },
		{ "netns:blue/", "netns:" },
		{ "netns:/eth0", "netns:NAME/INTERFACE" },
		{ "netns:blue//[/", "/[/" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		const char *const interfaces[] = { "lo", wrong[i].name, "lo",
						   NULL };
		struct witness witness = { 0 };
		struct log log = witness_log(&witness);
		struct selection selection;

		assert_int_equal(selection_init(&selection, interfaces, NULL,
						&log),
				 -EINVAL);
		assert_true(witness_read(&witness, "interfaces: "));
		assert_true(witness_read(&witness, wrong[i].words));
		assert_int_equal(selection.count, 0);
		assert_null(selection.items);
		witness_clear(&witness);
	}
}

TEST(two_names_of_a_namespace_become_one_item)
{
	static const char *const interfaces[] = { "netns:a/x", "netns:b/y",
						  "netns:c/z", NULL };
	struct selection selection = select_from(interfaces, NULL);

	/* b is the namespace of a, and c is followed as d. */
	assert_int_equal(selection_rename(&selection, 0, "a"), 0);
	assert_int_equal(selection_rename(&selection, 1, "a"), 0);
	assert_int_equal(selection.count, 2);
	assert_int_equal(selection_rename(&selection, 1, "d"), 0);
	assert_int_equal(selection.count, 2);
	assert_true(has(&selection, "a", "x"));
	assert_true(has(&selection, "a", "y"));
	assert_false(has(&selection, "b", "y"));
	assert_true(has(&selection, "d", "z"));
	assert_int_equal(selection_rename(&selection, 1, NULL), 0);
	assert_true(has(&selection, NULL, "z"));
	selection_done(&selection);
}

TEST(plain_names_must_be_those_of_interfaces)
{
	static const char *const interfaces[] = { "eth0", "/none/", "eth1", NULL };
	struct selection selection = select_from(interfaces, NULL);
	struct netifs netifs = { 0 };
	struct witness witness = { 0 };
	struct log log = witness_log(&witness);
	struct netif *netif;

	strcpy(netifs_ensure(&netifs, 1)->name, "eth0");
	assert_int_equal(selected_check_names(&selection.items[0], NULL,
					      &netifs, &log),
			 -ENODEV);
	assert_true(witness_read(&witness, "eth1: no such interface"));
	netif = netifs_ensure(&netifs, 2);
	strcpy(netif->name, "eth1");
	assert_int_equal(selected_check_names(&selection.items[0], NULL,
					      &netifs, &log),
			 0);
	netif->gone_ns = 1;
	assert_int_equal(selected_check_names(&selection.items[0], NULL,
					      &netifs, &log),
			 -ENODEV);
	netif->gone_ns = 0;
	strcpy(netif->name, "eth2");
	netif->altnames = calloc(2, 1);
	assert_int_equal(selected_check_names(&selection.items[0], NULL,
					      &netifs, &log),
			 -ENODEV);
	free(netif->altnames);
	netif->altnames = calloc(1, sizeof("eth1") + 1);
	memcpy(netif->altnames, "eth1", sizeof("eth1"));
	assert_int_equal(selected_check_names(&selection.items[0], NULL,
					      &netifs, &log),
			 0);
	netif->gone_ns = 1;
	/* A namespace that was selected before may be absent. */
	assert_int_equal(selected_check_names(&selection.items[0],
					      &selection.items[0], &netifs, &log),
			 0);
	netifs_done(&netifs);
	selection_done(&selection);
	witness_clear(&witness);
}
