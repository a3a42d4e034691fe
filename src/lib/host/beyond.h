/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The namespaces beyond the followed ones: those that links lead to, directly or by further links,
 * such as the host's of two observed pods. Nothing is observed there, but packets pass them from
 * one observed interface to another, so the topology has to know their interfaces.
 *
 * A followed namespace has ids for them (IFLA_LINK_NETNSID), and the kernel lists the interfaces of
 * a namespace by its id (IFLA_TARGET_NETNSID, Linux 4.20). So they need no name, no process, and no
 * descriptor, which would keep them alive. They send no notifications: they are listed again when a
 * link leads to an interface that is not known there, and some of them, in turn, at each drain.
 */
#ifndef NETOBS_HOST_BEYOND_H
#define NETOBS_HOST_BEYOND_H

#include <stdbool.h>
#include <stdint.h>

struct host;

/* List the namespaces that new links lead to. */
void beyond_explore(struct host *host);

/* List some of these namespaces again. @return whether anything has changed: host_settle() is due */
bool beyond_refresh(struct host *host);

/* Remove all of them, because ids may mean other namespaces now. They are found again. */
void beyond_forget(struct host *host);

#endif
