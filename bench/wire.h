/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Two network namespaces without names, joined by a veth pair, a flood from one to the
 * other, and a program on it that is exchanged while it is attached. The packets go to
 * an address that no interface has, so they end right behind the hook of either side.
 */
#ifndef NETOBS_BENCH_WIRE_H
#define NETOBS_BENCH_WIRE_H

#include "spread.h"

#include "catalogue/direction.h"

struct wire_sender;

struct wire {
	const struct spread *spread;
	int outside;  /* the namespace that this thread came from */
	int receiver; /* that of the other end */
	int link_fd;  /* of the program; -1: none */
	enum direction direction;
	struct wire_sender *senders; /* by CPU, as many as the spread has */
};

/**
 * Build it. The calling thread is in the sender's namespace until wire_close().
 *
 * @return 0, or -errno, which is reported
 */
int wire_open(struct wire *wire, const struct spread *spread);

/* Also fine after wire_open() has failed. */
void wire_close(struct wire *wire);

/**
 * Have packets pass a program on egress of the sender's end, or on ingress of the other
 * one: it takes the place of the one before, if that is in the same direction.
 *
 * @return 0, or -errno, which is reported
 */
int wire_attach(struct wire *wire, enum direction direction, int prog_fd);
void wire_detach(struct wire *wire);

/**
 * Send the next @n packets of CPU @cpu, on which the caller is; nanoseconds per packet
 * go to @ret_ns.
 *
 * @return 0 or -errno
 */
int wire_send(const struct wire *wire, uint32_t cpu, uint32_t n,
	      uint32_t *ret_ns);

/**
 * The packets that have come to the hook so far, by the interface's counters. Only in
 * the thread that has opened the wire, while no packets are sent.
 */
uint64_t wire_sent(const struct wire *wire);

#endif
