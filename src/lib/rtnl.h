/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* rtnetlink(7): dumps, and notifications about links. */
#ifndef NETOBS_LIB_RTNL_H
#define NETOBS_LIB_RTNL_H

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

/* What a link message says about an interface. */
struct rtnl_link {
	uint32_t ifindex;
	uint32_t master;
	uint32_t lower; /* in the same namespace */
	uint16_t hardware;
	uint16_t vlan_id;
	bool is_vlan;
	bool deleted;
	char name[IF_NAMESIZE];
};

typedef void (*rtnl_message_fn)(void *ctx, const struct nlmsghdr *message);

/* A socket in the calling thread's network namespace; @groups RTMGRP_*. */
int rtnl_open(uint32_t groups);

/* Ask for a dump: RTM_GETLINK, RTM_GETTFILTER ... with its fixed header. */
int rtnl_request_dump(int fd, uint16_t type, const void *header, uint32_t len);

/*
 * Read what has arrived, or without @wait a part of it. 1: the end of a dump was
 * among it; 0: not yet, or nothing more for now; -ENOBUFS: notifications were lost,
 * dump again.
 */
int rtnl_receive(int fd, bool wait, rtnl_message_fn on_message, void *ctx);

/* Dump on a socket without groups, until its end. */
int rtnl_dump(int fd, uint16_t type, const void *header, uint32_t len,
	      rtnl_message_fn on_message, void *ctx);

/* Ask for one thing that is no dump, on a socket without groups. */
int rtnl_ask(int fd, uint16_t type, const void *header, uint32_t len,
	     rtnl_message_fn on_message, void *ctx);

/* False when the message is not about a link. */
bool rtnl_parse_link(const struct nlmsghdr *message, struct rtnl_link *ret_link);

#endif
