/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Two network namespaces without names, joined by a veth pair, a flood from one to the
 * other, and a program on it that is exchanged while it is attached. The packets go to
 * an address that no interface has, so they end right behind the other end.
 */
#ifndef NETOBS_BENCH_WIRE_H
#define NETOBS_BENCH_WIRE_H

#include "packets.h"

#include <sys/socket.h>

enum { WIRE_BATCH = 64 };

struct wire {
	int outside;  /* the namespace that this thread came from */
	int receiver; /* that of the other end */
	int link_fd;  /* of the program; -1: none */

	int socket_fd;
	uint8_t frames[WIRE_BATCH][FRAME];
	struct iovec parts[WIRE_BATCH];
	struct mmsghdr messages[WIRE_BATCH];
};

/**
 * Build it. The calling thread is in the sender's namespace until wire_close().
 *
 * @return 0, or -errno, which is reported
 */
int wire_open(struct wire *wire);

/* Also fine after wire_open() has failed. */
void wire_close(struct wire *wire);

/**
 * Have packets pass a program on egress of the sender's end, in place of the one before.
 *
 * @return 0, or -errno, which is reported
 */
int wire_attach(struct wire *wire, int prog_fd);
void wire_detach(struct wire *wire);

/* Send a packet of each of @n flows, WIRE_BATCH at most. Returns 0 or -errno. */
int wire_send(struct wire *wire, const uint32_t *flows, uint32_t n);

/**
 * The packets that have come to the hook so far, by the interface's counters. Only in
 * the thread that has opened the wire, while no packets are sent.
 */
uint64_t wire_sent(void);

#endif
