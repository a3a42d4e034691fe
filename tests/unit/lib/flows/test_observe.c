// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The traffic of a flow, computed from the counts of each observation point. */
#include "bpf/types.h"
#include "lib_test.h"
#include "lib_world.h"
#include "flows/observe.h"
#include "flows/sighting.h"

enum { POINTS = 8, LINKS = 10, NAMESPACES = 5 };

/* Packets received, sent, and sent after they were counted when received. */
enum { IN = 0, OUT = KEY_EGRESS, ON = KEY_EGRESS | KEY_AGAIN };

/* What one point saw; ifindex 0 ends a list. */
struct seen {
	uint32_t ifindex;
	uint8_t flags; /* enum flow_key_flag */
	uint64_t packets;
	uint16_t netns;
	uint16_t vlan; /* in the packet */
	uint32_t vni;  /* of the tunnel that the packet was seen in; 0: none */
};

#define TAG(id) ((id) | VLAN_PRESENT)
#define SEEN(n, flags, packets)            \
	{                                  \
		n, flags, packets, 0, 0, 0 \
	}
#define SEEN_AT(netns, n, flags, packets)      \
	{                                      \
		n, flags, packets, netns, 0, 0 \
	}
#define INSIDE(netns, n, flags, packets, vni)    \
	{                                        \
		n, flags, packets, netns, 0, vni \
	}
#define TAGGED(n, flags, packets, id)            \
	{                                        \
		n, flags, packets, 0, TAG(id), 0 \
	}

#define LINK(n)                \
	{                      \
		.ifindex = (n) \
	}
#define BOND(n)                                        \
	{                                              \
		.ifindex = (n), .type = LINK_TYPE_BOND \
	}
#define IFB(n)                                        \
	{                                             \
		.ifindex = (n), .type = LINK_TYPE_IFB \
	}
#define UNSEEN(n)                                  \
	{                                          \
		.ifindex = (n), .unobserved = true \
	}
#define UNSEEN_PORT(n, of)                                         \
	{                                                          \
		.ifindex = (n), .master = (of), .unobserved = true \
	}
#define UNSEEN_PEER(n, in, of, at)                           \
	{                                                    \
		.ifindex = (n), .netns = (in), .peer = (of), \
		.link_netns = (at), .unobserved = true       \
	}
#define MACVLAN_AT(n, in, on, at)                                                \
	{                                                                        \
		.ifindex = (n), .netns = (in), .lower = (on), .link_netns = (at) \
	}
#define UNSEEN_MACVLAN_AT(n, in, on, at)                      \
	{                                                     \
		.ifindex = (n), .netns = (in), .lower = (on), \
		.link_netns = (at), .unobserved = true        \
	}

/* What leaves by 1 may come in by 5, from one macvlan to another: their namespaces are not observed. */
#define DARK_MACVLANS                                            \
	PEER(1, 0, 3, 1), IFB(2), UNSEEN_PEER(3, 1, 1, 0),       \
		UNSEEN_MACVLAN_AT(4, 1, 5, 2), PEER(5, 2, 6, 3), \
		UNSEEN_PEER(6, 3, 5, 2), UNSEEN_MACVLAN_AT(7, 4, 5, 2)

struct total_case {
	const char *name;
	struct world_link links[LINKS];
	struct seen seen[POINTS];
	uint64_t total;
};

/* Points of interfaces, given in parentheses, and the packets that pass them. */
#define LINKS(...)          \
	{                   \
		__VA_ARGS__ \
	}
#define TOTAL(text, packets, around, ...)                    \
	{                                                    \
		text, LINKS around, { __VA_ARGS__ }, packets \
	}

