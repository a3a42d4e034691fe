/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* rtnetlink(7): dumps, and notifications about links. */
#ifndef NETOBS_HOST_RTNL_H
#define NETOBS_HOST_RTNL_H

#include "bpf/types.h"

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

/* Interfaces by the way they pass packets on to others; see topology.h. */
enum link_type {
	LINK_TYPE_OTHER, /* to and from outside, or by another packet: WireGuard */
	LINK_TYPE_LOOPBACK,
	LINK_TYPE_PAIR, /* veth, netkit */
	LINK_TYPE_VLAN,
	LINK_TYPE_MACVLAN, /* macvlan, macvtap */
	LINK_TYPE_IPVLAN,  /* ipvlan, ipvtap */
	LINK_TYPE_BRIDGE,
	LINK_TYPE_BOND, /* bond, team */
	LINK_TYPE_VRF,
	LINK_TYPE_IFB, /* packets that tc redirects to it return to where they came from */
	LINK_TYPE_TUNNEL, /* its packets pass other interfaces inside of outer packets */
};

enum { NSID_SAME = -1 };

/* The tunnel whose packets an interface decapsulates and encapsulates. */
struct link_tunnel {
	enum tunnel_type type;
	bool is_any;	 /* any VNI: routes or other programs choose it */
	uint32_t vni_in; /* or the GRE key; 0 if there is none */
	uint32_t vni_out;
};

/* The attributes of an interface in a link message. */
struct rtnl_link {
	uint32_t ifindex;
	uint32_t master;
	uint32_t link; /* IFLA_LINK: a pair's peer, a VLAN's lower interface; 0 */
	int32_t link_nsid; /* the namespace of link: IFLA_LINK_NETNSID */
	enum link_type type;
	uint16_t hardware;
	uint16_t vlan_id;	   /* LINK_TYPE_VLAN */
	struct link_tunnel tunnel; /* LINK_TYPE_TUNNEL */
	bool is_up;
	bool deleted;
	char name[IF_NAMESIZE];
	const struct rtattr *altnames; /* in the message; NULL: it has none */
};

typedef void (*rtnl_message_fn)(void *ctx, const struct nlmsghdr *message);

/*
 * Open a socket of netlink(7) in the network namespace of @ns_fd; -1: in the calling thread's.
 *
 * @param protocol  NETLINK_*
 * @return it, or -errno
 */
int netlink_open_in(int ns_fd, int protocol, uint32_t groups);

/* netlink_open_in() for rtnetlink(7); @groups: RTMGRP_* */
int rtnl_open_in(int ns_fd, uint32_t groups);

/* Ask for a dump: RTM_GETLINK, RTM_GETTFILTER ... with its fixed header. */
int rtnl_request_dump(int fd, uint16_t type, const void *header, uint32_t len);

/*
 * Read the messages that have arrived, or without @wait a part of them.
 *
 * @return 1: the end of a dump was among them; 0: not yet, or no more messages for now;
 *         -ENOBUFS: notifications were lost, dump again
 */
int rtnl_receive(int fd, bool wait, rtnl_message_fn on_message, void *ctx);

/* Dump on a socket without groups, until its end. */
int rtnl_dump(int fd, uint16_t type, const void *header, uint32_t len,
	      rtnl_message_fn on_message, void *ctx);

/* Send a request that is no dump, and read its answer, on a socket without groups. */
int rtnl_ask(int fd, uint16_t type, const void *header, uint32_t len,
	     rtnl_message_fn on_message, void *ctx);

/*
 * @return the id that the socket's namespace has for the namespace of @ns_fd, as in
 *         IFLA_LINK_NETNSID; -ENOENT: it has none
 */
int rtnl_nsid(int fd, int ns_fd);

/* Like rtnl_nsid(), but the kernel assigns an id if there is none yet. */
int rtnl_assign_nsid(int fd, int ns_fd);

/* Like rtnl_nsid(), for the namespace of a process; -ESRCH: no such process. It takes no privileges. */
int rtnl_nsid_of_process(int fd, uint32_t pid);

/*
 * @return the id that namespace @target has for namespace @nsid, both given as ids of the socket's
 *         namespace; -ENOENT: it has none
 */
int rtnl_nsid_in(int fd, int32_t nsid, int32_t target);

/* List the links of the namespace with the id @nsid, on a socket without groups. */
int rtnl_dump_links_of(int fd, int32_t nsid, rtnl_message_fn on_link, void *ctx);

/* ---- Attributes ------------------------------------------------------------------ */

/* @return the first attribute of @type in @len bytes of attributes; NULL: there is none */
const struct rtattr *rtnl_attr_find(const struct rtattr *attr, int len,
				    uint16_t type);

/* Find an attribute of @type among those nested in @outer, which may be NULL. */
const struct rtattr *rtnl_attr_inside(const struct rtattr *outer, uint16_t type);

/* @return the attribute's number; 0: @attr is NULL */
uint32_t rtnl_attr_u32(const struct rtattr *attr);

/* @return the altnames of a link, each with its NUL, then an empty one; NULL: none, or no memory */
char *rtnl_copy_altnames(const struct rtattr *altnames);

/* False when the message is not about a link. */
bool rtnl_parse_link(const struct nlmsghdr *message, struct rtnl_link *ret_link);

/* The addresses of the interfaces of a network namespace. */

struct addresses {
	uint8_t (*list)[16]; /* IPv4 as ::ffff:a.b.c.d */
	uint32_t n;
};

/**
 * Read the addresses of a namespace, in place of the previous ones.
 *
 * @param ns_fd  -1: the calling thread's namespace
 * @return 0, or -errno: nothing has changed
 */
int addresses_read(struct addresses *addresses, int ns_fd);
void addresses_done(struct addresses *addresses);

/** @return whether @address is among them, or in 127.0.0.0/8 */
bool addresses_have(const struct addresses *addresses, const uint8_t address[16]);

/* ---- Counters ---------------------------------------------------------------------------- */

/* Counters of the kernel for a network namespace. */

/* Counted since the namespace was made; a counter that the kernel does not have is 0. */
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
