// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Link messages, made by hand: whole, odd and cut short. */
#include "lib_test.h"
#include "host/rtnl.h"

#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/if_tunnel.h>
#include <sys/socket.h>

enum { BUILD_MAX = 1024 };

/* A message under construction; attributes nest by begin and end. */
struct builder {
	union {
		struct nlmsghdr header;
		char bytes[BUILD_MAX];
	};
	size_t len;
};

static void start(struct builder *b, uint16_t type, uint8_t family,
		  uint32_t ifindex)
{
	struct ifinfomsg info = {
		.ifi_family = family,
		.ifi_type = ARPHRD_ETHER,
		.ifi_index = ifindex,
	};

	memset(b, 0, sizeof(*b));
	memcpy(NLMSG_DATA(&b->header), &info, sizeof(info));
	b->header.nlmsg_type = type;
	b->len = NLMSG_SPACE(sizeof(info));
	b->header.nlmsg_len = b->len;
}

static size_t nest(struct builder *b, uint16_t type)
{
	struct rtattr attr = { .rta_type = type };
	size_t at = b->len;

	memcpy(b->bytes + at, &attr, sizeof(attr));
	b->len += RTA_LENGTH(0);
	return at;
}

static void unnest(struct builder *b, size_t at)
{
	struct rtattr *attr = (struct rtattr *)(void *)(b->bytes + at);

	attr->rta_len = b->len - at;
	b->len = NLMSG_ALIGN(b->len);
	b->header.nlmsg_len = b->len;
}

static void put(struct builder *b, uint16_t type, const void *data, size_t len)
{
	size_t at = nest(b, type);

	memcpy(b->bytes + b->len, data, len);
	b->len += len;
	unnest(b, at);
}

static void put_u32(struct builder *b, uint16_t type, uint32_t value)
{
	put(b, type, &value, sizeof(value));
}

static void put_text(struct builder *b, uint16_t type, const char *text)
{
	put(b, type, text, strlen(text) + 1);
}

/* @nested: NLA_F_NESTED, or 0, as older kernels say it. @vlan: 0: there are no data. */
static void put_info(struct builder *b, uint16_t nested, const char *kind,
		     uint16_t vlan)
{
	size_t info = nest(b, IFLA_LINKINFO | nested), data;

	put_text(b, IFLA_INFO_KIND, kind);
	if (vlan) {
		data = nest(b, IFLA_INFO_DATA);
		put(b, IFLA_VLAN_ID, &vlan, sizeof(vlan));
		unnest(b, data);
	}
	unnest(b, info);
}

/*
 * Parse in memory of the message's length and not a byte more, so that the
 * address sanitizer sees every step beyond.
 */
static bool parse(const struct builder *b, size_t len, struct rtnl_link *ret_link)
{
	struct nlmsghdr *message = malloc(len);
	bool is_link;

	assert_non_null(message);
	memcpy(message, b->bytes, len);
	message->nlmsg_len = len;
	is_link = rtnl_parse_link(message, ret_link);
	free(message);
	return is_link;
}

static struct rtnl_link link_of(const struct builder *b)
{
	struct rtnl_link link;

	assert_true(parse(b, b->len, &link));
	return link;
}

TEST(link_says_name_master_and_hardware)
{
	struct rtnl_link link;
	struct builder b;

	start(&b, RTM_NEWLINK, AF_UNSPEC, 7);
	put_text(&b, IFLA_IFNAME, "abcdefghijklmno");
	put_u32(&b, IFLA_MTU, 1500);
	put_u32(&b, IFLA_MASTER, 9);
	link = link_of(&b);
	assert_int_equal(link.ifindex, 7);
	assert_string_equal(link.name, "abcdefghijklmno");
	assert_int_equal(link.master, 9);
	assert_int_equal(link.hardware, ARPHRD_ETHER);
	assert_int_equal(link.link, 0);
	assert_int_equal(link.link_nsid, NSID_SAME);
	assert_int_equal(link.type, LINK_TYPE_OTHER);
	assert_false(link.deleted);
	b.header.nlmsg_type = RTM_DELLINK;
	link = link_of(&b);
	assert_true(link.deleted);
	assert_int_equal(link.ifindex, 7);
}

TEST(altnames_of_a_link)
{
	static const char expected[] = "enp1s0\0wan";
	struct rtnl_link link;
	struct builder b;
	char *altnames;
	size_t list;

	start(&b, RTM_NEWLINK, AF_UNSPEC, 7);
	put_text(&b, IFLA_IFNAME, "eth0");
	list = nest(&b, IFLA_PROP_LIST | NLA_F_NESTED);
	put_text(&b, IFLA_ALT_IFNAME, "enp1s0");
	put_u32(&b, IFLA_MTU, 1);	    /* not an altname */
	put(&b, IFLA_ALT_IFNAME, "wan", 3); /* without a NUL */
	unnest(&b, list);
	for (size_t len = b.len; len >= NLMSG_SPACE(sizeof(struct ifinfomsg));
	     len--) {
		struct nlmsghdr *message = malloc(len);

		memcpy(message, b.bytes, len);
		message->nlmsg_len = len;
		assert_true(rtnl_parse_link(message, &link));
		altnames = rtnl_copy_altnames(link.altnames);
		if (len == b.len)
			assert_memory_equal(altnames, expected,
					    sizeof(expected) + 1);
		free(altnames);
		free(message);
	}
	assert_null(rtnl_copy_altnames(NULL));
}