static const struct total_case cases[] = {
	TOTAL("one point", 7, (LINK(1)), SEEN(1, IN, 7)),
	TOTAL("out through a tunnel", 10, (LINK(1), VXLAN(2, 0, 10)),
	      SEEN(2, OUT, 10), INSIDE(0, 1, OUT, 10, 10)),
	TOTAL("out through a tunnel, to several ends", 10,
	      (LINK(1), VXLAN(2, 0, 10)), SEEN(2, OUT, 10),
	      INSIDE(0, 1, OUT, 30, 10)),
	TOTAL("in through a tunnel, and on", 10,
	      (LINK(1), VXLAN(2, 0, 10), LINK(3)), INSIDE(0, 1, IN, 10, 10),
	      SEEN(2, IN, 9), SEEN(3, ON, 8)),
	TOTAL("in through a tunnel, some in fragments", 10,
	      (LINK(1), VXLAN(2, 0, 10)), INSIDE(0, 1, IN, 4, 10),
	      SEEN(2, IN, 10)),
	TOTAL("in through a tunnel in a tunnel that is not opened", 10,
	      (LINK(1), VXLAN(2, 0, 10)), SEEN(2, IN, 10)),
	TOTAL("forwarded, then out through a tunnel that is not observed", 10,
	      (LINK(1), { .ifindex = 2, .vni = 10, .unobserved = true }, LINK(3)),
	      SEEN(3, IN, 10), INSIDE(0, 1, OUT, 10, 10)),
	TOTAL("from tunnel to tunnel", 10,
	      (LINK(1), VXLAN(2, 0, 10), VXLAN(3, 0, 20)),
	      INSIDE(0, 1, IN, 10, 10), SEEN(2, IN, 10), SEEN(3, ON, 10),
	      INSIDE(0, 1, OUT, 10, 20)),
	TOTAL("forwarded in a tunnel, beside a device for others", 10,
	      (LINK(1), LINK(2), VXLAN(3, 0, 10)), INSIDE(0, 1, IN, 10, 20),
	      INSIDE(0, 2, ON, 10, 20)),
	TOTAL("forwarded in a tunnel, beside a device for the same VNI", 10,
	      (LINK(1), LINK(2), VXLAN(3, 0, 10)), INSIDE(0, 1, IN, 10, 10),
	      INSIDE(0, 2, ON, 10, 10)),
	TOTAL("both ends of a tunnel over a pair", 10,
	      (PEER(1, 0, 2, 1), VXLAN(3, 0, 10), PEER(2, 1, 1, 0),
	       VXLAN(4, 1, 10)),
	      SEEN(3, OUT, 10), INSIDE(0, 1, OUT, 10, 10),
	      INSIDE(1, 2, IN, 10, 10), SEEN_AT(1, 4, IN, 10)),
	TOTAL("both ends of a tunnel, what is between them not observed", 10,
	      (UNSEEN_PEER(1, 0, 2, 1), VXLAN(3, 0, 10),
	       UNSEEN_PEER(2, 1, 1, 0), VXLAN(4, 1, 10)),
	      SEEN(3, OUT, 10), SEEN_AT(1, 4, IN, 10)),
	TOTAL("through a device whose tunnel is in another namespace", 10,
	      (LINK(1), { .ifindex = 2, .netns = 1, .link_netns = 0, .vni = 10 },
	       { .ifindex = 3, .netns = 1 }),
	      INSIDE(0, 1, IN, 10, 10), SEEN_AT(1, 2, IN, 10),
	      SEEN_AT(1, 3, ON, 10)),
	TOTAL("one point at an unknown interface", 7, (LINK(1)), SEEN(99, OUT, 7)),
	TOTAL("forwarded", 10, (LINK(1), LINK(2)), SEEN(1, IN, 10),
	      SEEN(2, ON, 10)),
	TOTAL("sent, and copied by tc to another interface", 10,
	      (LINK(1), LINK(2)), SEEN(1, OUT, 10), SEEN(2, ON, 10)),
	TOTAL("sent by two interfaces, copied by tc to one, beside some that came to a bridge elsewhere",
	      15,
	      (LINK(1), LINK(2), { .ifindex = 3, .netns = 1, .master = 9 },
	       { .ifindex = 4, .netns = 1, .master = 9, .unobserved = true },
	       { .ifindex = 9, .netns = 1 }),
	      SEEN(1, OUT, 10), SEEN(2, OUT, 5), SEEN(2, ON, 10),
	      SEEN_AT(1, 9, IN, 3)),
	TOTAL("translated, and redirected by tc to an ifb and back", 10,
	      (LINK(1), IFB(2)), SEEN(1, ON, 10), SEEN(2, ON, 10),
	      SEEN(1, ON, 10)),
	TOTAL("from elsewhere, and redirected by tc to an ifb and back", 10,
	      (LINK(1), IFB(2), UNSEEN_MACVLAN_AT(3, 1, 1, 0)),
	      SEEN(1, OUT, 10), SEEN(2, ON, 10), SEEN(1, ON, 10)),
	TOTAL("forwarded, one still on its way", 10, (LINK(1), LINK(2)),
	      SEEN(1, IN, 10), SEEN(2, ON, 9)),
	TOTAL("forwarded, most from an interface that is not observed", 10,
	      (LINK(1), LINK(2), UNSEEN(3)), SEEN(1, IN, 3), SEEN(2, ON, 3),
	      SEEN(2, OUT, 7)),
	TOTAL("forwarded between unknown interfaces", 10, (LINK(1)),
	      SEEN(8, IN, 10), SEEN(9, ON, 10)),
	TOTAL("bridged from port to port", 10, (PORT(1, 3), PORT(2, 3), LINK(3)),
	      SEEN(1, IN, 10), SEEN(2, ON, 10)),
	TOTAL("flooded by a bridge", 10,
	      (PORT(1, 5), PORT(2, 5), PORT(3, 5), PORT(4, 5), LINK(5)),
	      SEEN(1, IN, 10), SEEN(2, ON, 10), SEEN(3, ON, 10), SEEN(4, ON, 10)),
	TOTAL("flooded by a bridge, from the host", 10,
	      (PORT(1, 5), PORT(2, 5), LINK(5)), SEEN(5, OUT, 10),
	      SEEN(1, OUT, 10), SEEN(2, OUT, 10)),
	TOTAL("flooded from the host, one port not observed", 10,
	      (PORT(1, 5), PORT(2, 5), UNSEEN_PORT(3, 5), LINK(5)),
	      SEEN(5, OUT, 10), SEEN(1, OUT, 10), SEEN(2, OUT, 10)),
	TOTAL("mirrored", 10, (LINK(1), LINK(2)), SEEN(1, IN, 10),
	      SEEN(2, ON, 10)),
	TOTAL("port, bridge and out by another interface", 10,
	      (PORT(1, 3), LINK(3), LINK(4)), SEEN(1, IN, 10), SEEN(3, IN, 10),
	      SEEN(4, ON, 10)),
	TOTAL("in by an interface, out by bridge and port", 10,
	      (PORT(1, 3), LINK(3), LINK(4)), SEEN(4, IN, 10), SEEN(1, ON, 10),
	      SEEN(3, ON, 10)),
	TOTAL("one of two ports and the bridge", 10,
	      (PORT(1, 3), UNSEEN_PORT(2, 3), LINK(3)), SEEN(1, IN, 4),
	      SEEN(3, IN, 10)),
	TOTAL("one of two ports, and out beside a bridge that is not observed",
	      10, (PORT(1, 3), UNSEEN_PORT(2, 3), UNSEEN(3), LINK(4)),
	      SEEN(1, IN, 10), SEEN(4, OUT, 10)),
	TOTAL("hairpin on one interface", 10, (LINK(1)), SEEN(1, IN, 10),
	      SEEN(1, ON, 10)),
	TOTAL("loopback sees both ways", 5,
	      ({ .ifindex = 1, .type = LINK_TYPE_LOOPBACK }), SEEN(1, IN, 4),
	      SEEN(1, OUT, 5)),
	TOTAL("out by two links", 10, (LINK(1), LINK(2)), SEEN(1, OUT, 6),
	      SEEN(2, OUT, 4)),
	TOTAL("in by one link, out by two", 10, (LINK(1), LINK(2), LINK(3)),
	      SEEN(3, IN, 10), SEEN(1, ON, 6), SEEN(2, ON, 4)),
	TOTAL("in by two links, out by one", 10, (LINK(1), LINK(2), LINK(3)),
	      SEEN(1, IN, 6), SEEN(2, IN, 4), SEEN(3, ON, 9)),
	TOTAL("translated, out by two links", 10, (LINK(1), LINK(2)),
	      SEEN(1, ON, 6), SEEN(2, ON, 4)),
	TOTAL("translated, and flooded by a bridge in the next namespace", 10,
	      (PEER(1, 0, 2, 1),
	       { .ifindex = 2, .netns = 1, .peer = 1, .master = 9 },
	       { .ifindex = 3, .netns = 1, .master = 9 },
	       { .ifindex = 4, .netns = 1, .master = 9 },
	       { .ifindex = 9, .netns = 1 }),
	      SEEN(1, ON, 10), SEEN_AT(1, 2, IN, 10), SEEN_AT(1, 3, ON, 10),
	      SEEN_AT(1, 4, ON, 10)),
	TOTAL("both ends of a pair in one namespace, one a port", 10,
	      (PEER(1, 0, 2, 0), { .ifindex = 2, .peer = 1, .master = 9 },
	       PORT(3, 9), UNSEEN(9),
	       { .ifindex = 7, .type = LINK_TYPE_LOOPBACK, .unobserved = true }),
	      SEEN(1, OUT, 10), SEEN(2, IN, 10), SEEN(3, ON, 10)),
	TOTAL("on two ways into two namespaces, in alone observed", 10,
	      (PEER(1, 0, 2, 1), UNSEEN_PEER(2, 1, 1, 0), PEER(3, 0, 4, 1),
	       UNSEEN_PEER(4, 1, 3, 0)),
	      SEEN(1, IN, 4), SEEN(3, IN, 6)),
	TOTAL("on through a pair in one namespace, in alone observed", 10,
	      (LINK(1), UNSEEN_PEER(2, 0, 3, 0), PEER(3, 0, 2, 0)),
	      SEEN(1, IN, 10), SEEN(3, IN, 10)),
	TOTAL("into a namespace by two links with an unobserved far side", 10,
	      (PEER(1, 0, 2, 1), UNSEEN_PEER(2, 1, 1, 0),
	       UNSEEN_PEER(3, 1, 4, 1), PEER(4, 1, 3, 1)),
	      SEEN(1, OUT, 10), SEEN_AT(1, 4, IN, 10)),
	TOTAL("bond and its slaves", 10, (PORT(1, 3), PORT(2, 3), BOND(3)),
	      SEEN(1, OUT, 6), SEEN(2, OUT, 4), SEEN(3, OUT, 10)),
	TOTAL("bond of which one slave is observed", 10,
	      (PORT(1, 3), UNSEEN_PORT(2, 3), BOND(3)), SEEN(1, OUT, 6),
	      SEEN(3, OUT, 10)),
	TOTAL("slaves alone", 10,
	      (PORT(1, 3), PORT(2, 3),
	       { .ifindex = 3, .type = LINK_TYPE_BOND, .unobserved = true }),
	      SEEN(1, IN, 6), SEEN(2, IN, 4)),
	TOTAL("slaves alone, out", 10,
	      (PORT(1, 3), PORT(2, 3),
	       { .ifindex = 3, .type = LINK_TYPE_BOND, .unobserved = true }),
	      SEEN(1, OUT, 6), SEEN(2, OUT, 4)),
	TOTAL("in by a bridge of which no port is observed, and from the host",
	      13, (UNSEEN_PORT(1, 3), LINK(3), LINK(4)), SEEN(3, IN, 10),
	      SEEN(4, OUT, 3)),
	TOTAL("out by a VLAN and its lower interface, where arrivals are unclear",
	      10,
	      (PORT(1, 3), UNSEEN_PORT(2, 3), UNSEEN(3), LINK(4), VLAN(5, 4, 10)),
	      SEEN(5, OUT, 10), TAGGED(4, OUT, 14, 10)),
	TOTAL("on by a macvlan that is observed on its way in, and in by its lower",
	      10,
	      ({ .ifindex = 1, .unobserved_out = true },
	       { .ifindex = 2, .lower = 1, .unobserved_out = true },
	       { .ifindex = 3, .unobserved_out = true }),
	      SEEN(3, IN, 10), SEEN(1, IN, 10)),
	TOTAL("slaves, bond and a VLAN on it, in", 10,
	      (PORT(1, 3), PORT(2, 3), BOND(3), VLAN(4, 3, 10)),
	      TAGGED(1, IN, 6, 10), TAGGED(2, IN, 4, 10), TAGGED(3, IN, 10, 10),
	      SEEN(4, IN, 10)),
	TOTAL("slaves, bond and a VLAN on it, out", 10,
	      (PORT(1, 3), PORT(2, 3), BOND(3), VLAN(4, 3, 10)),
	      TAGGED(1, OUT, 6, 10), TAGGED(2, OUT, 4, 10),
	      TAGGED(3, OUT, 10, 10), SEEN(4, OUT, 10)),
	TOTAL("routed from one VLAN of a trunk to the other", 10,
	      (LINK(1), VLAN(2, 1, 10), VLAN(3, 1, 20)), TAGGED(1, IN, 10, 10),
	      SEEN(2, IN, 10), SEEN(3, ON, 10), TAGGED(1, ON, 10, 20)),
	TOTAL("two bonds side by side", 10,
	      (PORT(1, 5), PORT(2, 6), BOND(5), BOND(6)), SEEN(1, OUT, 6),
	      SEEN(2, OUT, 4), SEEN(5, OUT, 6), SEEN(6, OUT, 4)),
	TOTAL("macvlan and its lower, out", 10, (LINK(1), MACVLAN(2, 1)),
	      SEEN(2, OUT, 10), SEEN(1, OUT, 10)),
	TOTAL("macvlan and its lower, in", 10, (LINK(1), MACVLAN(2, 1)),
	      SEEN(2, IN, 10), SEEN(1, IN, 10)),
	TOTAL("from one macvlan to the other", 10,
	      (LINK(1), MACVLAN(2, 1), MACVLAN(3, 1)), SEEN(2, OUT, 10),
	      SEEN(1, IN, 10), SEEN(3, IN, 10)),
	TOTAL("forwarded to a macvlan by an unobserved one", 10,
	      (LINK(1), UNSEEN_MACVLAN_AT(2, 2, 1, 0),
	       { .ifindex = 3, .netns = 2 }, MACVLAN_AT(2, 1, 1, 0)),
	      SEEN_AT(2, 3, IN, 10), SEEN(1, IN, 10), SEEN_AT(1, 2, IN, 10)),
	TOTAL("to a macvlan with an unobserved lower interface, and on from there",
	      10,
	      (LINK(1), UNSEEN_MACVLAN_AT(2, 1, 1, 0),
	       { .ifindex = 3, .netns = 1 }),
	      SEEN(1, IN, 10), SEEN_AT(1, 3, ON, 10)),
	TOTAL("from one macvlan to the other by way of a third", 10,
	      (LINK(1), MACVLAN(2, 1), MACVLAN(3, 1), MACVLAN(4, 1)),
	      SEEN(2, OUT, 10), SEEN(1, IN, 20), SEEN(3, IN, 10),
	      SEEN(3, ON, 10), SEEN(4, IN, 10)),
	TOTAL("from a macvlan outside by way of another one", 10,
	      (LINK(1), MACVLAN(2, 1), MACVLAN(3, 1)), SEEN(2, OUT, 10),
	      SEEN(1, IN, 10), SEEN(3, IN, 10), SEEN(3, ON, 10), SEEN(1, OUT, 10)),
	TOTAL("from a macvlan outside, and back to another one", 19,
	      (LINK(1), MACVLAN(2, 1), MACVLAN(3, 1)), SEEN(2, OUT, 10),
	      SEEN(1, OUT, 10), SEEN(1, IN, 9), SEEN(3, IN, 9)),
	TOTAL("out through the lower of macvlans, and back to one of them", 19,
	      (LINK(1), MACVLAN(2, 1)), SEEN(1, OUT, 10), SEEN(1, IN, 9),
	      SEEN(2, IN, 9)),
	TOTAL("some from outside to a macvlan, and some from another one", 7,
	      (LINK(1), MACVLAN(2, 1), MACVLAN(3, 1)), SEEN(1, IN, 7),
	      SEEN(2, OUT, 3), SEEN(3, IN, 7)),
	TOTAL("to a namespace not observed, there from one macvlan to another",
	      10, (DARK_MACVLANS), SEEN(1, OUT, 10), SEEN_AT(2, 5, IN, 10)),
	TOTAL("to an ifb and back, then from one macvlan to another, not observed",
	      10, (DARK_MACVLANS), SEEN(1, OUT, 10), SEEN(2, ON, 10),
	      SEEN(1, ON, 10), SEEN_AT(2, 5, IN, 10)),
	TOTAL("some from one macvlan to another, not observed, and some from outside",
	      10, (DARK_MACVLANS), SEEN(1, OUT, 3), SEEN_AT(2, 5, IN, 10)),
	TOTAL("unseen from a bridge on, there from one macvlan to another, not observed",
	      10,
	      ({ .ifindex = 1, .master = 9 },
	       { .ifindex = 2,
		 .master = 9,
		 .peer = 3,
		 .link_netns = 1,
		 .unobserved = true },
	       UNSEEN(9), UNSEEN_PEER(3, 1, 2, 0),
	       UNSEEN_MACVLAN_AT(4, 1, 5, 2), PEER(5, 2, 6, 3),
	       UNSEEN_PEER(6, 3, 5, 2), UNSEEN_MACVLAN_AT(7, 4, 5, 2)),
	      SEEN(1, IN, 10), SEEN_AT(2, 5, IN, 10)),
	TOTAL("unseen from a bridge on, there from one macvlan to another, above a port that is observed",
	      10,
	      ({ .ifindex = 1, .master = 9 },
	       { .ifindex = 2,
		 .master = 9,
		 .peer = 3,
		 .link_netns = 1,
		 .unobserved = true },
	       UNSEEN(9), UNSEEN_PEER(3, 1, 2, 0), UNSEEN_MACVLAN_AT(4, 1, 5, 1),
	       PEER(5, 1, 6, 2), UNSEEN_PEER(6, 2, 5, 1)),
	      SEEN(1, IN, 10), SEEN_AT(1, 5, IN, 10)),
	TOTAL("to several macvlans, and from one of them to where another one is",
	      97,
	      (PEER(1, 0, 9, 4), LINK(2), MACVLAN_AT(3, 1, 1, 0),
	       PEER(4, 1, 7, 3), UNSEEN_MACVLAN_AT(5, 2, 1, 0),
	       UNSEEN_PEER(6, 2, 8, 3), UNSEEN_PEER(7, 3, 4, 1),
	       UNSEEN_PEER(8, 3, 6, 2), UNSEEN_PEER(9, 4, 1, 0)),
	      SEEN(1, IN, 97), SEEN(2, ON, 97), SEEN_AT(1, 3, IN, 62),
	      SEEN_AT(1, 4, ON, 62)),
	TOTAL("copied by tc to a macvlan elsewhere, above the namespace that sent it",
	      10,
	      (PEER(1, 0, 3, 1), LINK(2), PEER(3, 1, 1, 0),
	       MACVLAN_AT(4, 1, 2, 0)),
	      SEEN(1, OUT, 10), SEEN_AT(1, 3, IN, 10), SEEN_AT(1, 4, ON, 10),
	      SEEN(2, ON, 10)),
	TOTAL("redirected to an ifb, then in to a macvlan, and to another one", 10,
	      (UNSEEN_PEER(1, 0, 3, 1), IFB(2), PEER(3, 1, 1, 0),
	       MACVLAN_AT(4, 1, 3, 1), MACVLAN_AT(5, 2, 3, 1)),
	      SEEN(2, ON, 10), SEEN_AT(1, 3, IN, 20), SEEN_AT(1, 4, IN, 10),
	      SEEN_AT(1, 4, ON, 10), SEEN_AT(2, 5, IN, 10)),
	TOTAL("redirected to an ifb on its way in, between macvlans, and once more when translated",
	      10,
	      (UNSEEN_PEER(1, 3, 3, 1), IFB(2), PEER(3, 1, 1, 3),
	       MACVLAN_AT(4, 0, 3, 1), MACVLAN_AT(5, 2, 3, 1)),
	      SEEN_AT(1, 3, IN, 30), SEEN(4, IN, 20), SEEN(2, ON, 20),
	      SEEN(4, ON, 10), SEEN_AT(2, 5, IN, 10), SEEN_AT(2, 5, ON, 10)),
	TOTAL("from a bridge, unseen, to a macvlan, and from it to another one",
	      10,
	      (LINK(1),
	       { .ifindex = 2,
		 .master = 1,
		 .peer = 3,
		 .link_netns = 1,
		 .unobserved = true },
	       UNSEEN_PEER(3, 1, 2, 0), UNSEEN_PEER(4, 1, 5, 2),
	       PEER(5, 2, 4, 1), MACVLAN_AT(6, 2, 5, 2)),
	      SEEN(1, OUT, 10), SEEN_AT(2, 5, IN, 20), SEEN_AT(2, 6, IN, 10),
	      SEEN_AT(2, 6, ON, 10)),
	TOTAL("flooded by a bridge, one port not observed, and in behind that", 10,
	      (PORT(1, 9), PORT(2, 9),
	       { .ifindex = 3,
		 .master = 9,
		 .peer = 4,
		 .link_netns = 1,
		 .unobserved = true },
	       LINK(9), UNSEEN_PEER(4, 1, 3, 0), UNSEEN_PEER(5, 1, 6, 2),
	       PEER(6, 2, 5, 1)),
	      SEEN(1, IN, 10), SEEN(2, ON, 10), SEEN_AT(2, 6, IN, 10)),
	TOTAL("by an unobserved macvlan, and out below it", 10, (DARK_MACVLANS),
	      SEEN(1, OUT, 10), SEEN_AT(2, 5, OUT, 10)),
	TOTAL("from one namespace to the other", 10,
	      (PEER(1, 0, 1, 1), PEER(1, 1, 1, 0)), SEEN_AT(0, 1, OUT, 10),
	      SEEN_AT(1, 1, IN, 10)),
	TOTAL("past the hook of one end", 10,
	      (UNSEEN_PEER(1, 0, 1, 1), PEER(1, 1, 1, 0), LINK(2)),
	      SEEN_AT(0, 2, IN, 10), SEEN_AT(1, 1, IN, 10)),
	TOTAL("pod to pod over two namespaces and a bridge", 10,
	      ({ .ifindex = 1, .master = 3, .peer = 5, .link_netns = 1 },
	       PORT(2, 3), LINK(3), PEER(5, 1, 1, 0)),
	      SEEN_AT(1, 5, OUT, 10), SEEN(1, IN, 10), SEEN(2, ON, 9)),
};

