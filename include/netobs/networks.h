/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/**
 * @file networks.h
 * Names of networks, by the prefixes of their addresses: keys of groups (group.h, series.h). The
 * longest prefix decides. Without names of one's own, an address is "private", "loopback",
 * "link-local", "multicast", "broadcast" or "unspecified", and all others are "internet".
 */
#ifndef NETOBS_NETWORKS_H
#define NETOBS_NETWORKS_H

#include <stddef.h>
#include <stdint.h>

#include <netobs/version.h>

#ifdef __cplusplus
extern "C" {
#endif

struct netobs_networks;

/** Enough for the name of a network, with its NUL. */
#define NETOBS_NETWORK_NAME_MAX 32

/** An element of the list of netobs_networks_new(). */
struct netobs_network {
	size_t sz; /**< sizeof(struct netobs_network), in all elements alike */
	const char *name; /**< up to 31 bytes; "internet" and the like may have more prefixes */
	/** Its prefixes, with commas, spaces or both between them: "10.0.0.0/8, 2001:db8::/32,
	 *  192.0.2.1". They replace equal prefixes of the names that need no list. */
	const char *cidr;
};

/**
 * @param list          copied; NULL if there are none
 * @param n             how many
 * @param error         gets the reason of -EINVAL: "zone: '10.0.0.1/8' has bits behind its prefix";
 *                      NULL: nowhere
 * @param ret_networks  the caller frees them by netobs_networks_free()
 * @return 0; -EINVAL: a name or prefix is wrong, two networks have the same prefix, or an argument
 *         is NULL; -E2BIG: more than 4096 prefixes; -ENOMEM
 */
NETOBS_API int netobs_networks_new(const struct netobs_network *list,
				   uint32_t n, char (*error)[NETOBS_ERROR_MAX],
				   struct netobs_networks **ret_networks);

/**
 * Find the network of an address.
 *
 * @param addr  as in struct netobs_flow
 * @return its name, valid until netobs_networks_free(); NULL: an argument is NULL
 */
NETOBS_API const char *netobs_networks_find(const struct netobs_networks *networks,
					    const uint8_t addr[16]);

/** Free the networks. Series that were made with them go on using them. NULL is fine. */
NETOBS_API void netobs_networks_free(struct netobs_networks *networks);

#ifdef __cplusplus
}
#endif

#endif
