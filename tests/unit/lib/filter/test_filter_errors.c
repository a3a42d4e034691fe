// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Expressions that are not filters, and filters that not all kinds of links support. */
#include "lib_test.h"

#include "filter/filter.h"

static const struct log silent;

static void assert_refused(const char *expression, int err, const char *words)
{
	char error[FILTER_ERROR_MAX] = "";
	struct filter *filter = NULL;

	assert_int_equal(filter_new(expression, &filter, &error), err);
	assert_null(filter);
	if (!strstr(error, words))
		fail_msg("'%.80s': '%s' lacks '%s'", expression, error, words);
}

static struct filter *compiled(const char *expression)
{
	char error[FILTER_ERROR_MAX] = "";
	struct filter *filter = NULL;

	if (filter_new(expression, &filter, &error))
		fail_msg("%s: %s", expression, error);
	return filter;
}

TEST(a_syntax_error_has_its_place)
{
	assert_refused("tcp prt 5 or udp", -EINVAL, "at 'prt 5 or udp'");
	assert_refused("tcp port 443 adn host 10.0.0.1", -EINVAL,
		       "at 'adn host 10.0.0.1'");
	assert_refused("(tcp", -EINVAL, "at '(tcp'");
	assert_refused("tcp and", -EINVAL, "at 'and'");
	assert_refused("udp port 5)", -EINVAL, "at 'port 5)'");
}

TEST(other_errors_are_libpcaps)
{
	assert_refused("host nosuchhost.invalid", -EINVAL, "nosuchhost.invalid");
	assert_refused("port 99999", -EINVAL, "99999");
	assert_refused("tcp and udp", -EINVAL, "rejects all packets");
	assert_refused("ip[1:3] = 0", -EINVAL, "data size");
}

TEST(inner_has_its_place)
{
	static const char *const accepted[] = {
		"inner tcp port 80",
		" inner(tcp or udp)",
		"udp port 4789 and inner tcp",
		"(udp or tcp) && inner not tcp",
		"host 10.0.0.1 or tcp and inner host 10.0.0.2 and icmp",
	};

	for (size_t i = 0; i < ARRAY_SIZE(accepted); i++)
		filter_free(compiled(accepted[i]));
	assert_refused(" (inner tcp)", -EINVAL, "at 'inner tcp)'");
	assert_refused("not inner tcp", -EINVAL, "at 'inner tcp'");
	assert_refused("udp or inner tcp", -EINVAL, "at 'inner tcp'");
	assert_refused("(udp and inner tcp) or arp", -EINVAL, "at 'inner tcp)");
	assert_refused("and inner tcp", -EINVAL, "at 'inner tcp'");
	assert_refused("inner tcp and inner udp", -EINVAL, "at 'inner udp'");
	assert_refused("inner", -EINVAL, "has to follow");
	assert_refused("tcp and inner ", -EINVAL, "has to follow");
	assert_refused("inner tcp prt 5", -EINVAL, "at 'prt 5'");
	assert_refused("udp prt 5 and inner tcp", -EINVAL, "at 'prt 5'");
	assert_refused("inner inbound", -EINVAL, "'inbound', 'outbound'");
	/* A name of a host, which is unknown. */
	assert_refused("host inner", -EINVAL, "unknown");
	assert_refused("host outer-inner", -EINVAL, "outer-inner");
}

TEST(what_is_not_in_a_frame_is_refused)
{
	assert_refused("inbound", -EINVAL, "'inbound', 'outbound'");
	assert_refused("not outbound", -EINVAL, "'inbound', 'outbound'");
	assert_refused("tcp or ifindex 2", -EINVAL, "'ifindex'");
	assert_refused("udp and not ifindex 2", -EINVAL, "'ifindex'");
}

TEST(a_long_expression_has_a_message)
{
	enum { SIZE = 64 << 10 };
	char *text = malloc(SIZE + 1);

	memset(text, ' ', SIZE);
	text[SIZE] = '\0';
	assert_refused(text, -E2BIG, "4096 are the most");
	memset(text, '(', 4000);
	text[4000] = '\0';
	assert_refused(text, -EINVAL, "at '(((");
	free(text);
}

TEST(a_link_without_addresses_is_objected_to)
{
	struct filter *filter = compiled("ether host 02:00:00:00:00:01");

	assert_int_equal(filter_check(filter, LINK_ETHERNET, "here", &silent), 0);
	assert_int_equal(filter_check(filter, LINK_NONE, "here", &silent),
			 -EINVAL);
	filter_free(filter);
}

TEST(a_link_on_which_nothing_matches_is_not)
{
	struct filter *filter = compiled("arp");

	assert_int_equal(filter_check(filter, LINK_NONE, "here", &silent), 0);
	assert_string_equal(filter_expression(filter), "arp");
	filter_free(filter);
}
