/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "topology.h"

#include "host_state.h"
#include "base/util.h"

#include <errno.h>

/* netif.uppers: the observed points, on the way out, above an interface. */
enum {
	UPPER_TAGS = 1, /* VLAN devices */
	UPPER_ANY = 2,
	UPPER_MACVLAN =
		4, /* or unobserved, and packets that it may forward were seen */
	UPPER_FOREIGN = 8, /* in another namespace, observed or not */
	UPPER_UNSEEN =
		16, /* in another namespace, unobserved: packets may have been seen there */
};

/* A port and its bridge, bond or VRF. */
struct port {
	uint32_t master;
	uint32_t ifindex;
};

struct ports {
	struct port *items; /* sorted by master */
	uint32_t count;
};

/* An interface and the netns that it is in. */
struct spot {
	uint16_t netns;
	struct netif *netif;
};

struct survey {
	struct host *host;
	struct ports *ports; /* of each netns */
};

static struct netifs *netifs_of(const struct host *host, uint16_t netns)
{
	return &host->netns[netns].netifs;
}

static bool is_observed(const struct netif *netif, enum direction direction)
{
	/* A packet that comes in through a VRF passes no hook of its device. */
	if (netif->type == LINK_TYPE_VRF && direction == INGRESS)
		return false;
	return netif->observed & 1 << direction;
}

/* ---- Links and ports ------------------------------------------------------ */

static struct spot find_linked(const struct host *host, const struct netif *netif)
{
	struct spot spot = { netif->link_netns, NULL };

	if (netif->link && spot.netns < host->n_netns)
		spot.netif =
			netifs_find(netifs_of(host, spot.netns), netif->link);
	return spot;
}

const struct netif *topology_linked(const struct host *host,
				    const struct netif *netif)
{
	return find_linked(host, netif).netif;
}

static int compare_ports(const void *left, const void *right)
{
	const struct port *a = left, *b = right;

	return a->master < b->master ? -1 : a->master > b->master;
}

/* False without memory: then no interface has ports. */
static bool list_ports(const struct netifs *netifs, struct ports *ret_ports)
{
	struct port *items = calloc(netifs->count * 2ULL + 1, sizeof(*items));
	uint32_t n = 0;

	if (!items)
		return false;
	for (uint32_t i = 0; i < netifs->count; i++) {
		const struct netif *netif = &netifs->items[i];

		if (netif->master)
			items[n++] =
				(struct port){ netif->master, netif->ifindex };
		if (netif->former_master && netif->former_master != netif->master)
			items[n++] = (struct port){ netif->former_master,
						    netif->ifindex };
	}
	qsort(items, n, sizeof(*items), compare_ports);
	*ret_ports = (struct ports){ items, n };
	return true;
}

static uint32_t first_port(const struct ports *ports, uint32_t master)
{
	return sorted_index(ports->items, ports->count, sizeof(*ports->items),
			    master);
}

/* @return the port after @*at of @spot's interface; begin with first_port() */
static struct netif *next_port(const struct survey *survey, struct spot spot,
			       uint32_t *at)
{
	const struct ports *ports = &survey->ports[spot.netns];

	if (*at >= ports->count || ports->items[*at].master != spot.netif->ifindex)
		return NULL;
	return netifs_find(netifs_of(survey->host, spot.netns),
			   ports->items[(*at)++].ifindex);
}

/* ---- On the way in ------------------------------------------------------------ */

/* States of netif.sights while a sight is being determined, beside enum sight. */
enum { SIGHT_UNKNOWN = 0xff, SIGHT_ASKED = 0xfe };

static enum sight sight_in(const struct survey *survey, struct spot spot);

/* @return the sight of a packet that has passed the interface on its way in */
static enum sight sight_behind(const struct survey *survey, struct spot spot)
{
	return is_observed(spot.netif, INGRESS) ? SIGHT_AGAIN :
						  sight_in(survey, spot);
}