/* Every point's bytes are WORLD_BYTES per packet and so on. */
static void see(struct flow *flow, const struct host *host,
		const struct seen *seen)
{
	struct flow_key key = world_key(seen->netns, seen->ifindex, false);
	struct flow_entry entry;
	struct sighting sighting;
	struct point *point;
	struct volume volume = { seen->packets, seen->packets * WORLD_BYTES,
				 seen->packets * WORLD_L2_BYTES };

	key.dst = flow->key.dst;
	key.flags = seen->flags | (flow->key.flags & KEY_IPV6);
	key.vlan = seen->vlan;
	key.vni = seen->vni;
	key.tunnel = seen->vni ? TUNNEL_VXLAN : TUNNEL_NONE;
	entry = world_entry(&key, seen->packets, 0, 0);
	if (flow->has_mac)
		memcpy(entry.tally.macs, flow->macs, sizeof(flow->macs));
	sighting_read(&entry, host, flow->is_random, &sighting);
	point = flow_ensure_point(flow, seen->netns, seen->ifindex,
				  seen->flags & KEY_EGRESS);
	assert_non_null(point);
	volume_add(&point->seen, &volume);
	point->is_in_tunnel |= seen->vni != 0;
	point->sights |= 1 << sighting.sight;
	if (sighting.sight == SIGHT_FIRST)
		volume_add(&flow->entered, &volume);
}

