/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The sampling rates of a context. In the kernel, few bits of a flow's key are free for the rate at
 * which its packets are sampled: the key has the number of the rate, which is below RATES. A number
 * keeps its meaning while programs that use it may run, and entries with it may wait in the tables.
 * Flows in user space live longer, so they have an identifier of the rate instead, of which there
 * are more: it is in use as long as a number or a flow has it.
 */
#ifndef NETOBS_ENGINE_RATES_H
#define NETOBS_ENGINE_RATES_H

#include "bpf/types.h"

#include <stdbool.h>
#include <stdint.h>

enum { RATE_IDS = 64 };

struct rates {
	struct rate numbers[RATES]; /* number 0: all packets; others: interval 0: free */
	struct rate ids[RATE_IDS]; /* identifier 0: all packets */
	uint8_t id_of[RATES];	   /* identifier of each number */
	bool is_sampling;	   /* some packets are sampled, or were once */
};

/* Make a rate of the public fields sampling and sampling_mode; an interval of 1 is all packets. */
static inline struct rate rate_of(uint32_t interval, unsigned int mode)
{
	return interval > 1 ? (struct rate){ interval, mode } :
			      (struct rate){ 0 };
}

/* Take over numbers that an earlier process used. */
void rates_adopt(struct rates *rates, const struct rate numbers[RATES]);

/** @return the number of a rate; RATES: none */
uint32_t rates_number(const struct rate numbers[RATES], const struct rate *rate);

/**
 * Give each rate of a list a number.
 *
 * @param n_flows  flows in user space by identifier; NULL: there are no flows
 * @param ret_new  1 << number, or-ed, for each number that was free
 * @return 0; -EBUSY: too few are free, and nothing has changed
 */
int rates_take(struct rates *rates, const struct rate *list, uint32_t n,
	       const uint32_t n_flows[RATE_IDS], uint32_t *ret_new);

/* Free all numbers except those of the list: no program uses them, and all entries were read. */
void rates_keep(struct rates *rates, const struct rate *list, uint32_t n);

/* @return whether the packets of flows with that identifier are sampled independently at each point */
static inline bool rates_are_random(const struct rates *rates, uint32_t id)
{
	return rates->ids[id].interval && rates->ids[id].mode == SAMPLE_PACKETS;
}

#endif
