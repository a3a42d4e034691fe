/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Packets, and the result that the parser must return for each. Unit tests give them to the parser
 * built for the host, BPF tests to the programs in the kernel.
 */
#ifndef HARNESS_SAMPLES_H
#define HARNESS_SAMPLES_H

#include "bpf/parse/packet.h"
#include "packet.h"

/* A zero means: not there, unless the comment says otherwise. */
struct expected {
	int ret; /* 0 or a rejection; then nothing else counts */
	uint8_t proto;
	uint16_t src_port;
	uint16_t dst_port;
	uint16_t vlan; /* with VLAN_PRESENT */
	uint16_t outer_vlan;
	uint16_t tcp_flags;
	bool no_tcp_flags; /* cut off */
	uint8_t level;	   /* the IP header that the addresses are of */
	bool ipv6;
	bool outer_ipv6;
	uint8_t tunnel;
	uint16_t outer_dst_port;
	uint32_t vni;
	uint8_t fragment;
	uint8_t unsent;
	uint16_t l3_offset;  /* 0: 14, or 0 on a link without header */
	uint16_t header_end; /* 0: where DATA begins */
	uint16_t ip_len;     /* 0: from l3_offset to the end but for PAD */
	bool no_ip_len;	     /* the header does not say */
};

struct sample {
	const char *name;
	enum link_kind link;
	struct layer layers[PACKET_LAYERS];
	struct expected expected;
};

extern const struct sample samples[];
extern const size_t n_samples;

#endif
