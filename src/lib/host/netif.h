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

/* What became of packets at an interface, in one direction; index: enum outcome_kind. */
struct outcomes {
	struct count counts[OUTCOMES];
};

/* What the position of a point among the interfaces says about a packet there. */
enum sight {
	SIGHT_FIRST, /* no observed point saw it before: it is counted here */
	SIGHT_AGAIN, /* one did */
	SIGHT_FORWARDED, /* one did, of this namespace, when it came in */
	SIGHT_BEYOND, /* first, unless seen at a peer's or above, where it came from */
	SIGHT_EITHER, /* both occur */
};

/* Ways through an interface for which that differs. */
enum way { WAY_IN, WAY_OUT, WAY_OUT_TAGGED, WAYS };

/* Packets that pass a tunnel which ends on this host, inside and outside of it. */
struct overlay_tag {
	uint32_t vni;
	uint8_t type; /* enum tunnel_type; TUNNEL_NONE: not known */
};

struct netif {
	uint32_t ifindex;
	uint32_t master;	/* bridge, bond: ifindex, 0 none */
	uint32_t former_master; /* flows of that time are still to come */
	int64_t former_ns;	/* until when it was current */
	uint32_t link; /* a pair's peer, what a VLAN sends through; 0 none */
	int32_t link_nsid;
	uint16_t link_netns; /* where link is; NETNS_NONE: not observed */
	bool is_link_known;  /* link_netns has been looked up */
	uint32_t link_inode; /* of a namespace that is not followed, see peers_learn(); or 0 */
	enum link_type type;
	uint16_t hardware;	   /* ARPHRD_* */
	uint16_t vlan_id;	   /* of a VLAN device */
	struct link_tunnel tunnel; /* of a tunnel's device */
	bool has_been_up;	   /* packets may have passed it */
	int64_t gone_ns; /* when it disappeared, kept for its last flows; 0: there */
	char name[IF_NAMESIZE];
	char *altnames; /* its own, as rtnl_copy_altnames() has them */

	/*
	 * A frame passes all levels of a stack, such as a bond's slave, the bond
	 * and a VLAN on it, but only one interface of each level.
	 */
	uint32_t stack; /* the same for all interfaces of a stack */
	uint32_t level; /* 0 is the lowest */

	uint32_t listing; /* the latest that named it */

	/* Bits 1 << enum direction, by src/lib/attach; they stay when it disappears. */
	uint8_t observed;
	struct hooks *hooks; /* of src/lib/attach; NULL: nothing is attached */

	/* Of src/lib/flows, by enum direction: what is known, and as of the last drain. */
	struct outcomes crossed[2], reported[2];

	struct overlay_tag overlay; /* of all that passes here, see overlays.h */
	uint8_t uppers;		    /* see topology.c */
	uint8_t sights[WAYS];	    /* enum sight */
	bool floods_unseen; /* a bridge: packets may come in unseen, and leave by several ports */
	bool is_origin; /* its incoming packets are counted, and the programs know it */
};

enum { NETIF_HINTS = 16 };

struct netifs {
	struct netif *items; /* sorted by ifindex */
	uint32_t count;
	uint32_t capacity;
	uint32_t hints[NETIF_HINTS]; /* where an ifindex modulo that was found last */
};

/*
 * @return the index of the first of @n items that is not below @key; items are
 *         sorted by the uint32_t that each begins with
 */
uint32_t sorted_index(const void *items, uint32_t n, size_t size, uint32_t key);

void netifs_done(struct netifs *netifs);

/* netifs_find() where a hint is of another interface. */
struct netif *netifs_search(struct netifs *netifs, uint32_t ifindex);

/* Several times per flow. NULL: it is not there. */
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

/* Take over what a link message says. */
void netif_update(struct netif *netif, const struct rtnl_link *link);

/*
 * Forget interfaces that disappeared, and former masters of others, before @before_ns.
 * @return whether that changed anything: topology_update() is due
 */
bool netifs_sweep(struct netifs *netifs, int64_t before_ns);

/* @return the kind of link-layer header, an enum link_kind; -EOPNOTSUPP */
int netif_link_kind(const struct netif *netif);

/* It passes packets on as they are, but for a tag: its link is below it. */
static inline bool netif_has_lower(const struct netif *netif)
{
	return netif->type == LINK_TYPE_VLAN ||
	       netif->type == LINK_TYPE_MACVLAN ||
	       netif->type == LINK_TYPE_IPVLAN;
}

/*
 * What it sends and receives goes on at an interface that is linked to it: the other one of a pair,
 * one below it, or one that the outer packets of a tunnel take, which nothing names.
 */
static inline bool netif_is_linked(const struct netif *netif)
{
	return netif->type == LINK_TYPE_TUNNEL ||
	       (netif->link &&
		(netif->type == LINK_TYPE_PAIR || netif_has_lower(netif)));
}

/* The ifindex of that, if it is in the same namespace; else 0. */
uint32_t netif_lower(const struct netif *netif);

/* Recompute stack and level of all, after any master or lower changed. */
void netifs_restack(struct netifs *netifs);

#endif