/* Attribute 1 of the data of other kinds than VLAN means something else. */
static const struct {
	const char *kind;
	enum link_type type;
	uint16_t number, vlan_id; /* attribute 1, and what it says */
	unsigned int flags;
} kinds[] = {
	{ "vlan", LINK_TYPE_VLAN, 4094, 4094, 0 },
	{ "macvlan", LINK_TYPE_MACVLAN, 55, 0, 0 },
	{ "vlan", LINK_TYPE_VLAN, 0, 0, 0 },
	{ "vlan", LINK_TYPE_VLAN, 1, 1, 0 },
	{ "veth", LINK_TYPE_PAIR, 0, 0, 0 },
	{ "netkit", LINK_TYPE_PAIR, 0, 0, 0 },
	{ "macvlan", LINK_TYPE_MACVLAN, 0, 0, 0 },
	{ "macvtap", LINK_TYPE_MACVLAN, 0, 0, 0 },
	{ "ipvlan", LINK_TYPE_IPVLAN, 0, 0, 0 },
	{ "bridge", LINK_TYPE_BRIDGE, 0, 0, 0 },
	{ "bond", LINK_TYPE_BOND, 0, 0, 0 },
	{ "team", LINK_TYPE_BOND, 0, 0, 0 },
	{ "vrf", LINK_TYPE_VRF, 0, 0, 0 },
	{ "vxlan", LINK_TYPE_TUNNEL, 0, 0, 0 },
	{ "ipip", LINK_TYPE_TUNNEL, 0, 0, 0 },
	{ "wireguard", LINK_TYPE_OTHER, 0, 0, 0 },
	{ "dummy", LINK_TYPE_OTHER, 0, 0, 0 },
	{ NULL, LINK_TYPE_LOOPBACK, 0, 0, IFF_LOOPBACK },
};

TEST(link_says_how_it_is_joined)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct ifinfomsg *info;
		struct rtnl_link link;
		struct builder b;

		start(&b, RTM_NEWLINK, AF_UNSPEC, 7);
		info = NLMSG_DATA(&b.header);
		info->ifi_flags = kinds[i].flags;
		put_u32(&b, IFLA_LINK, 3);
		if (kinds[i].kind)
			put_info(&b, i & 2 ? NLA_F_NESTED : 0, kinds[i].kind,
				 kinds[i].number);
		if (i & 1)
			put_u32(&b, IFLA_LINK_NETNSID, i);
		put_text(&b, IFLA_IFNAME, "eth0.4094");
		link = link_of(&b);
		assert_int_equal(link.type, kinds[i].type);
		assert_int_equal(link.vlan_id, kinds[i].vlan_id);
		assert_int_equal(link.link, 3);
		assert_int_equal(link.link_nsid, i & 1 ? (int)i : NSID_SAME);
		assert_string_equal(link.name, "eth0.4094");
	}
}

/* Attributes of a kind's data, and what they make a tunnel. */
static const struct {
	const char *kind;
	struct link_tunnel tunnel;
	struct {
		uint16_t type, size;
		uint32_t value;
	} data[2]; /* type 0: none */
} tunnels[] = {
	{ "vxlan",
	  { TUNNEL_VXLAN, false, 10, 10 },
	  { { IFLA_VXLAN_ID, 4, 10 }, { IFLA_VXLAN_COLLECT_METADATA, 1, 0 } } },
	{ "vxlan",
	  { TUNNEL_VXLAN, true, 0, 0 },
	  { { IFLA_VXLAN_ID, 4, 0 }, { IFLA_VXLAN_COLLECT_METADATA, 1, 1 } } },
	{ "geneve",
	  { TUNNEL_GENEVE, false, 0xabcdef, 0xabcdef },
	  { { IFLA_GENEVE_ID, 4, 0xabcdef } } },
	{ "geneve",
	  { TUNNEL_GENEVE, true, 0, 0 },
	  { { IFLA_GENEVE_ID, 4, 0 }, { IFLA_GENEVE_COLLECT_METADATA, 0, 0 } } },
	{ "gretap",
	  { TUNNEL_GRE, false, 5, 7 },
	  { { IFLA_GRE_IKEY, 4, 0x05000000 }, { IFLA_GRE_OKEY, 4, 0x07000000 } } },
	{ "ip6gre",
	  { TUNNEL_GRE, false, 0, 0 },
	  { { IFLA_GRE_IKEY, 4, 0 }, { IFLA_GRE_OKEY, 4, 0 } } },
	{ "erspan",
	  { TUNNEL_ERSPAN, false, 5, 7 },
	  { { IFLA_GRE_IKEY, 4, 0x05000000 }, { IFLA_GRE_OKEY, 4, 0x07000000 } } },
	{ "sit", { TUNNEL_IPIP, false, 0, 0 }, { { 0, 0, 0 } } },
};

