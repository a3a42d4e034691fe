// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Which connections an expression chooses: by a segment of either direction, whichever end is first. */
#include "lib_addr.h"
#include "lib_test.h"

#include "bpf/parse/headers.h"
#include "trace/trace_state.h"

struct end {
	const char *addr;
	uint16_t port;
};

static struct ip_addr make_addr(const char *text)
{
	struct ip_addr addr;

	set_addr(addr.bytes, text);
	return addr;
}

static struct trace_tuple make_tuple(const struct end *one,
				     const struct end *other)
{
	return (struct trace_tuple){
		.addrs = { make_addr(one->addr), make_addr(other->addr) },
		.ports = { one->port, other->port },
		.proto = IP_PROTO_TCP,
	};
}

static bool matches(const struct filter *filter, const struct end *one,
		    const struct end *other)
{
	const struct trace_tuple tuple = make_tuple(one, other);
	const struct trace_tuple turned = make_tuple(other, one);
	const bool is_match = trace_match(filter, &tuple);

	assert_int_equal(trace_match(filter, &turned), is_match);
	return is_match;
}

static void assert_match(const char *expression, const struct end ends[2],
			 bool expected)
{
	char error[FILTER_ERROR_MAX] = "";
	struct filter *filter = NULL;

	if (filter_new(expression, &filter, &error))
		fail_msg("%s: %s", expression, error);
	if (matches(filter, &ends[0], &ends[1]) != expected)
		fail_msg("%s, %s port %u and %s port %u: not %d", expression,
			 ends[0].addr, ends[0].port, ends[1].addr, ends[1].port,
			 expected);
	filter_free(filter);
}

static const struct end v4[] = { { "192.0.2.1", 40000 }, { "198.51.100.9", 443 } };
static const struct end v6[] = { { "2001:db8::1", 40000 },
				 { "2001:db8:5::9", 443 } };
/* The first 64 bits of both are the same. */
static const struct end near6[] = { { "2001:db8::1", 8080 },
				    { "2001:db8::2", 9090 } };

TEST(hosts_ports_and_nets_are_of_either_end)
{
	static const struct {
		const char *expression;
		const struct end *ends;
		bool is_match;
	} cases[] = {
		{ "tcp", v4, true },
		{ "tcp", v6, true },
		{ "ip", v6, false },
		{ "ip6", v6, true },
		{ "udp", v4, false },
		{ "host 198.51.100.9", v4, true },
		{ "src host 192.0.2.1", v4, true },
		{ "dst host 192.0.2.1", v4, true },
		{ "src host 192.0.2.1 and dst port 443", v4, true },
		{ "src host 192.0.2.1 and src port 443", v4, false },
		{ "src host 192.0.2.1 and dst host 192.0.2.1", v4, false },
		{ "port 443", v4, true },
		{ "port 444", v4, false },
		{ "net 192.0.2.0/24", v4, true },
		{ "net 2001:db8:5::/48", v6, true },
		{ "host 2001:db8::1 and host 2001:db8:5::9", v6, true },
		{ "src host 2001:db8::1 and src port 8080", near6, true },
		{ "src host 2001:db8::1 and src port 9090", near6, false },
		/* Not one packet of it. */
		{ "src port 443 and dst port 80", v4, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_match(cases[i].expression, cases[i].ends,
			     cases[i].is_match);
}

TEST(either_direction_may_match_a_negation)
{
	assert_match("not src host 192.0.2.1", v4, true);
	assert_match("not host 192.0.2.1", v4, false);
	assert_match("not port 443", v6, false);
	assert_match("not port 80", v6, true);
}

TEST(without_an_expression_all_match)
{
	assert_true(matches(NULL, &v4[0], &v4[1]));
	assert_true(matches(NULL, &v6[0], &v6[1]));
}

TEST(a_segment_has_the_flags_and_length_of_an_acknowledgment)
{
	assert_match("tcp[tcpflags] & tcp-ack != 0", v4, true);
	assert_match("tcp[tcpflags] & tcp-syn != 0", v4, false);
	assert_match("less 80", v4, true);
	assert_match("greater 80", v6, false);
}
