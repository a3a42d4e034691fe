/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Groups of flows, up to a number of them. When there are more, the half with fewer bytes is
 * added to one that stands for the others, so that sums are exact and the largest groups stay,
 * whenever they come.
 */
#ifndef NETOBS_CLI_GROUP_H
#define NETOBS_CLI_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/view/by.h"

/* Sums over flows. */
struct tally {
	uint64_t flows, packets, bytes;
	uint64_t sent_packets, sent_bytes; /* of a host, part of them */
	/* Of TCP, with --rtt: round-trip times, each flow's smoothed one as often as it has
	 * samples, and segments that were sent again. */
	uint64_t rtt_samples, rtt_sum_ns, retransmits;
	int64_t start_ns, end_ns;
	uint32_t sampling; /* of the flows, as in their records; 0: these do not name it */
	uint8_t sampling_mode;
	bool is_mixed; /* it is that of some of them: the sums estimate nothing */
};

struct group {
	struct tally tally;
	uint8_t value[]; /* of groups->value_size bytes */
};

struct groups {
	size_t value_size; /* a multiple of 8 */
	size_t n, size, most;
	uint8_t *groups; /* one after the other, see groups_at() */
	uint32_t *index; /* 1 + a group's number; a power of two of places */
	size_t places;
	struct tally others; /* of groups that there is no room for */
	uint32_t secret[BY_SIZE / sizeof(uint32_t)];
};

struct tally tally_of(const struct netobs_flow *flow);

/** @return the mean round-trip time; 0: there are no samples */
uint64_t tally_rtt_ns(const struct tally *tally);

/** Add up, and widen the time. */
void tally_add(struct tally *tally, const struct tally *more);

/**
 * @value_size  of a struct by
 * @most        groups; at least 1
 * @return 0; -errno: no memory, or no random numbers
 */
int groups_init(struct groups *groups, size_t value_size, size_t most);

void groups_add(struct groups *groups, const uint8_t value[BY_SIZE],
		const struct tally *tally);

/** Add up the groups of @more, which has values of the same size. */
void groups_add_all(struct groups *groups, const struct groups *more);

const struct group *groups_at(const struct groups *groups, size_t i);

void groups_clear(struct groups *groups);
void groups_free(struct groups *groups);

#endif