static enum sight sight_of_ports(const struct survey *survey, struct spot spot)
{
	uint32_t at = first_port(&survey->ports[spot.netns], spot.netif->ifindex);
	uint32_t sights = 0;
	struct netif *port;

	while ((port = next_port(survey, spot, &at)))
		sights |= 1 << sight_behind(survey,
					    (struct spot){ spot.netns, port });
	if (sights == 1 << SIGHT_AGAIN)
		return SIGHT_AGAIN;
	return sights & ~(1 << SIGHT_FIRST) ? SIGHT_EITHER : SIGHT_FIRST;
}

/* A process beside the peer may have sent the packet, or it came in there. */
static enum sight sight_of_peer(const struct survey *survey, struct spot peer)
{
	if (!peer.netif)
		return SIGHT_FIRST;
	if (is_observed(peer.netif, EGRESS))
		return SIGHT_AGAIN;
	return regions_is_end(survey->host, peer.netns) ? SIGHT_FIRST :
							  SIGHT_BEYOND;
}

/* A packet comes from the lower interface, or from another ipvlan on it. */
static enum sight sight_of_ipvlan(const struct survey *survey, struct spot lower)
{
	bool is_first = sight_behind(survey, lower) == SIGHT_FIRST &&
			!(lower.netif->uppers & UPPER_ANY);

	return is_first ? SIGHT_FIRST : SIGHT_EITHER;
}

/*
 * @return whether the interface may receive the outer packets of a tunnel and pass them to no other
 * interface
 */
static bool may_receive(const struct netif *netif, struct spot tunnel)
{
	bool is_master = netif->ifindex == tunnel.netif->master &&
			 tunnel.netif->link_netns == tunnel.netns;

	return netif != tunnel.netif && !netif->gone_ns && !netif->master &&
	       !is_master && netif->type != LINK_TYPE_LOOPBACK;
}

/*
 * A packet comes in inside of another one, unless that is in a further tunnel, or in fragments. So
 * the flow decides if the device is observed.
 */
static enum sight sight_of_tunnel(const struct survey *survey, struct spot spot)
{
	bool is_seen = is_observed(spot.netif, INGRESS);
	uint16_t netns = spot.netif->link_netns;
	const struct netifs *netifs;
	uint32_t sights = 0;

	/* Modules of tunnels create a device that stays down. */
	if (netns >= survey->host->n_netns || !spot.netif->has_been_up)
		return SIGHT_FIRST;
	netifs = netifs_of(survey->host, netns);
	for (uint32_t i = 0; i < netifs->count; i++) {
		struct netif *netif = &netifs->items[i];

		if (!may_receive(netif, spot))
			continue;
		if (netif->type != LINK_TYPE_TUNNEL)
			sights |= 1 << sight_behind(
					  survey, (struct spot){ netns, netif });
		else if (is_seen && is_observed(netif, INGRESS))
			sights |= 1 << SIGHT_AGAIN; /* a tunnel in that tunnel */
	}
	if (!(sights & ~(1 << SIGHT_FIRST)))
		return SIGHT_FIRST;
	return !is_seen && sights == 1 << SIGHT_AGAIN ? SIGHT_AGAIN :
							SIGHT_BEYOND;
}

static enum sight find_sight_in(const struct survey *survey, struct spot spot)
{
	struct spot link = find_linked(survey->host, spot.netif);

	if (netif_has_lower(spot.netif) && !link.netif)
		return SIGHT_FIRST;
	switch (spot.netif->type) {
	case LINK_TYPE_LOOPBACK:
		return is_observed(spot.netif, EGRESS) ? SIGHT_AGAIN :
							 SIGHT_FIRST;
	case LINK_TYPE_PAIR:
		return sight_of_peer(survey, link);
	case LINK_TYPE_VLAN:
	case LINK_TYPE_MACVLAN: /* packets between macvlans come in at the lower one, too */
		return sight_behind(survey, link);
	case LINK_TYPE_IPVLAN:
		return sight_of_ipvlan(survey, link);
	case LINK_TYPE_BRIDGE:
	case LINK_TYPE_BOND:
	case LINK_TYPE_VRF:
		return sight_of_ports(survey, spot);
	case LINK_TYPE_TUNNEL:
		return sight_of_tunnel(survey, spot);
	case LINK_TYPE_IFB:
	case LINK_TYPE_OTHER:
		break;
	}
	return SIGHT_FIRST;
}

