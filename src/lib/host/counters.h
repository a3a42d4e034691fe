/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What the kernel counts in a network namespace. */
#ifndef NETOBS_HOST_COUNTERS_H
#define NETOBS_HOST_COUNTERS_H

#include "rtnl.h"

#include <stdint.h>

/* Of all time; a counter that the kernel does not have is 0. */
struct netns_counters {
	uint64_t listen_overflows;  /* TcpExtListenOverflows */
	uint64_t listen_drops;	    /* TcpExtListenDrops */
	uint64_t udp_buffer_errors; /* RcvbufErrors of UDP, over IPv4 and IPv6 */
	uint64_t conntrack_drops; /* drop, early_drop and insert_failed of nf_conntrack */
};

/**
 * Read the counters of a namespace from the files in /proc/net.
 *
 * @return 0, or -errno: of netns_enter()
 */
int netns_counters_read(int ns_fd, struct netns_counters *ret_counters);

/*
 * Find a number in such a file. @names: a line with names, and behind it @n lines with numbers to
 * @base in the order of the names. @return the sum of the numbers of @name
 */
uint64_t counters_sum(const char *names, const char *name, int base, uint32_t n);

/** @return the line of @text that begins with @prefix; NULL: there is none */
const char *counters_line(const char *text, const char *prefix);

/** List the sockets of TCP that listen in a namespace: struct inet_diag_msg. @return 0, or -errno */
int netns_dump_listeners(int ns_fd, rtnl_message_fn on_socket, void *ctx);

/** List the interfaces of a namespace: struct ifinfomsg. @return 0, or -errno */
int netns_dump_links(int ns_fd, rtnl_message_fn on_link, void *ctx);

#endif
