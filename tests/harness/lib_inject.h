/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Packets of numbered UDP flows, put through programs without an interface. */
#ifndef HARNESS_LIB_INJECT_H
#define HARNESS_LIB_INJECT_H

#include "engine/store.h"

enum { INJECT_BYTES = 38 }; /* of a packet, from the IP header on */

/* @packets of the flow from ::ffff:@flow, on the calling thread's CPU. */
void inject_flow(const struct programs *programs, uint32_t flow,
		 uint32_t packets);

/* The frame of that flow, and its length. */
uint32_t inject_frame(uint32_t flow, uint8_t frame[64]);

/* An ARP frame, or one that ends inside the UDP header. */
void inject_arp(const struct programs *programs);
void inject_short(const struct programs *programs);

/* Keep this thread on one CPU, so that its flows share L1. */
void inject_pin(void);

#endif