static enum sight sight_in(const struct survey *survey, struct spot spot)
{
	uint8_t *sight = &spot.netif->sights[WAY_IN];

	if (*sight == SIGHT_ASKED) /* links in a circle */
		return SIGHT_EITHER;
	if (*sight == SIGHT_UNKNOWN) {
		*sight = SIGHT_ASKED;
		*sight = find_sight_in(survey, spot);
		if (spot.netif->uppers & UPPER_MACVLAN && *sight == SIGHT_FIRST)
			*sight = SIGHT_BEYOND;
	}
	return *sight;
}

/* ---- On the way out ----------------------------------------------------------- */

static void mark_below(const struct survey *survey, struct spot spot,
		       uint8_t uppers);

static void mark_spot(const struct survey *survey, struct spot spot,
		      uint8_t uppers)
{
	if (!spot.netif || (spot.netif->uppers & uppers) == uppers)
		return;
	spot.netif->uppers |= uppers;
	mark_below(survey, spot, uppers);
}

/*
 * @return whether a macvlan may send packets unseen that were seen elsewhere: coming in, or on
 * their way there
 */
static bool forwards_unseen(const struct survey *survey, struct spot spot)
{
	uint32_t itself = is_observed(spot.netif, INGRESS);

	return spot.netif->type == LINK_TYPE_MACVLAN &&
	       !is_observed(spot.netif, EGRESS) &&
	       (survey->host->netns[spot.netns].n_arrivals > itself ||
		regions_is_passage(survey->host, spot.netns));
}

/* @return the uppers of the interfaces below one with @uppers */
static uint8_t uppers_below(const struct survey *survey, struct spot spot,
			    uint8_t uppers)
{
	uint8_t foreign = uppers & (UPPER_FOREIGN | UPPER_UNSEEN);

	if (!(uppers & (UPPER_TAGS | UPPER_ANY)))
		return forwards_unseen(survey, spot) ? UPPER_MACVLAN | foreign :
						       foreign;
	switch (spot.netif->type) {
	case LINK_TYPE_VLAN:
		return UPPER_TAGS | foreign;
	case LINK_TYPE_MACVLAN:
		return UPPER_ANY | UPPER_MACVLAN | foreign;
	default:
		return UPPER_ANY | foreign;
	}
}

/* @return flags of an upper interface in another namespace: whether seen packets may leave by it unseen */
static uint8_t upper_elsewhere(const struct survey *survey, struct spot spot)
{
	return is_observed(spot.netif, EGRESS) ||
			       regions_is_end(survey->host, spot.netns) ?
		       UPPER_FOREIGN :
		       UPPER_FOREIGN | UPPER_UNSEEN;
}

/* Mark the interfaces that packets leaving by this one may pass next. */
static void mark_below(const struct survey *survey, struct spot spot,
		       uint8_t uppers)
{
	uint32_t at = first_port(&survey->ports[spot.netns], spot.netif->ifindex);
	struct spot lower = find_linked(survey->host, spot.netif);
	struct netif *port;

	if (netif_has_lower(spot.netif) && lower.netns != spot.netns)
		uppers |= upper_elsewhere(survey, spot);
	uppers = uppers_below(survey, spot, uppers);
	if (netif_has_lower(spot.netif))
		mark_spot(survey, lower, uppers);
	while ((port = next_port(survey, spot, &at)))
		mark_spot(survey, (struct spot){ spot.netns, port }, uppers);
}

