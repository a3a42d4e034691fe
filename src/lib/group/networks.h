/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Networks that several groups share. */
#ifndef NETOBS_GROUP_NETWORKS_H
#define NETOBS_GROUP_NETWORKS_H

#include <netobs/networks.h>

/** @return @networks; each call needs one more netobs_networks_free() */
struct netobs_networks *networks_share(struct netobs_networks *networks);

#endif