/* The kernel says with a byte, or with a flag, whether a device takes any VNI. */
TEST(link_that_is_a_tunnel)
{
	for (size_t i = 0; i < ARRAY_SIZE(tunnels); i++) {
		const struct link_tunnel *want = &tunnels[i].tunnel;
		struct link_tunnel got;
		struct builder b;
		size_t info, data;

		start(&b, RTM_NEWLINK, AF_UNSPEC, 7);
		info = nest(&b, IFLA_LINKINFO);
		put_text(&b, IFLA_INFO_KIND, tunnels[i].kind);
		data = nest(&b, IFLA_INFO_DATA);
		for (int k = 0; k < 2 && tunnels[i].data[k].type; k++)
			put(&b, tunnels[i].data[k].type,
			    &tunnels[i].data[k].value, tunnels[i].data[k].size);
		unnest(&b, data);
		unnest(&b, info);
		assert_int_equal(link_of(&b).type, LINK_TYPE_TUNNEL);
		got = link_of(&b).tunnel;
		assert_int_equal(got.type, want->type);
		assert_int_equal(got.is_any, want->is_any);
		assert_int_equal(got.vni_in, want->vni_in);
		assert_int_equal(got.vni_out, want->vni_out);
	}
}

TEST(message_about_something_else_is_refused)
{
	static const uint16_t types[] = { RTM_NEWADDR, RTM_DELADDR,
					  RTM_NEWROUTE, NLMSG_NOOP };
	struct rtnl_link link;
	struct builder b;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		start(&b, types[i], AF_UNSPEC, 7);
		assert_false(parse(&b, b.len, &link));
	}
	start(&b, RTM_NEWLINK, AF_BRIDGE, 7);
	assert_false(parse(&b, b.len, &link));
}

static void whole(struct builder *b)
{
	start(b, RTM_NEWLINK, AF_UNSPEC, 7);
	put_text(b, IFLA_IFNAME, "eth0.10");
	put_u32(b, IFLA_LINK, 2);
	put_info(b, 0, "vlan", 10);
	put_u32(b, IFLA_MASTER, 3);
}

TEST(message_cut_short_anywhere_is_not_read_beyond)
{
	struct rtnl_link link;
	struct builder b;

	whole(&b);
	assert_true(parse(&b, b.len, &link));
	assert_int_equal(link.master, 3);
	for (size_t len = sizeof(struct nlmsghdr); len < b.len; len++) {
		bool is_link = parse(&b, len, &link);

		if (len < NLMSG_LENGTH(sizeof(struct ifinfomsg)))
			assert_false(is_link);
		else if (is_link)
			assert_int_equal(link.ifindex, 7);
	}
}

/* Any byte, and so any length field, may be anything. */
TEST(message_garbled_is_not_read_beyond)
{
	static const uint8_t values[] = { 0, 1, 3, 4, 5, 0x7f, 0x80, 0xff };
	struct rtnl_link link;
	struct builder b;

	whole(&b);
	for (size_t i = sizeof(struct nlmsghdr); i < b.len; i++) {
		for (size_t k = 0; k < ARRAY_SIZE(values); k++) {
			struct builder garbled = b;

			garbled.bytes[i] = values[k];
			if (parse(&garbled, b.len, &link))
				assert_true(memchr(link.name, 0,
						   sizeof(link.name)));
		}
	}
}

TEST(texts_without_end_are_not_read_beyond)
{
	struct builder b;
	size_t info;

	start(&b, RTM_NEWLINK, AF_UNSPEC, 7);
	put(&b, IFLA_IFNAME, "eth0", 4);
	assert_string_equal(link_of(&b).name, "eth0");
	start(&b, RTM_NEWLINK, AF_UNSPEC, 7);
	put(&b, IFLA_IFNAME, "abcdefghijklmnopqrstuvwx", 24);
	assert_string_equal(link_of(&b).name, "abcdefghijklmno");
	start(&b, RTM_NEWLINK, AF_UNSPEC, 7);
	put(&b, IFLA_IFNAME, "", 0);
	assert_string_equal(link_of(&b).name, "");
	start(&b, RTM_NEWLINK, AF_UNSPEC, 7);
	info = nest(&b, IFLA_LINKINFO);
	put(&b, IFLA_INFO_KIND, "vlan", 4);
	unnest(&b, info);
	link_of(&b);
}
