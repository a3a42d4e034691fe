/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The meaning of a drop, the part of the kernel that it belongs to, and what it is for a connection, by the names
 * that the kernel has for the reason and the function. Numbers of reasons differ by kernel, names hardly do.
 */
#ifndef NETOBS_DROPS_DROP_CLASS_H
#define NETOBS_DROPS_DROP_CLASS_H

#include <netobs/drop.h>
#include <stdint.h>

/** @param cause, function  "": not known */
enum netobs_drop_kind drop_kind(const char *cause, const char *function);

/** @param ethertype  0: not known */
enum netobs_drop_layer drop_layer(const char *cause, const char *function,
				  uint16_t ethertype);

/** What the drop of a packet of a connection comes from. */
enum drop_class {
	DROP_CLASS_OTHER,
	DROP_CLASS_KNOWN, /**< the receiver has these bytes, or does not need them: nothing is lost */
	DROP_CLASS_CLOSED, /**< a segment for a socket that is closed, for which the kernel states no reason */
	DROP_CLASS_NO_SOCKET, /**< no socket has this port */
	DROP_CLASS_BUFFER,    /**< the receive buffer is full */
	DROP_CLASS_ACCEPT,    /**< the accept queue is full */
	DROP_CLASS_QDISC,     /**< a queueing discipline */
	DROP_CLASS_LINK, /**< the interface at the other end of a link within this host is down */
	DROP_CLASS_RULE, /**< a rule of netfilter */
	DROP_CLASS_HOOK, /**< netfilter, and it is not known whether by a rule: conntrack drops so, too */
	DROP_CLASSES
};

/** @param cause, function  "": not known */
enum drop_class drop_class(const char *cause, const char *function);

#endif
