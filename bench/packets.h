/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The packets of a benchmark: the flows that follow each other, and their frames. */
#ifndef NETOBS_BENCH_PACKETS_H
#define NETOBS_BENCH_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FRAME = 128 };

enum order { ORDER_UNIFORM, ORDER_ZIPF, ORDERS };

extern const char *const order_names[ORDERS + 1];

struct packets {
	uint32_t flows;
	uint32_t *each;		  /* all flows once, in random order */
	uint32_t *orders[ORDERS]; /* of @length flows, a power of two; or NULL */
	uint32_t length;
	uint32_t position; /* in the order, of the next packet */
};

/* In place of the flows that were there before. Returns 0 or -ENOMEM. */
int packets_prepare(struct packets *packets, uint32_t flows, bool with_orders);
void packets_clear(struct packets *packets);

/* Make a packet of UDP over IPv4 to an address of RFC 2544, of flow 0. */
void frame_make(uint8_t ret_frame[FRAME]);

/* Make it one of @flow. */
void frame_set_flow(uint8_t frame[FRAME], uint32_t flow);

/* The next @n flows of @order, for ever. */
void packets_take(struct packets *packets, enum order order,
		  uint32_t *ret_flows, uint32_t n);

/* 64 random bits; @state begins as the seed. */
uint64_t packets_random(uint64_t *state);

/* Each of the @n numbers from 0 once. */
void packets_permute(uint32_t *ret_numbers, uint32_t n, uint64_t seed);

#endif