/* @return whether all packets that leave by the interface come from its master */
static bool is_fed_by_master(const struct survey *survey, struct spot spot)
{
	const struct netif *master = netifs_find(
		netifs_of(survey->host, spot.netns), spot.netif->master);

	if (!master || !is_observed(master, EGRESS))
		return false;
	/* They may come from another port of a bridge; then the packet itself tells whether it was seen. */
	return master->type == LINK_TYPE_BOND ||
	       (master->type == LINK_TYPE_BRIDGE &&
		master->sights[WAY_IN] == SIGHT_AGAIN);
}

/*
 * @return whether a packet that came in unseen may leave by several ports of the interface's
 * bridge
 */
static bool is_flooded_unseen(const struct survey *survey, struct spot spot)
{
	const struct netif *master = netifs_find(
		netifs_of(survey->host, spot.netns), spot.netif->master);

	return master && master->floods_unseen;
}

static enum sight sight_out(const struct survey *survey, struct spot spot,
			    uint8_t uppers)
{
	if (is_fed_by_master(survey, spot))
		return SIGHT_AGAIN;
	if (survey->host->netns[spot.netns].has_unclear_arrivals ||
	    spot.netif->type == LINK_TYPE_IFB ||
	    spot.netif->uppers & UPPER_UNSEEN || is_flooded_unseen(survey, spot))
		return SIGHT_EITHER;
	return spot.netif->uppers & uppers ? SIGHT_BEYOND : SIGHT_FIRST;
}

/* ---- Overlays ------------------------------------------------------------------ */

/* @return the tag of the only tunnel among a bridge's ports; it may have several devices */
static struct overlay_tag tag_of_bridge(const struct survey *survey,
					struct spot bridge)
{
	struct overlay_tag tag = { 0 };
	struct netif *port;
	uint32_t at;

	if (!bridge.netif || bridge.netif->type != LINK_TYPE_BRIDGE)
		return tag;
	at = first_port(&survey->ports[bridge.netns], bridge.netif->ifindex);
	while ((port = next_port(survey, bridge, &at))) {
		struct overlay_tag other = overlays_tag(port);

		if (tag.type && other.type &&
		    (tag.type != other.type || tag.vni != other.vni))
			return (struct overlay_tag){ 0 };
		tag = other.type ? other : tag;
	}
	return tag;
}

static struct spot master_of(const struct survey *survey, struct spot spot)
{
	return (struct spot){
		spot.netns,
		spot.netif ? netifs_find(netifs_of(survey->host, spot.netns),
					 spot.netif->master) :
			     NULL,
	};
}

static void look_at_overlay(const struct survey *survey, struct spot spot)
{
	struct overlay_tag tag = overlays_tag(spot.netif);

	if (!tag.type)
		tag = tag_of_bridge(survey, spot.netif->type == LINK_TYPE_BRIDGE ?
						    spot :
						    master_of(survey, spot));
	if (!tag.type && spot.netif->type == LINK_TYPE_PAIR)
		tag = tag_of_bridge(survey,
				    master_of(survey, find_linked(survey->host,
								  spot.netif)));
	spot.netif->overlay = tag;
}

/* ---- All of it ---------------------------------------------------------------- */

typedef void (*visit_fn)(const struct survey *survey, struct spot spot);

/* Visit all interfaces, also in namespaces beyond the followed ones. */
static void visit_all(const struct survey *survey, visit_fn visit)
{
	for (uint32_t i = 0; i < survey->host->n_netns; i++) {
		struct netifs *netifs = netifs_of(survey->host, i);

		for (uint32_t k = 0; k < netifs->count; k++)
			visit(survey, (struct spot){ i, &netifs->items[k] });
	}
}

static uint16_t root_domain(const struct host *host, uint16_t netns)
{
	while (host->netns[netns].domain != netns)
		netns = host->netns[netns].domain;
	return netns;
}

static void join_netns(const struct host *host, uint16_t a, uint16_t b)
{
	a = root_domain(host, a);
	b = root_domain(host, b);
	host->netns[a > b ? a : b].domain = a > b ? b : a;
}

