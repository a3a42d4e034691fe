/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The programs on one interface: wanted, attached by a job, looked after, taken off. */
#ifndef NETOBS_ATTACH_HOOKS_H
#define NETOBS_ATTACH_HOOKS_H

#include "observation.h"

/* What is attached, or being attached, to an interface that is selected. */
struct hooks {
	uint64_t incarnation; /* jobs of an earlier one have nothing to bring back */
	struct hook_job *job; /* that has the attachment; NULL: none */
	bool is_attached;     /* counted in observation.n_attached */
	bool is_refused;      /* for its link type, which was logged */
	uint16_t hardware;    /* that link type */
	struct netobs_shadow shadows[2]; /* what runs before our programs */
	struct attachment attachment;
};

/* Load the programs for one kind of links in a namespace, unless they are there. */
int hooks_ensure_programs(struct observation *observation, uint16_t netns,
			  enum link_kind link);

void hooks_programs_done(struct netns_programs *netns);

/* Whether the interface called @name is to be observed. */
bool hooks_are_wanted(const struct observation *observation,
		      const struct netns *netns, const char *name);

/* Whether the programs are on the interface, or on their way there. */
bool hooks_are_on(const struct netif *netif);

/* Have the programs put on, or checked where they are. @return 0, or why not */
int hooks_put_on(struct observation *observation, const struct netns *netns,
		 struct netif *netif);

void hooks_take_off(struct observation *observation, const struct netns *netns,
		    struct netif *netif);

/*
 * hooks_put_on() or hooks_take_off(), where what is wanted has changed.
 *
 * @return whether that will change what is observed
 */
bool hooks_apply_selection(struct observation *observation,
			   const struct netns *netns, struct netif *netif);

/* The interface is gone. */
void hooks_lose(struct observation *observation, const struct netns *netns,
		struct netif *netif);

/* Have a job see what runs before the programs. */
void hooks_look(struct observation *observation, const struct netns *netns,
		const struct netif *netif);

/* @job is done, and this function's. */
void hooks_on_job(void *observation, struct hook_job *job);

#endif
