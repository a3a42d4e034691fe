/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The sampling rates of a context. In the kernel, few bits of a flow's key are free for the
 * rate at which its packets are sampled: they have the number of one of RATES. A number
 * keeps its meaning while programs that use it may run, and entries with it may wait in the
 * tables. Flows in user space stay longer, so they have an identifier of the rate, of which
 * there are more: it is in use as long as a number has it, or a flow.
 */
#ifndef NETOBS_ENGINE_RATES_H
#define NETOBS_ENGINE_RATES_H

#include "bpf/types.h"

#include <stdbool.h>
#include <stdint.h>

enum { RATE_IDS = 64 };

struct rates {
	struct rate numbers[RATES]; /* 0 is that of all packets; others: interval 0: free */
	struct rate ids[RATE_IDS]; /* likewise */
	uint8_t id_of[RATES];	   /* by number */
	bool is_sampling;	   /* some packets are, or were, sampled */
};

/* Of the public fields sampling and sampling_mode: one of one is all. */
static inline struct rate rate_of(uint32_t interval, unsigned int mode)
{
	return interval > 1 ? (struct rate){ interval, mode } :
			      (struct rate){ 0 };
}

/* Take over numbers that an earlier process used. */
void rates_adopt(struct rates *rates, const struct rate numbers[RATES]);

/** @return the number of a rate; RATES: it has none */
uint32_t rates_number(const struct rate numbers[RATES], const struct rate *rate);

/**
 * Give each rate of a list a number.
 *
 * @param n_flows  in user space, of each identifier; NULL: none
 * @param ret_new  1 << number, or-ed, of those that were free
 * @return 0; -EBUSY: too few are free, and nothing has changed
 */
int rates_take(struct rates *rates, const struct rate *list, uint32_t n,
	       const uint32_t n_flows[RATE_IDS], uint32_t *ret_new);

/* Free all numbers but those of the list: no program uses them, and all entries were read. */
void rates_keep(struct rates *rates, const struct rate *list, uint32_t n);

/* Whether a flow of that identifier is of packets that are sampled at each point anew. */
static inline bool rates_are_random(const struct rates *rates, uint32_t id)
{
	return rates->ids[id].interval && rates->ids[id].mode == SAMPLE_PACKETS;
}

#endif