static uint64_t total_of(const struct flow *flow, const struct host *host)
{
	struct volume total = { 99, 99, 99 };

	observe_total(flow, host, &total);
	assert_int_equal(total.bytes, total.packets * WORLD_BYTES);
	assert_int_equal(total.l2_bytes, total.packets * WORLD_L2_BYTES);
	return total.packets;
}

/* An IPv4 flow to an address that begins with @first. */
static void flow_to(uint8_t first, struct flow *ret_flow)
{
	struct flow_key key = world_key(0, 0, false);

	key.dst.bytes[12] = first;
	flow_init(ret_flow, &key);
}

static void assert_total(const struct total_case *wanted, bool is_filtered,
			 bool is_sampled)
{
	struct flow flow;
	struct host host;
	uint64_t total;

	flow_to(10, &flow);
	flow.is_random = is_sampled;
	world_build(&host, NAMESPACES, wanted->links);
	host.is_filtered = is_filtered;
	for (const struct seen *s = wanted->seen; s->ifindex; s++)
		see(&flow, &host, s);
	total = total_of(&flow, &host);
	if (total != wanted->total)
		fail_msg("%s: %ju", wanted->name, (uintmax_t)total);
	flow_done(&flow);
	host_done(&host);
}

TEST(total_counts_each_packet_once)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_total(&cases[i], false, false);
}

