/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What the parts of watch share. */
#ifndef NETOBS_HOST_HOST_H
#define NETOBS_HOST_HOST_H

#include "attach/observation.h"

#define PLACE_INIT(...) ((struct place){ .rtnl_fd = -1, __VA_ARGS__ })

/* Append a place that is not open; takes @name over. NULL: no memory. */
struct place *watch_add_place(struct watch *watch, char *name);

/* Ask for a list of all interfaces. */
int place_list(struct place *place);

/* Find the namespace and ask for its interfaces. */
int place_open(struct watch *watch, struct place *place);

/* The namespace is gone: so are its interfaces, and what would keep it. */
void place_close(struct watch *watch, struct place *place);

/* Report what has changed of what runs before the programs. */
void watch_note_shadows(const struct watch *watch, struct netif *netif,
			const struct hook_job *job);

/* The interface is gone. */
void watch_lose(struct watch *watch, struct netif *netif);

#endif
