// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause

#include "base/io.h"
#include "base/util.h"
#include "netns.h"
#include "rtnl.h"

#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum {
	FILE_MAX = 1 << 20, /* a line for each CPU */
	STATE_LISTEN = 10,  /* TCP_LISTEN of the kernel */
};

/* ---- Text --------------------------------------------------------------------------- */

static const char *next_line(const char *text)
{
	const char *end = strchr(text, '\n');

	return end ? end + 1 : "";
}

const char *counters_line(const char *text, const char *prefix)
{
	while (*text && strncmp(text, prefix, strlen(prefix)) != 0)
		text = next_line(text);
	return *text ? text : NULL;
}

/* @return the word behind the first @n of a line; "": it has no more */
static const char *word_at(const char *line, uint32_t n, size_t *ret_len)
{
	for (;; line += *ret_len) {
		line += strspn(line, " \t");
		*ret_len = strcspn(line, " \t\n");
		if (!*ret_len)
			return "";
		if (!n--)
			return line;
	}
}

uint64_t counters_sum(const char *names, const char *name, int base, uint32_t n)
{
	uint64_t sum = 0;
	uint32_t column = 0;
	size_t len;

	for (;; column++) {
		const char *word = word_at(names, column, &len);

		if (!len)
			return 0;
		if (len == strlen(name) && !strncmp(word, name, len))
			break;
	}
	for (const char *line = next_line(names); *line && n--;
	     line = next_line(line))
		sum += strtoull(word_at(line, column, &len), NULL, base);
	return sum;
}

/* ---- Files -------------------------------------------------------------------------- */

/* NULL: there is none. The caller's. */
static char *read_net(const char *name)
{
	char path[64], *text = NULL;
	size_t len;

	snprintf(path, sizeof(path), "/proc/thread-self/net/%s", name);
	return io_read_file(path, 0, FILE_MAX, &text, &len) ? NULL : text;
}

static void read_tcp(struct netns_counters *counters)
{
	cleanup_free char *text = read_net("netstat");
	const char *names = text ? counters_line(text, "TcpExt:") : NULL;

	if (!names)
		return;
	counters->listen_overflows =
		counters_sum(names, "ListenOverflows", 10, 1);
	counters->listen_drops = counters_sum(names, "ListenDrops", 10, 1);
}

static void read_udp(struct netns_counters *counters)
{
	static const char name6[] = "Udp6RcvbufErrors";
	cleanup_free char *text = read_net("snmp"), *text6 = read_net("snmp6");
	const char *names = text ? counters_line(text, "Udp:") : NULL;
	const char *line6 = text6 ? counters_line(text6, name6) : NULL;

	if (names)
		counters->udp_buffer_errors =
			counters_sum(names, "RcvbufErrors", 10, 1);
	if (line6)
		counters->udp_buffer_errors +=
			strtoull(line6 + strlen(name6), NULL, 10);
}

static void read_conntrack(struct netns_counters *counters)
{
	static const char *const names[] = { "drop", "early_drop",
					     "insert_failed" };
	cleanup_free char *text = read_net("stat/nf_conntrack");

	for (size_t i = 0; text && i < ARRAY_SIZE(names); i++)
		counters->conntrack_drops +=
			counters_sum(text, names[i], 16, UINT32_MAX);
}

int netns_counters_read(int ns_fd, struct netns_counters *ret_counters)
{
	int back, err = netns_enter(ns_fd, &back);

	if (err)
		return err;
	*ret_counters = (struct netns_counters){ 0 };
	read_tcp(ret_counters);
	read_udp(ret_counters);
	read_conntrack(ret_counters);
	netns_leave(back);
	return 0;
}

/* ---- Netlink ------------------------------------------------------------------------ */

int netns_dump_listeners(int ns_fd, rtnl_message_fn on_socket, void *ctx)
{
	struct inet_diag_req_v2 request = {
		.sdiag_family = AF_INET,
		.sdiag_protocol = IPPROTO_TCP,
		.idiag_states = 1 << STATE_LISTEN,
	};
	cleanup_fd int fd = netlink_open_in(ns_fd, NETLINK_SOCK_DIAG, 0);
	int err;

	if (fd < 0)
		return fd;
	err = rtnl_dump(fd, SOCK_DIAG_BY_FAMILY, &request, sizeof(request),
			on_socket, ctx);
	if (err)
		return err;
	request.sdiag_family = AF_INET6;
	return rtnl_dump(fd, SOCK_DIAG_BY_FAMILY, &request, sizeof(request),
			 on_socket, ctx);
}

int netns_dump_links(int ns_fd, rtnl_message_fn on_link, void *ctx)
{
	const struct ifinfomsg request = { .ifi_family = AF_UNSPEC };
	cleanup_fd int fd = rtnl_open_in(ns_fd, 0);

	return fd < 0 ? fd :
			rtnl_dump(fd, RTM_GETLINK, &request, sizeof(request),
				  on_link, ctx);
}
