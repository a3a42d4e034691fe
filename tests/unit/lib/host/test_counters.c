// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Counters of a network namespace. */
#include "lib_test.h"

#include "host/rtnl.h"
#include "host/netns.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <sys/socket.h>
#include <unistd.h>

static const char netstat[] =
	"TcpExt: SyncookiesSent ListenOverflows ListenDrops\n"
	"TcpExt: 1 22 333\n"
	"IpExt: InNoRoutes ListenDrops\n"
	"IpExt: 4 5\n";

static const char conntrack[] =
	"entries  clashres found new drop early_drop\n"
	"0000000a  00000000 00000001 00000000 00000010 0000000f\n"
	"0000000a  00000000 00000002 00000000 00000001 00000000\n";

TEST(a_number_is_behind_its_name)
{
	const char *names = counters_line(netstat, "TcpExt:");

	assert_int_equal(counters_sum(names, "ListenOverflows", 10, 1), 22);
	assert_int_equal(counters_sum(names, "ListenDrops", 10, 1), 333);
	assert_int_equal(counters_sum(names, "Listen", 10, 1), 0);
	assert_int_equal(counters_sum(counters_line(netstat, "IpExt:"),
				      "ListenDrops", 10, 1),
			 5);
	assert_null(counters_line(netstat, "MPTcpExt:"));
}

TEST(lines_of_cpus_are_summed)
{
	assert_int_equal(counters_sum(conntrack, "drop", 16, UINT32_MAX), 0x11);
	assert_int_equal(counters_sum(conntrack, "early_drop", 16, UINT32_MAX),
			 0xf);
}

TEST(a_line_that_ends_early_has_no_number)
{
	assert_int_equal(counters_sum("a b\n1\n7 8\n", "b", 10, 1), 0);
	assert_int_equal(counters_sum("a b\n1\n7 8\n", "b", 10, 2), 8);
	assert_int_equal(counters_sum("a b", "b", 10, 9), 0);
	assert_int_equal(counters_sum("", "b", 10, 9), 0);
}

static void note_port(void *ctx, const struct nlmsghdr *message)
{
	const struct inet_diag_msg *found = NLMSG_DATA(message);
	uint32_t *wanted = ctx;

	if (ntohs(found->id.idiag_sport) == wanted[0]) {
		wanted[1] = found->idiag_rqueue;
		wanted[2] = found->idiag_wqueue;
	}
}

static void note_loopback(void *ctx, const struct nlmsghdr *message)
{
	const struct ifinfomsg *link = NLMSG_DATA(message);

	*(bool *)ctx |= link->ifi_index == 1;
}

/* It takes no privileges to read one's own. */
TEST(sockets_and_interfaces_of_a_namespace_are_visited)
{
	struct sockaddr_in here = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int server = socket(AF_INET, SOCK_STREAM, 0);
	const int client = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(here);
	uint32_t wanted[3] = { 0 };
	bool has_loopback = false;

	assert_false(bind(server, (struct sockaddr *)&here, len) ||
		     listen(server, 3));
	getsockname(server, (struct sockaddr *)&here, &len);
	assert_false(connect(client, (struct sockaddr *)&here, len));
	wanted[0] = ntohs(here.sin_port);
	assert_false(netns_dump_listeners(-1, note_port, wanted));
	assert_int_equal(wanted[1], 1);
	assert_int_equal(wanted[2], 3);
	assert_false(netns_dump_links(-1, note_loopback, &has_loopback));
	assert_true(has_loopback);
	close(client);
	close(server);
}
