/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "rtnl.h"

#include "netns.h"
#include "base/util.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/if_tunnel.h>
#include <linux/net_namespace.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
	RECEIVE_SIZE = 32 << 10, /* the kernel's dump messages fit */
	RECEIVE_MAX = 64,	 /* at a time; a caller's loop has other work */
	QUEUE_SIZE = 4 << 20, /* some 1,000 messages wait before any is lost */
};

static int open_netlink(int protocol, uint32_t groups)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK,
				       .nl_groups = groups };
	cleanup_fd int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	const int size = QUEUE_SIZE;

	if (fd < 0)
		return -errno;
	if (groups)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)))
		return -errno;
	return TAKE_FD(fd);
}

int netlink_open_in(int ns_fd, int protocol, uint32_t groups)
{
	int back, fd, err;

	if (ns_fd < 0)
		return open_netlink(protocol, groups);
	err = netns_enter(ns_fd, &back);
	if (err)
		return err;
	fd = open_netlink(protocol, groups);
	netns_leave(back);
	return fd;
}

int rtnl_open_in(int ns_fd, uint32_t groups)
{
	return netlink_open_in(ns_fd, NETLINK_ROUTE, groups);
}

static int send_request(int fd, uint16_t type, uint16_t flags,
			const void *header, uint32_t len)
{
	struct {
		struct nlmsghdr message;
		char header[64];
	} made = {
		.message = {
			.nlmsg_len = NLMSG_LENGTH(len),
			.nlmsg_type = type,
			.nlmsg_flags = NLM_F_REQUEST | flags,
		},
	};

	if (len > sizeof(made.header))
		return -EINVAL;
	memcpy(made.header, header, len);
	if (send(fd, &made, made.message.nlmsg_len, 0) < 0)
		return -errno;
	return 0;
}

int rtnl_request_dump(int fd, uint16_t type, const void *header, uint32_t len)
{
	return send_request(fd, type, NLM_F_DUMP, header, len);
}

/* @return > 0: the end of a dump was reached */
static int walk_messages(const char *buf, ssize_t len,
			 rtnl_message_fn on_message, void *ctx)
{
	const struct nlmsghdr *message = (const struct nlmsghdr *)buf;
	int done = 0;

	for (; NLMSG_OK(message, len); message = NLMSG_NEXT(message, len)) {
		if (message->nlmsg_type == NLMSG_DONE)
			done = 1;
		else if (message->nlmsg_type == NLMSG_ERROR)
			return ((const struct nlmsgerr *)NLMSG_DATA(message))->error;
		else
			on_message(ctx, message);
	}
	return done;
}

static int send_and_read(int fd, uint16_t type, uint16_t flags,
			 const void *header, uint32_t len,
			 rtnl_message_fn on_message, void *ctx)
{
	int err = send_request(fd, type, flags, header, len);
	cleanup_free char *buf = malloc(RECEIVE_SIZE);
	ssize_t got;

	if (err || !buf)
		return err ?: -ENOMEM;
	do
		got = recv(fd, buf, RECEIVE_SIZE, 0);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : walk_messages(buf, got, on_message, ctx);
}

int rtnl_ask(int fd, uint16_t type, const void *header, uint32_t len,
	     rtnl_message_fn on_message, void *ctx)
{
	return send_and_read(fd, type, 0, header, len, on_message, ctx);
}

int rtnl_receive(int fd, bool wait, rtnl_message_fn on_message, void *ctx)
{
	cleanup_free char *buf = malloc(RECEIVE_SIZE);
	int done = 0;

	if (!buf)
		return -ENOMEM;
	for (int n = 0; !done && (wait || n < RECEIVE_MAX); n++) {
		ssize_t len =
			recv(fd, buf, RECEIVE_SIZE, wait ? 0 : MSG_DONTWAIT);

		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0)
			return errno == EAGAIN ? 0 : -errno;
		done = walk_messages(buf, len, on_message, ctx);
	}
	return done;
}

int rtnl_dump(int fd, uint16_t type, const void *header, uint32_t len,
	      rtnl_message_fn on_message, void *ctx)
{
	int err = rtnl_request_dump(fd, type, header, len);

	if (err)
		return err;
	err = rtnl_receive(fd, true, on_message, ctx);
	return err < 0 ? err : 0;
}

/* ---- Attributes --------------------------------------------------------------------- */

