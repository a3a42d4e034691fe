/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Packets of a capture file that passed several interfaces, or one in both directions, and are in it
 * once for each. The n-th packet with some content at one of these points is the n-th with that
 * content at another one, within a second; so as many count as the point has that saw most of them.
 *
 * Content is all from the network header on but what routers change: the type of service, the hop
 * limit and the checksum of the header. Address translation makes other packets, as it does for flows.
 */
#ifndef NETOBS_CAPTURE_CROSSINGS_H
#define NETOBS_CAPTURE_CROSSINGS_H

#include "capture_file.h"

struct crossings;

/** @return NULL: no memory */
struct crossings *crossings_new(void);
void crossings_free(struct crossings *crossings);

/** Note a packet with an interface. @return whether it has passed another point before */
bool crossings_is_again(struct crossings *crossings, const struct frame *frame);

#endif
