// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Names of hosts and ports come later, and never block. */
#include "lib_test.h"
#include "lib_wait.h"

#include <netobs/names.h>
#include <poll.h>

static int queue = 256; /* questions that can wait */

/* 10.0.0.13 never answers; 10.0.0.14 has no name; the names of others need cleaning. */
static int look_up_test(const uint8_t *addr, uint16_t port, uint8_t proto,
			char *name, size_t size, void *user)
{
	(void)port;
	(void)proto;
	assert_ptr_equal(user, &queue);
	if (!addr)
		return -ENOENT;
	if (addr[15] == 13)
		for (;;)
			pause();
	snprintf(name, size, "host\033%u", addr[15]);
	return addr[15] == 14 ? -ENOENT : 0;
}

static const struct netobs_names_opts opts = { .sz = sizeof(opts),
					       .look_up = look_up_test,
					       .user = &queue };

static const char *host_text(struct netobs_names *names, uint8_t last)
{
	const uint8_t addr[16] = { [10] = 0xff, 0xff, 10, 0, 0, last };
	static char text[NETOBS_NAME_MAX];

	netobs_names_host(names, addr, text, sizeof(text));
	return text;
}

TEST(names_come_later_and_never_block)
{
	struct pollfd fd = { .events = POLLIN };
	struct netobs_names *names = NULL;

	assert_int_equal(netobs_names_new(&opts, &names), 0);
	fd.fd = netobs_names_fd(names);
	assert_string_equal(host_text(names, 13), "10.0.0.13");
	assert_string_equal(host_text(names, 14), "10.0.0.14");
	assert_string_equal(host_text(names, 1), "10.0.0.1");
	while (strcmp(host_text(names, 1), "host?1") != 0) {
		assert_int_equal(poll(&fd, 1, WAIT_MS), 1);
		netobs_names_poll(names, 0);
	}
	assert_int_equal(netobs_names_poll(names, 10), 0); /* one is not answered */
	assert_string_equal(host_text(names, 13), "10.0.0.13");
	assert_string_equal(host_text(names, 14), "10.0.0.14");
	netobs_names_free(names);
	assert_int_equal(netobs_names_poll(NULL, 0), -EINVAL);
}

TEST(more_hosts_than_the_cache_holds_have_names_in_the_end)
{
	struct netobs_names *names = NULL;

	assert_int_equal(netobs_names_new(&opts, &names), 0);
	for (uint32_t i = 0; i < 20000; i++) {
		uint8_t addr[16] = { 0x20 };
		char text[NETOBS_NAME_MAX];

		memcpy(addr + 4, &i, sizeof(i));
		netobs_names_host(names, addr, text, sizeof(text));
		if (i % (uint32_t)queue == 0)
			netobs_names_poll(names, WAIT_MS);
	}
	netobs_names_poll(names, WAIT_MS);
	host_text(names, 1);
	netobs_names_poll(names, WAIT_MS);
	assert_string_equal(host_text(names, 1), "host?1");
	netobs_names_free(names);
}

TEST(without_names_there_are_numbers)
{
	const uint8_t addr[16] = { [10] = 0xff, 0xff, 192, 0, 2, 1 };
	char text[NETOBS_NAME_MAX];

	assert_int_equal(netobs_names_host(NULL, addr, text, sizeof(text)), 0);
	assert_string_equal(text, "192.0.2.1");
	assert_int_equal(netobs_names_port(NULL, 443, 6, text, sizeof(text)), 0);
	assert_string_equal(text, "443");
	assert_int_equal(netobs_names_host(NULL, addr, text, 4), 0);
	assert_string_equal(text, "192");
	assert_int_equal(netobs_names_host(NULL, NULL, text, sizeof(text)),
			 -EINVAL);
	assert_int_equal(netobs_names_port(NULL, 443, 6, text, 0), -EINVAL);
	assert_int_equal(netobs_names_fd(NULL), -EINVAL);
	netobs_names_free(NULL);
}

TEST(ports_have_names_of_the_host)
{
	struct netobs_names *names = NULL;
	char text[NETOBS_NAME_MAX];

	assert_int_equal(netobs_names_new(NULL, &names), 0);
	netobs_names_port(names, 65000, 6, text, sizeof(text));
	assert_string_equal(text, "65000");
	assert_int_equal(netobs_names_poll(names, WAIT_MS), 1);
	assert_int_equal(netobs_names_port(names, 65000, 6, text, sizeof(text)),
			 0);
	netobs_names_free(names);
}
