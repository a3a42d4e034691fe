/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Directions of an interface as indices of arrays; those of the API begin with both. */
#ifndef NETOBS_CATALOGUE_DIRECTION_H
#define NETOBS_CATALOGUE_DIRECTION_H

#include <netobs/flow.h>

#include <stdint.h>

enum direction { INGRESS = 0, EGRESS = 1 };

/** @return enum netobs_direction */
static inline uint8_t direction_of_index(int direction)
{
	return (uint8_t)(direction + NETOBS_INGRESS);
}

/** @return the direction as encoded: flowDirection of IPFIX, where 0 is ingress */
static inline uint8_t direction_index(uint8_t direction)
{
	return direction == NETOBS_EGRESS ? EGRESS : INGRESS;
}

#endif