static void reset_spot(const struct survey *survey, struct spot spot)
{
	struct host *host = survey->host;

	peers_resolve(host, &host->netns[spot.netns], spot.netif);
	spot.netif->uppers = 0;
	spot.netif->sights[WAY_IN] = SIGHT_UNKNOWN;
	if (is_observed(spot.netif, INGRESS) &&
	    spot.netif->type != LINK_TYPE_LOOPBACK)
		host->netns[spot.netns].n_arrivals++;
	if (!is_observed(spot.netif, EGRESS) && !spot.netif->gone_ns &&
	    spot.netif->type != LINK_TYPE_LOOPBACK &&
	    spot.netif->type != LINK_TYPE_IFB)
		host->netns[spot.netns].sees_all_departures = false;
	if (netif_is_linked(spot.netif) && spot.netif->link_netns != NETNS_NONE)
		join_netns(host, spot.netns, spot.netif->link_netns);
}

/* Copies that leave by one port each are counted once if the packet was seen coming in. */
static void look_at_bridge(const struct survey *survey, struct spot bridge)
{
	uint32_t at =
		first_port(&survey->ports[bridge.netns], bridge.netif->ifindex);
	bool enters_unseen = !is_observed(bridge.netif, EGRESS);
	uint32_t n_ways = 0;
	struct netif *port;

	while ((port = next_port(survey, bridge, &at))) {
		enters_unseen |= !is_observed(port, INGRESS);
		n_ways += is_observed(port, EGRESS);
	}
	bridge.netif->floods_unseen = enters_unseen && n_ways > 1;
	if (bridge.netif->floods_unseen)
		survey->host->netns[bridge.netns].copies_unseen = true;
}

static void mark_uppers(const struct survey *survey, struct spot spot)
{
	if (forwards_unseen(survey, spot)) {
		survey->host->netns[spot.netns].forwards_unseen = true;
		survey->host->forwards_unseen = true;
	}
	mark_below(survey, spot, is_observed(spot.netif, EGRESS) ? UPPER_ANY : 0);
	if (spot.netif->type == LINK_TYPE_BRIDGE)
		look_at_bridge(survey, spot);
	if (spot.netif->type == LINK_TYPE_IFB && is_observed(spot.netif, EGRESS))
		survey->host->netns[spot.netns].copies_unseen = true;
}

/*
 * Packets that an ifb sends were on their way out before, where tc redirected them: they were seen
 * at the ifb, or at that point.
 */
static bool returns_seen(const struct survey *survey, struct spot spot)
{
	return spot.netif->type == LINK_TYPE_IFB &&
	       (is_observed(spot.netif, EGRESS) ||
		survey->host->netns[spot.netns].sees_all_departures);
}

static bool is_origin(const struct survey *survey, struct spot spot,
		      enum sight behind)
{
	return !spot.netif->gone_ns &&
	       (behind == SIGHT_AGAIN || returns_seen(survey, spot));
}

static void look_in(const struct survey *survey, struct spot spot)
{
	struct host *host = survey->host;
	struct netns *netns = &host->netns[spot.netns];
	enum sight behind;

	sight_in(survey, spot);
	behind = sight_behind(survey, spot);
	spot.netif->is_origin = is_origin(survey, spot, behind);
	if (spot.netif->gone_ns)
		return;
	if (behind == SIGHT_EITHER || behind == SIGHT_BEYOND)
		netns->has_unclear_arrivals = netns->copies_unseen = true;
	if (spot.netif->type != LINK_TYPE_VRF && !is_observed(spot.netif, INGRESS))
		netns->sees_all_arrivals = false;
}

static void look_out(const struct survey *survey, struct spot spot)
{
	spot.netif->sights[WAY_OUT] = sight_out(survey, spot, UPPER_ANY);
	spot.netif->sights[WAY_OUT_TAGGED] =
		sight_out(survey, spot, UPPER_ANY | UPPER_TAGS);
}

