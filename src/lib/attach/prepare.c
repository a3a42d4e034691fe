/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "hooks.h"

#include <errno.h>
#include <stdlib.h>

/* ---- The selection ------------------------------------------------------------------- */

/*
 * Follow the namespace of item @i, which may turn out to be that of another one. One
 * that is selected already may be away at present.
 */
static int prepare_netns(struct observation *observation,
			 struct selection *selection, uint32_t i)
{
	const char *name = selection->items[i].netns;
	struct host *host = observation->host;
	uint16_t index, found;
	int err;

	if (selection_find(&observation->selection, name))
		return 0;
	err = host_ensure_netns(host, name, &index);
	/* Before the attaching itself, so that a load error is reported as one. */
	if (!err)
		err = hooks_ensure_programs(observation, index, LINK_ETHERNET,
					    observation->next);
	err = err ?: host_open(host, index, &found);
	return err ?: selection_rename(selection, i, host->netns[found].name);
}

/* Interfaces that were asked for, other than all, must be of a kind that can be had. */
static int check_interfaces_of(struct observation *observation,
			       const struct selection *selection,
			       const struct selected *selected,
			       const struct netns *netns)
{
	const struct selected *before =
		selection_find(&observation->selection, netns->name);
	int err = selected_check_names(selected, before, &netns->netifs,
				       observation->log);

	for (uint32_t i = 0; !err && i < netns->netifs.count; i++) {
		const struct netif *netif = &netns->netifs.items[i];
		int link = netif_link_kind(netif);

		if (selected->is_all || netif->gone_ns ||
		    !selection_has(selection, selected, netif->name,
				   netif->altnames))
			continue;
		if (link < 0)
			log_error(observation->log,
				  "%s: link type %u is not supported",
				  netif->name, netif->hardware);
		err = link < 0 ? link :
				 hooks_ensure_programs(observation, netns->index,
						       link, observation->next);
	}
	return err;
}

static int check_interfaces(struct observation *observation,
			    const struct selection *selection)
{
	const struct host *host = observation->host;
	int err = 0;

	for (uint32_t i = 0; !err && i < host->n_netns; i++) {
		const struct netns *netns = &host->netns[i];
		const struct selected *selected =
			netns->is_retired ?
				NULL :
				selection_find(selection, netns->name);

		if (selected)
			err = check_interfaces_of(observation, selection,
						  selected, netns);
	}
	return err;
}

int observation_prepare(struct observation *observation,
			struct selection *selection, bool replaces)
{
	int err = 0;

	if (replaces) {
		observation->next = calloc(observation->n_netns + 1,
					   sizeof(*observation->next));
		err = observation->next ? 0 : -ENOMEM;
	}
	for (uint32_t i = 0, n; !err && i < selection->count;) {
		n = selection->count;
		err = prepare_netns(observation, selection, i);
		i += selection->count == n;
	}
	if (replaces)
		err = err ?: hooks_load_next(observation, selection);
	return err ?: check_interfaces(observation, selection);
}

/* ---- Links of an earlier process ------------------------------------------------------- */

struct adoption {
	struct observation *observation;
	const struct selection *selection;
	int n_adopted, n_removed;
};

static bool is_selected(const struct adoption *adoption,
			const struct netns *netns, const struct netif *netif,
			int direction)
{
	const struct selected *selected =
		netns->is_retired ?
			NULL :
			selection_find(adoption->selection, netns->name);

	return selected && adoption->observation->attach.directions[direction] &&
	       selection_has(adoption->selection, selected, netif->name,
			     netif->altnames);
}

static void adopt_pin(void *ctx, struct link_pin *pin)
{
	struct adoption *adoption = ctx;
	struct observation *observation = adoption->observation;
	struct netif *netif =
		host_find(observation->host, pin->netns, pin->ifindex);
	const struct netns *netns;

	if (!netif || netif->gone_ns) {
		if (netif) /* for the flows that it is in */
			netif->observed |= 1 << pin->direction;
		link_pins_remove_one(observation->pins, pin);
		return;
	}
	netns = &observation->host->netns[pin->netns];
	if (is_selected(adoption, netns, netif, pin->direction) &&
	    hooks_adopt(observation, netif, pin->direction, &pin->hook)) {
		adoption->n_adopted++;
		return;
	}
	link_pins_remove_one(observation->pins, pin);
	hooks_remove(observation, netns, netif, pin->direction, &pin->hook);
	adoption->n_removed++;
}

/* Links that there are if all selected interfaces are observed. */
static int count_wanted(const struct adoption *adoption)
{
	struct netns *netns;
	int n = 0;

	host_for_each_netif(adoption->observation->host, netns, netif)
		for (int d = INGRESS; d <= EGRESS; d++)
			n += !netif->gone_ns &&
			     is_selected(adoption, netns, netif, d);
	return n;
}

bool adopt_links(struct observation *observation,
		 const struct selection *selection)
{
	struct adoption adoption = { observation, selection, 0, 0 };

	if (!observation->pins)
		return true;
	link_pins_each(observation->pins, adopt_pin, &adoption);
	return !adoption.n_removed &&
	       (!adoption.n_adopted ||
		adoption.n_adopted == count_wanted(&adoption));
}