/* One packet more each time, along the whole way. */
TEST(total_grows_with_each_packet)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct flow flow;
		struct host host;
		uint64_t last = 0;

		flow_to(10, &flow);
		world_build(&host, NAMESPACES, cases[i].links);
		for (int round = 0; round < 40; round++) {
			for (const struct seen *s = cases[i].seen; s->ifindex;
			     s++) {
				struct seen one = *s;

				one.packets = 1;
				see(&flow, &host, &one);
			}
			assert_true(total_of(&flow, &host) > last);
			last = total_of(&flow, &host);
		}
		flow_done(&flow);
		host_done(&host);
	}
}

static const struct {
	const char *name;
	uint8_t dst; /* its first byte */
	bool ipv6;
	uint8_t dst_mac;
	uint8_t flags;
	uint64_t total;
} groups[] = {
	{ "unicast on two ways out", 10, false, 2, OUT, 20 },
	{ "IPv4 multicast on two ways out", 224, false, 2, OUT, 10 },
	{ "IPv4 multicast, last block", 239, false, 2, OUT, 10 },
	{ "IPv4 limited broadcast", 255, false, 2, OUT, 10 },
	{ "just below multicast", 223, false, 2, OUT, 20 },
	{ "subnet broadcast is known by the MAC", 10, false, 0xff, OUT, 10 },
	{ "multicast by the MAC alone", 10, false, 1, OUT, 10 },
	{ "multicast on two ways in", 224, false, 1, IN, 20 },
	{ "IPv6 multicast", 0xff, true, 2, OUT, 10 },
	{ "IPv6 unicast", 0xfe, true, 2, OUT, 20 },
};

