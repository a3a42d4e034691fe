// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "sinks/net/net.h"

#include "lib_sink_host.h"

#include <arpa/inet.h>
#include <netinet/in.h>

TEST_FIXTURE(struct test_host, test_host_open, test_host_close)

#define CASE(name) TEST_OF(name, struct test_host *host, set_up, tear_down)

CASE(address_is_a_host_and_a_port)
{
	static const struct {
		const char *text, *host, *name;
		uint16_t port;
	} cases[] = {
		{ "//collector.example:4740", "collector.example",
		  "collector.example:4740", 4740 },
		{ "//10.1.2.3:1", "10.1.2.3", "10.1.2.3:1", 1 },
		{ "//10.1.2.3", "10.1.2.3", "10.1.2.3:4739", 4739 },
		{ "//[2001:db8::1]:65535", "2001:db8::1", "[2001:db8::1]:65535",
		  65535 },
		{ "//[::1]", "::1", "[::1]:4739", 4739 },
	};
	struct spec spec;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct address address;

		test_host_spec(host, "ipfix", &spec);
		assert_true(address_parse(&spec, cases[i].text, 4739, &address));
		assert_string_equal(address.host, cases[i].host);
		assert_string_equal(address.name, cases[i].name);
		assert_int_equal(address.port, cases[i].port);
		spec_free(&spec);
	}
}

CASE(wrong_addresses_are_refused_with_the_reason)
{
	static const struct {
		const char *text, *reason;
	} cases[] = {
		{ NULL, "//HOST:PORT is missing" },
		{ "host:1", "//HOST:PORT is missing" },
		{ "//", "has no host" },
		{ "//:4739", "has no host" },
		{ "//host", "has no port" },
		{ "//host:", "port is not" },
		{ "//host:0", "port is not" },
		{ "//host:65536", "port is not" },
		{ "//host:1x", "port is not" },
		{ "//host:-1", "port is not" },
		{ "//host:99999999999999999999", "port is not" },
		{ "//host/path:1", "there is '/'" },
		{ "//host:1/path", "port is not" },
		{ "//me@host:1", "there is '@'" },
		{ "//::1:4739", "must be in brackets" },
		{ "//2001:db8::1", "must be in brackets" },
		{ "//[::1", "brackets" },
		{ "//[::1]4739", "brackets" },
		{ "//[]:1", "has no host" },
		{ "//[host]:1", "not an IPv6 address" },
		{ "//[1.2.3.4]:1", "not an IPv6 address" },
		{ "//[::g]:1", "not an IPv6 address" },
	};
	struct spec spec;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct address address;

		test_host_spec(host, "ipfix", &spec);
		assert_false(address_parse(&spec, cases[i].text, 0, &address));
		assert_true(spec.is_wrong);
		if (!strstr(host->logged, cases[i].reason))
			fail_msg("%s: %s", cases[i].text, host->logged);
		spec_free(&spec);
	}
}

CASE(long_names_are_refused)
{
	char text[600] = "//";
	struct address address;
	struct spec spec;

	memset(text + 2, 'a', 590);
	test_host_spec(host, "ipfix", &spec);
	assert_false(address_parse(&spec, text, 1, &address));
	spec_free(&spec);
}

CASE(source_is_an_address)
{
	struct sockaddr_storage source;
	struct in_addr expected = { htonl(0x0a000001) };
	struct spec spec;

	test_host_spec(host, "ipfix", &spec);
	address_read_source(&spec, &source);
	assert_int_equal(source.ss_family, AF_UNSPEC);
	spec_free(&spec);

	test_host_spec(host, "ipfix?source=10.0.0.1", &spec);
	address_read_source(&spec, &source);
	assert_int_equal(source.ss_family, AF_INET);
	assert_memory_equal(&((struct sockaddr_in *)&source)->sin_addr,
			    &expected, sizeof(expected));
	assert_int_equal(spec_finish(&spec), 0);
	spec_free(&spec);

	test_host_spec(host, "ipfix?source=eth0", &spec);
	address_read_source(&spec, &source);
	assert_true(spec.is_wrong);
	assert_non_null(strstr(host->logged, "'eth0' is not an IP address"));
	spec_free(&spec);
}
