/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Flow numbers in the order of packets: seeded, so that each run has the same. */
#ifndef NETOBS_BENCH_SEQUENCE_H
#define NETOBS_BENCH_SEQUENCE_H

#include <stddef.h>
#include <stdint.h>

/* 64 random bits; @state begins as the seed. */
uint64_t sequence_random(uint64_t *state);

/* Each of the @flows numbers from 0 once, in random order. */
void sequence_permute(uint32_t *ret_numbers, uint32_t flows, uint64_t seed);

/* @n numbers, each as likely as any other below @flows. */
void sequence_uniform(uint32_t *ret_numbers, size_t n, uint32_t flows,
		      uint64_t seed);

/*
 * @n numbers by Zipf's law: the flow of rank k, which is @ranking[k - 1], has
 * a share of packets in proportion to k ^ -@exponent. Returns 0 or -ENOMEM.
 */
int sequence_zipf(uint32_t *ret_numbers, size_t n, const uint32_t *ranking,
		  uint32_t flows, double exponent, uint64_t seed);

#endif