TEST(total_of_group_copies_is_the_largest)
{
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
		const struct world_link links[] = { LINK(1),
						    LINK(2),
						    { .ifindex = 0 } };
		const struct seen first = SEEN(1, groups[i].flags, 10);
		const struct seen second = SEEN(2, groups[i].flags, 10);
		struct flow_key key = world_key(0, 0, false);
		struct host host;
		struct flow flow;
		uint64_t total;

		if (groups[i].ipv6) {
			key.flags |= KEY_IPV6;
			key.dst.bytes[0] = groups[i].dst;
		} else {
			key.dst.bytes[12] = groups[i].dst;
		}
		flow_init(&flow, &key);
		flow.has_mac = true;
		flow.macs[0] = groups[i].dst_mac;
		world_build(&host, 1, links);
		see(&flow, &host, &first);
		see(&flow, &host, &second);
		total = total_of(&flow, &host);
		if (total != groups[i].total)
			fail_msg("%s: %ju", groups[i].name, (uintmax_t)total);
		flow_done(&flow);
		host_done(&host);
	}
}

/* Also those of one bridge: each port sends a copy. */
TEST(total_of_group_copies_to_ports_of_a_bridge)
{
	static const struct world_link links[] = {
		PORT(1, 4), PORT(2, 4), PORT(3, 4), LINK(4), { .ifindex = 0 }
	};
	static const struct seen sights[] = { SEEN(4, OUT, 10),
					      SEEN(1, OUT, 10), SEEN(2, OUT, 10),
					      SEEN(3, OUT, 10) };
	struct flow flow;
	struct host host;

	flow_to(224, &flow);
	world_build(&host, 1, links);
	for (size_t i = 0; i < ARRAY_SIZE(sights); i++)
		see(&flow, &host, &sights[i]);
	assert_int_equal(total_of(&flow, &host), 10);
	flow_done(&flow);
	host_done(&host);
}

