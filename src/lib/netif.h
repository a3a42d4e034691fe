/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The interfaces of one network namespace, and how they are stacked. */
#ifndef NETOBS_LIB_NETIF_H
#define NETOBS_LIB_NETIF_H

#include "attach.h"
#include "shadow.h"

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

struct netif {
	uint32_t ifindex;
	uint32_t master; /* bridge, bond: ifindex, 0 none */
	uint32_t lower;	 /* what a VLAN, macvlan ... device sends through */
	uint32_t former_master; /* flows of that time are still to come */
	uint32_t former_lower;
	int64_t former_ns; /* until when they were current */
	uint16_t hardware; /* ARPHRD_* */
	uint16_t vlan_id;  /* of a VLAN device */
	bool is_vlan;
	int64_t gone_ns; /* when it went away, kept for its last flows; 0: there */
	char name[IF_NAMESIZE];

	/*
	 * A frame passes all levels of a stack, such as a bond's slave, the bond
	 * and a VLAN on it, but only one interface of each level.
	 */
	uint32_t stack; /* the same for all interfaces of a stack */
	uint32_t level; /* 0 is the lowest */

	uint64_t incarnation;		 /* changes when it comes back */
	uint32_t listing;		 /* the latest that named it */
	bool is_busy;			 /* a job has the attachment */
	bool is_attached;		 /* counted in watch.n_attached */
	struct netobs_shadow shadows[2]; /* what runs before our programs */
	struct attachment attachment;
};

struct netifs {
	struct netif *items; /* sorted by ifindex */
	uint32_t count;
	uint32_t capacity;
};

void netifs_done(struct netifs *netifs);

struct netif *netifs_find(const struct netifs *netifs, uint32_t ifindex);

/* Find or add. NULL: no memory. Pointers to other items become invalid. */
struct netif *netifs_ensure(struct netifs *netifs, uint32_t ifindex);

/* Forget those that went away before @before_ns. */
void netifs_sweep(struct netifs *netifs, int64_t before_ns);

/* Recompute stack and level of all, after any master or lower changed. */
void netifs_restack(struct netifs *netifs);

#endif