const struct rtattr *rtnl_attr_find(const struct rtattr *attr, int len,
				    uint16_t type)
{
	for (; RTA_OK(attr, len); attr = RTA_NEXT(attr, len))
		if ((attr->rta_type & NLA_TYPE_MASK) == type)
			return attr;
	return NULL;
}

const struct rtattr *rtnl_attr_inside(const struct rtattr *outer, uint16_t type)
{
	return outer ? rtnl_attr_find(RTA_DATA(outer), RTA_PAYLOAD(outer), type) :
		       NULL;
}

uint32_t rtnl_attr_u32(const struct rtattr *attr)
{
	uint32_t value = 0;

	if (attr)
		memcpy(&value, RTA_DATA(attr),
		       min_u64(RTA_PAYLOAD(attr), sizeof(value)));
	return value;
}

/* Compare a text with or without the NUL that the kernel sends. */
static bool is_text(const struct rtattr *attr, const char *text)
{
	size_t len = strnlen(RTA_DATA(attr), RTA_PAYLOAD(attr));

	return len == strlen(text) && !memcmp(RTA_DATA(attr), text, len);
}

static enum link_type type_of(const struct rtattr *kind)
{
	static const struct {
		const char *kind;
		enum link_type type;
	} types[] = {
		{ "veth", LINK_TYPE_PAIR },
		{ "netkit", LINK_TYPE_PAIR },
		{ "vlan", LINK_TYPE_VLAN },
		{ "macvlan", LINK_TYPE_MACVLAN },
		{ "macvtap", LINK_TYPE_MACVLAN },
		{ "ipvlan", LINK_TYPE_IPVLAN },
		{ "ipvtap", LINK_TYPE_IPVLAN },
		{ "bridge", LINK_TYPE_BRIDGE },
		{ "bond", LINK_TYPE_BOND },
		{ "team", LINK_TYPE_BOND },
		{ "vrf", LINK_TYPE_VRF },
		{ "ifb", LINK_TYPE_IFB },
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (is_text(kind, types[i].kind))
			return types[i].type;
	return LINK_TYPE_OTHER;
}

/* The attributes of a kind of tunnel. */
struct tunnel_kind {
	const char *kind;
	enum tunnel_type type;
	uint16_t in, out; /* attributes: the VNI or key; 0: there is none */
	uint16_t any;	  /* the attribute of devices that take any VNI */
	bool is_key;	  /* in network byte order */
};

static const struct tunnel_kind *find_tunnel_kind(const struct rtattr *kind)
{
	static const struct tunnel_kind kinds[] = {
		{ "vxlan", TUNNEL_VXLAN, IFLA_VXLAN_ID, IFLA_VXLAN_ID,
		  IFLA_VXLAN_COLLECT_METADATA, false },
		{ "geneve", TUNNEL_GENEVE, IFLA_GENEVE_ID, IFLA_GENEVE_ID,
		  IFLA_GENEVE_COLLECT_METADATA, false },
		{ "gre", TUNNEL_GRE, IFLA_GRE_IKEY, IFLA_GRE_OKEY,
		  IFLA_GRE_COLLECT_METADATA, true },
		{ "gretap", TUNNEL_GRE, IFLA_GRE_IKEY, IFLA_GRE_OKEY,
		  IFLA_GRE_COLLECT_METADATA, true },
		{ "ip6gre", TUNNEL_GRE, IFLA_GRE_IKEY, IFLA_GRE_OKEY,
		  IFLA_GRE_COLLECT_METADATA, true },
		{ "ip6gretap", TUNNEL_GRE, IFLA_GRE_IKEY, IFLA_GRE_OKEY,
		  IFLA_GRE_COLLECT_METADATA, true },
		{ "erspan", TUNNEL_ERSPAN, IFLA_GRE_IKEY, IFLA_GRE_OKEY,
		  IFLA_GRE_COLLECT_METADATA, true },
		{ "ip6erspan", TUNNEL_ERSPAN, IFLA_GRE_IKEY, IFLA_GRE_OKEY,
		  IFLA_GRE_COLLECT_METADATA, true },
		{ "ipip", TUNNEL_IPIP, 0, 0, 0, false },
		{ "sit", TUNNEL_IPIP, 0, 0, 0, false },
		{ "ip6tnl", TUNNEL_IPIP, 0, 0, 0, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (is_text(kind, kinds[i].kind))
			return &kinds[i];
	return NULL;
}

static uint32_t parse_vni(const struct rtattr *data,
			  const struct tunnel_kind *kind, uint16_t type)
{
	uint32_t vni = type ? rtnl_attr_u32(rtnl_attr_inside(data, type)) : 0;

	return kind->is_key ? ntohl(vni) : vni;
}

/* Some flags have no value: their presence sets them. */
static bool is_flag_set(const struct rtattr *flag)
{
	return flag && (!RTA_PAYLOAD(flag) || rtnl_attr_u32(flag));
}

static void parse_tunnel(const struct rtattr *data,
			 const struct tunnel_kind *kind, struct rtnl_link *link)
{
	link->type = LINK_TYPE_TUNNEL;
	link->tunnel = (struct link_tunnel){
		.type = kind->type,
		.is_any = kind->any &&
			  is_flag_set(rtnl_attr_inside(data, kind->any)),
		.vni_in = parse_vni(data, kind, kind->in),
		.vni_out = parse_vni(data, kind, kind->out),
	};
}

/* @info: NULL: there is none */
static void parse_info(const struct rtattr *info, struct rtnl_link *link)
{
	const struct rtattr *kind = rtnl_attr_inside(info, IFLA_INFO_KIND);
	const struct rtattr *data = rtnl_attr_inside(info, IFLA_INFO_DATA);

	const struct tunnel_kind *tunnel = kind ? find_tunnel_kind(kind) : NULL;

	if (tunnel)
		parse_tunnel(data, tunnel, link);
	else if (kind)
		link->type = type_of(kind);
	if (link->type == LINK_TYPE_VLAN)
		link->vlan_id =
			rtnl_attr_u32(rtnl_attr_inside(data, IFLA_VLAN_ID));
}

char *rtnl_copy_altnames(const struct rtattr *altnames)
{
	const struct rtattr *attr = altnames ? RTA_DATA(altnames) : NULL;
	int len = altnames ? (int)RTA_PAYLOAD(altnames) : 0;
	char *copy = len ? malloc((size_t)len + 1) : NULL, *end = copy;

	for (; copy && RTA_OK(attr, len); attr = RTA_NEXT(attr, len)) {
		size_t n = strnlen(RTA_DATA(attr), RTA_PAYLOAD(attr));

		if ((attr->rta_type & NLA_TYPE_MASK) != IFLA_ALT_IFNAME || !n)
			continue;
		memcpy(end, RTA_DATA(attr), n);
		end += n;
		*end++ = '\0';
	}
	if (end == copy) {
		free(copy);
		return NULL;
	}
	*end = '\0';
	return copy;
}

bool rtnl_parse_link(const struct nlmsghdr *message, struct rtnl_link *ret_link)
{
	const struct ifinfomsg *info = NLMSG_DATA(message);
	const struct rtattr *attrs = IFLA_RTA(info), *name, *nsid;
	int len = (int)message->nlmsg_len - (int)NLMSG_SPACE(sizeof(*info));

	if (message->nlmsg_type != RTM_NEWLINK &&
	    message->nlmsg_type != RTM_DELLINK)
		return false;
	if (message->nlmsg_len < NLMSG_LENGTH(sizeof(*info)))
		return false;
	/* This is a bridge's view of its port; the port's own message is complete. */
	if (info->ifi_family != AF_UNSPEC)
		return false;

	name = rtnl_attr_find(attrs, len, IFLA_IFNAME);
	nsid = rtnl_attr_find(attrs, len, IFLA_LINK_NETNSID);
	*ret_link = (struct rtnl_link){
		.ifindex = info->ifi_index,
		.master = rtnl_attr_u32(rtnl_attr_find(attrs, len, IFLA_MASTER)),
		.link = rtnl_attr_u32(rtnl_attr_find(attrs, len, IFLA_LINK)),
		.link_nsid = nsid ? (int32_t)rtnl_attr_u32(nsid) : NSID_SAME,
		.type = info->ifi_flags & IFF_LOOPBACK ? LINK_TYPE_LOOPBACK :
							 LINK_TYPE_OTHER,
		.hardware = info->ifi_type,
		.is_up = info->ifi_flags & IFF_UP,
		.deleted = message->nlmsg_type == RTM_DELLINK,
	};
	if (name)
		memcpy(ret_link->name, RTA_DATA(name),
		       min_u64(RTA_PAYLOAD(name), sizeof(ret_link->name) - 1));
	ret_link->altnames = rtnl_attr_find(attrs, len, IFLA_PROP_LIST);
	parse_info(rtnl_attr_find(attrs, len, IFLA_LINKINFO), ret_link);
	return true;
}

/* Read the id of an RTM_NEWNSID message. */
static void note_nsid(void *ctx, const struct nlmsghdr *message)
{
	const struct rtattr *attr =
		(const void *)((const char *)NLMSG_DATA(message) +
			       NLMSG_ALIGN(sizeof(struct rtgenmsg)));
	int len = (int)message->nlmsg_len -
		  (int)NLMSG_SPACE(sizeof(struct rtgenmsg));
	int *nsid = ctx;

	if (message->nlmsg_type != RTM_NEWNSID)
		return;
	attr = rtnl_attr_find(attr, len, NETNSA_NSID);
	if (attr)
		*nsid = (int32_t)rtnl_attr_u32(attr);
}

/* An attribute with a number. */
struct attr_u32 {
	struct rtattr attr __attribute__((aligned(RTA_ALIGNTO)));
	uint32_t value;
};

static struct attr_u32 make_attr(uint16_t type, uint32_t value)
{
	return (struct attr_u32){
		{ .rta_len = RTA_LENGTH(sizeof(value)), .rta_type = type },
		value,
	};
}

/* @attrs: one or two: NETNSA_FD, NETNSA_PID or NETNSA_NSID, and NETNSA_TARGET_NSID */
static int send_nsid(int fd, uint16_t type, uint16_t flags,
		     const struct attr_u32 *attrs, uint32_t n, int *ret_nsid)
{
	struct {
		struct rtgenmsg header;
		struct attr_u32 attrs[2];
	} request = { .attrs = { attrs[0], attrs[n - 1] } };

	*ret_nsid = NETNSA_NSID_NOT_ASSIGNED;
	return send_and_read(fd, type, flags, &request,
			     offsetof(typeof(request), attrs) + n * sizeof(*attrs),
			     note_nsid, ret_nsid);
}

static int ask_nsid(int fd, const struct attr_u32 *attrs, uint32_t n)
{
	int nsid, err = send_nsid(fd, RTM_GETNSID, 0, attrs, n, &nsid);

	if (err)
		return err;
	return nsid == NETNSA_NSID_NOT_ASSIGNED ? -ENOENT : nsid;
}

int rtnl_nsid(int fd, int ns_fd)
{
	const struct attr_u32 attr = make_attr(NETNSA_FD, (uint32_t)ns_fd);

	return ask_nsid(fd, &attr, 1);
}

int rtnl_assign_nsid(int fd, int ns_fd)
{
	const struct attr_u32 attrs[] = {
		make_attr(NETNSA_FD, (uint32_t)ns_fd),
		make_attr(NETNSA_NSID, (uint32_t)NETNSA_NSID_NOT_ASSIGNED),
	};
	int unused, err = send_nsid(fd, RTM_NEWNSID, NLM_F_ACK, attrs,
				    ARRAY_SIZE(attrs), &unused);

	return err && err != -EEXIST ? err : rtnl_nsid(fd, ns_fd);
}

int rtnl_nsid_of_process(int fd, uint32_t pid)
{
	const struct attr_u32 attr = make_attr(NETNSA_PID, pid);

	return ask_nsid(fd, &attr, 1);
}

int rtnl_nsid_in(int fd, int32_t nsid, int32_t target)
{
	const struct attr_u32 attrs[] = {
		make_attr(NETNSA_NSID, (uint32_t)nsid),
		make_attr(NETNSA_TARGET_NSID, (uint32_t)target),
	};

	return ask_nsid(fd, attrs, ARRAY_SIZE(attrs));
}

int rtnl_dump_links_of(int fd, int32_t nsid, rtnl_message_fn on_link, void *ctx)
{
	const struct {
		struct ifinfomsg header;
		struct attr_u32 target;
	} request = {
		{ .ifi_family = AF_UNSPEC },
		make_attr(IFLA_TARGET_NETNSID, (uint32_t)nsid),
	};

	return rtnl_dump(fd, RTM_GETLINK, &request, sizeof(request), on_link,
			 ctx);
}