static const struct total_case filtered[] = {
	TOTAL("flooded by a bridge", 10,
	      (PORT(1, 5), PORT(2, 5), PORT(3, 5), PORT(4, 5), LINK(5)),
	      SEEN(1, IN, 10), SEEN(2, ON, 10), SEEN(3, ON, 10), SEEN(4, ON, 10)),
	TOTAL("forwarded and mirrored", 10, (LINK(1), LINK(2), LINK(3)),
	      SEEN(1, IN, 10), SEEN(2, ON, 10), SEEN(3, ON, 10)),
	TOTAL("forwarded, and redirected by tc to an ifb and back", 10,
	      (LINK(1), LINK(2), IFB(3)), SEEN(1, IN, 10), SEEN(2, ON, 10),
	      SEEN(3, ON, 10), SEEN(2, ON, 10)),
	TOTAL("two ways in, two ways out", 10,
	      (LINK(1), LINK(2), LINK(3), LINK(4)), SEEN(1, IN, 5),
	      SEEN(2, IN, 5), SEEN(3, ON, 5), SEEN(4, ON, 5)),
	TOTAL("more matched on the way out", 10, (LINK(1), LINK(2)),
	      SEEN(1, IN, 3), SEEN(2, ON, 10)),
	TOTAL("two ways out of the host itself", 10, (LINK(1), LINK(2)),
	      SEEN(1, OUT, 5), SEEN(2, OUT, 5)),
	TOTAL("matched on the way out alone, and by two interfaces", 10,
	      (LINK(1), LINK(2)), SEEN(1, ON, 5), SEEN(2, ON, 5)),
	TOTAL("through two namespaces, and back through the first", 10,
	      (LINK(1), PEER(2, 0, 3, 1), PEER(3, 1, 2, 0)), SEEN(1, IN, 10),
	      SEEN(2, ON, 10), SEEN_AT(1, 3, IN, 10), SEEN_AT(1, 3, ON, 10),
	      SEEN(2, IN, 10), SEEN(2, ON, 10)),
	TOTAL("more matched where the namespace may not see all that comes in",
	      3, (LINK(1), LINK(2), UNSEEN(3)), SEEN(1, IN, 3), SEEN(2, ON, 10)),
};

