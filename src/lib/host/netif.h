/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The interfaces of one network namespace, and how they are stacked. */
#ifndef NETOBS_HOST_NETIF_H
#define NETOBS_HOST_NETIF_H

#include "bpf/types.h"
#include "rtnl.h"
#include "catalogue/direction.h"

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NETNS_NONE = 0xffff };

struct hooks;

/* Outcomes of packets at an interface, in one direction; index: enum outcome_kind. */
struct outcomes {
	struct count counts[OUTCOMES];
};

/* Earlier observations of a packet, by the position of its point among the interfaces. */
enum sight {
	SIGHT_FIRST, /* no observed point saw it before: it is counted here */
	SIGHT_AGAIN, /* an observed point saw it before */
	SIGHT_FORWARDED, /* a point of this namespace saw it when it came in */
	SIGHT_BEYOND, /* first, unless the peer, or an interface above, saw it where it came from */
	SIGHT_EITHER, /* both occur */
};

/* Ways through an interface that may have different sights. */
enum way { WAY_IN, WAY_OUT, WAY_OUT_TAGGED, WAYS };

/* Marks packets that pass a tunnel which ends on this host, inside and outside of the tunnel. */
struct overlay_tag {
	uint32_t vni;
	uint8_t type; /* enum tunnel_type; TUNNEL_NONE: not known */
};

struct netif {
	uint32_t ifindex;
	uint32_t master; /* bridge, bond: ifindex, 0 none */
	uint32_t former_master; /* master until former_ns: flows of that time are still to be read */
	int64_t former_ns; /* until when it was the master */
	uint32_t link;	   /* a pair's peer, a VLAN's lower interface; 0 none */
	int32_t link_nsid;
	uint16_t link_netns; /* namespace of link; NETNS_NONE: not observed */
	bool is_link_known;  /* link_netns has been looked up */
	uint32_t link_inode; /* of link's namespace, if that is not followed, see peers_learn(); or 0 */
	enum link_type type;
	uint16_t hardware;	   /* ARPHRD_* */
	uint16_t vlan_id;	   /* of a VLAN device */
	struct link_tunnel tunnel; /* of a tunnel's device */
	bool has_been_up;	   /* packets may have passed it */
	int64_t gone_ns; /* when it disappeared, kept for its last flows; 0: there */
	char name[IF_NAMESIZE];
	char *altnames; /* owned, as rtnl_copy_altnames() returns them */

	/*
	 * A frame passes all levels of a stack, such as a bond's slave, the bond
	 * and a VLAN on it, but only one interface of each level.
	 */
	uint32_t stack; /* equal for all interfaces of a stack */
	uint32_t level; /* 0 is the lowest */

	uint32_t listing; /* the latest listing that named it */

	/* Bits 1 << enum direction, by src/lib/attach; they stay when it disappears. */
	uint8_t observed;
	struct hooks *hooks; /* of src/lib/attach; NULL: nothing is attached */

	/* For src/lib/flows, by enum direction: the current counts, and those of the last drain. */
	struct outcomes crossed[2], reported[2];

	struct overlay_tag overlay; /* of all packets that pass here, see host_state.h */
	uint8_t uppers;		    /* see topology.c */
	uint8_t sights[WAYS]; /* enum sight */
	bool floods_unseen; /* a bridge: packets may come in unseen, and leave by several ports */
	bool is_origin; /* its incoming packets are counted, and the programs know it */
};

enum { NETIF_HINTS = 16 };

struct netifs {
	struct netif *items; /* sorted by ifindex */
	uint32_t count;
	uint32_t capacity;
	uint32_t hints[NETIF_HINTS]; /* index of the last one found, by ifindex modulo NETIF_HINTS */
};

/*
 * @return the index of the first of @n items that is not below @key; items are
 *         sorted by the uint32_t that each begins with
 */
uint32_t sorted_index(const void *items, uint32_t n, size_t size, uint32_t key);

void netifs_done(struct netifs *netifs);

/* The slow path of netifs_find(), if a hint is of another interface. */
struct netif *netifs_search(struct netifs *netifs, uint32_t ifindex);

/* Called several times per flow. NULL: there is no such interface. */
static inline struct netif *netifs_find(struct netifs *netifs, uint32_t ifindex)
{
	uint32_t hint = netifs->hints[ifindex % NETIF_HINTS];

	return hint < netifs->count && netifs->items[hint].ifindex == ifindex ?
		       &netifs->items[hint] :
		       netifs_search(netifs, ifindex);
}

/* Find or add. NULL: no memory. Pointers to other items become invalid. */
struct netif *netifs_ensure(struct netifs *netifs, uint32_t ifindex);

/* @return whether it is called @name, by its name or an altname */
bool netif_is_called(const struct netif *netif, const char *name);

/* Copy the attributes of a link message. */
void netif_update(struct netif *netif, const struct rtnl_link *link);

/*
 * Remove interfaces that disappeared before @before_ns, and former masters of others until then.
 * @return whether that changed anything: topology_update() is due
 */
bool netifs_sweep(struct netifs *netifs, int64_t before_ns);

/* @return the kind of link-layer header, an enum link_kind; -EOPNOTSUPP */
int netif_link_kind(const struct netif *netif);

/*
 * @return whether the interface passes packets on unchanged, except for a tag, to its link below
 * it
 */
static inline bool netif_has_lower(const struct netif *netif)
{
	return netif->type == LINK_TYPE_VLAN ||
	       netif->type == LINK_TYPE_MACVLAN ||
	       netif->type == LINK_TYPE_IPVLAN;
}

/*
 * @return whether packets that the interface sends or receives pass an interface that is linked to
 * it: the other end of a pair, one below it, or one that carries the outer packets of a tunnel,
 * which no attribute names
 */
static inline bool netif_is_linked(const struct netif *netif)
{
	return netif->type == LINK_TYPE_TUNNEL ||
	       (netif->link &&
		(netif->type == LINK_TYPE_PAIR || netif_has_lower(netif)));
}

/* @return the ifindex of the linked interface, if it is in the same namespace; else 0 */
uint32_t netif_lower(const struct netif *netif);

/* Recompute stack and level of all interfaces, after any master or lower changed. */
void netifs_restack(struct netifs *netifs);

#endif
