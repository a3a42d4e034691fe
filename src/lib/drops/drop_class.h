/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What a drop means, and the part of the kernel that it belongs to, by the names that the kernel has for
 * the reason and the function. Numbers of reasons differ by kernel, names hardly do.
 */
#ifndef NETOBS_DROPS_DROP_CLASS_H
#define NETOBS_DROPS_DROP_CLASS_H

#include <netobs/drop.h>

#define DROP_CAUSE_PREFIX "SKB_DROP_REASON_"

/** @param cause, function  "": not known */
enum netobs_drop_kind drop_kind(const char *cause, const char *function);

/** @param ethertype  0: not known */
enum netobs_drop_layer drop_layer(const char *cause, const char *function,
				  uint16_t ethertype);

#endif