TEST(total_of_filtered_copies_is_the_largest)
{
	for (size_t i = 0; i < ARRAY_SIZE(filtered); i++)
		assert_total(&filtered[i], true, false);
}

/* Each point has sampled packets of its own. */
static const struct total_case sampled[] = {
	TOTAL("one point", 7, (LINK(1)), SEEN(1, IN, 7)),
	TOTAL("sent by the host", 7, (LINK(1)), SEEN(1, OUT, 7)),
	TOTAL("forwarded, more sampled on the way out", 3, (LINK(1), LINK(2)),
	      SEEN(1, IN, 3), SEEN(2, ON, 10)),
	TOTAL("forwarded, none sampled on the way in", 0, (LINK(1), LINK(2)),
	      SEEN(2, ON, 10)),
	TOTAL("flooded by a bridge, none sampled on the way in", 0,
	      (PORT(1, 5), PORT(2, 5), PORT(3, 5), PORT(4, 5), LINK(5)),
	      SEEN(2, ON, 10), SEEN(3, ON, 2)),
	TOTAL("the bridge alone, of which all ports are observed", 0,
	      (PORT(1, 3), PORT(2, 3), LINK(3)), SEEN(3, IN, 10)),
	TOTAL("one of two ports and the bridge: the flow decides", 10,
	      (PORT(1, 3), UNSEEN_PORT(2, 3), LINK(3)), SEEN(1, IN, 4),
	      SEEN(3, IN, 10)),
	TOTAL("in through a tunnel, more sampled behind it", 3,
	      (LINK(1), VXLAN(2, 0, 10)), INSIDE(0, 1, IN, 3, 10),
	      SEEN(2, IN, 10)),
	TOTAL("out through a tunnel, more sampled in it", 3,
	      (LINK(1), VXLAN(2, 0, 10)), SEEN(2, OUT, 3),
	      INSIDE(0, 1, OUT, 10, 10)),
};

TEST(total_of_a_sample_is_of_first_sights)
{
	for (size_t i = 0; i < ARRAY_SIZE(sampled); i++)
		assert_total(&sampled[i], false, true);
}

TEST(total_of_more_points_than_fit_inline)
{
	static const uint32_t counts[] = { 2, 15, 16, 17, 18, 33, 64, 100 };

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		struct flow flow;
		struct host host;

		flow_to(10, &flow);
		world_build(&host, 1, NULL);
		for (uint32_t k = counts[i]; k; k--) {
			const struct seen seen = SEEN(k, OUT, k);

			see(&flow, &host, &seen);
		}
		assert_int_equal(flow.n_points, counts[i]);
		assert_int_equal(total_of(&flow, &host),
				 counts[i] * (counts[i] + 1) / 2);
		flow_done(&flow);
		host_done(&host);
	}
}