static int survey_all(const struct survey *survey)
{
	struct host *host = survey->host;

	host->forwards_unseen = false;
	for (uint32_t i = 0; i < host->n_netns; i++) {
		host->netns[i].domain = i;
		host->netns[i].has_unclear_arrivals = false;
		host->netns[i].sees_all_arrivals = true;
		host->netns[i].sees_all_departures = true;
		host->netns[i].n_arrivals = 0;
		host->netns[i].forwards_unseen = false;
		host->netns[i].copies_unseen = false;
	}
	visit_all(survey, reset_spot);
	regions_update(host);
	for (uint32_t i = 0; i < host->n_netns; i++)
		host->netns[i].domain = root_domain(host, i);
	visit_all(survey, mark_uppers);
	visit_all(survey, look_in);
	visit_all(survey, look_out);
	visit_all(survey, look_at_overlay);
	return overlays_update(host);
}

int topology_update(struct host *host)
{
	cleanup_free struct ports *ports = calloc(host->n_netns, sizeof(*ports));
	struct survey survey = { host, ports };
	bool complete = ports;
	int err = -ENOMEM;

	for (uint32_t i = 0; complete && i < host->n_netns; i++) {
		netifs_restack(netifs_of(host, i));
		complete = list_ports(netifs_of(host, i), &ports[i]);
	}
	if (complete)
		err = survey_all(&survey);
	for (uint32_t i = 0; ports && i < host->n_netns; i++)
		free(ports[i].items);
	return err;
}

bool topology_forwards_unseen(const struct host *host, uint16_t netns,
			      const struct netif *lower)
{
	const struct netifs *netifs = netifs_of(host, netns);

	for (uint32_t i = 0;
	     host->netns[netns].forwards_unseen && i < netifs->count; i++) {
		const struct netif *netif = &netifs->items[i];

		if (netif->type == LINK_TYPE_MACVLAN &&
		    !is_observed(netif, EGRESS) &&
		    topology_linked(host, netif) == lower)
			return true;
	}
	return false;
}

enum sight topology_sight_in_tunnel(const struct host *host,
				    const struct flow_key *key, enum sight sight)
{
	const struct overlay *overlay = overlays_find(host, key);
	const struct netif *netif;

	if (!(key->flags & KEY_EGRESS))
		return sight;
	if (overlay->netns != key->netns) {
		netif = host_find(host, key->netns, key->ifindex);
		return netif && netif->uppers & UPPER_FOREIGN ? SIGHT_EITHER :
								sight;
	}
	if (key->flags & KEY_AGAIN)
		return overlay->is_foreign ? SIGHT_EITHER : sight;
	return overlay->is_sent_seen ? SIGHT_AGAIN : SIGHT_EITHER;
}

bool topology_has_foreign_uppers(const struct netif *netif)
{
	return netif->uppers & UPPER_FOREIGN;
}

enum sight topology_sight(const struct flow_entry *entry,
			  const struct netif *netif)
{
	const struct flow_key *key = &entry->key;
	const struct flow_tally *tally = &entry->tally;
	bool has_outer_tag = key->outer_vlan ||
			     (key->vlan & VLAN_PRESENT && !key->tunnel);
	enum sight sight;

	if (!(key->flags & KEY_EGRESS))
		return netif ? netif->sights[WAY_IN] : SIGHT_FIRST;
	/* A packet keeps its origin on its way into a lower interface in another namespace. */
	if (!netif ||
	    (key->flags & KEY_AGAIN && topology_has_foreign_uppers(netif)))
		return SIGHT_EITHER;
	if (key->flags & KEY_AGAIN)
		return netif->type == LINK_TYPE_IFB ? SIGHT_AGAIN :
						      SIGHT_FORWARDED;
	sight = netif->sights[has_outer_tag ? WAY_OUT_TAGGED : WAY_OUT];
	if (sight == SIGHT_AGAIN ||
	    !topology_is_to_group(key, tally->attrs.has_mac ? tally->macs : NULL))
		return sight;
	return SIGHT_EITHER;
}
