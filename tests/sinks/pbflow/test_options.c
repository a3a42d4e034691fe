// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Options of protobuf records, and the address of the default route. */
#include "lib_lab.h"
#include "lib_test.h"

#include "sink/host_fields.h"
#include "sinks/pbflow/pbflow.h"

#include <arpa/inet.h>
#include <sched.h>

/* ---- Options --------------------------------------------------------------------- */

static int read_options(const char *text, struct pbflow_options *ret_options)
{
	static const struct log log;
	struct spec spec;
	int err;

	assert_int_equal(spec_parse(&spec, text, &log), 0);
	agent_read_address(&spec, ret_options->agent_ip);
	err = spec_finish(&spec);
	spec_free(&spec);
	return err;
}

TEST(agent_address_is_an_option)
{
	static const uint8_t v4[16] = { [10] = 0xff, 0xff, 192, 0, 2, 9 };
	struct pbflow_options read;
	uint8_t v6[16];

	inet_pton(AF_INET6, "2001:db8::9", v6);
	assert_int_equal(read_options("x?agent_ip=192.0.2.9", &read), 0);
	assert_memory_equal(read.agent_ip, v4, 16);
	assert_int_equal(read_options("x?agent_ip=2001:db8::9", &read), 0);
	assert_memory_equal(read.agent_ip, v6, 16);
	assert_int_equal(read_options("x?agent_ip=eth0", &read), -EINVAL);
	assert_int_equal(read_options("x?agent_ip=", &read), -EINVAL);
	assert_int_equal(read_options("x", &read), 0);
}

static void expect_agent(const char *address)
{
	char text[INET6_ADDRSTRLEN];
	struct pbflow_options read;
	bool is_v4 = !strchr(address, ':');

	assert_int_equal(read_options("x", &read), 0);
	inet_ntop(is_v4 ? AF_INET : AF_INET6, read.agent_ip + (is_v4 ? 12 : 0),
		  text, sizeof(text));
	assert_string_equal(text, address);
}

static void write_line(const char *path, const char *line)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	fputs(line, file);
	assert_int_equal(fclose(file), 0);
}

/* Any user may make a network namespace in a user namespace: user_namespaces(7). */
static void enter_as_root_of_a_namespace(void)
{
	char users[32], groups[32];

	snprintf(users, sizeof(users), "0 %u 1", geteuid());
	snprintf(groups, sizeof(groups), "0 %u 1", getegid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		fail_msg("needs root, or user namespaces");
	write_line("/proc/self/setgroups", "deny");
	write_line("/proc/self/uid_map", users);
	write_line("/proc/self/gid_map", groups);
	lab_run("ip link set lo up");
}

/* The first interface is not the one that other hosts know this one by. */
TEST(agent_address_is_of_the_default_route)
{
	bool is_root = !geteuid();
	struct lab lab;

	if (is_root)
		lab_enter(&lab);
	else
		enter_as_root_of_a_namespace();
	lab_run("ip link add m0 type veth peer name m1");
	lab_run("ip link add u0 type veth peer name u1");
	lab_run("ip address add 10.71.1.1/24 dev m0");
	lab_run("ip address add 10.72.2.2/24 dev u0");
	lab_run("ip address add 2001:db8:71::1/64 dev m0 nodad");
	lab_run("ip address add 2001:db8:72::2/64 dev u0 nodad");
	for (const char *name = "m0\0m1\0u0\0u1\0"; *name; name += 3)
		lab_run("ip link set %s up", name);
	expect_agent("10.71.1.1"); /* as there is no route */
	lab_run("ip -6 route add default via 2001:db8:72::1 dev u0");
	expect_agent("2001:db8:72::2");
	lab_run("ip route add default via 10.72.2.1 dev u0");
	expect_agent("10.72.2.2");
	lab_run("ip route change default via 10.71.1.9 dev m0");
	expect_agent("10.71.1.1");
	if (is_root)
		lab_leave(&lab);
}
