// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "adopt.h"

#include "hooks.h"
#include "link_pins.h"

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
	       selection_has(adoption->selection, selected, netif->name);
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
