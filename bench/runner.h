/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Runs packets on one CPU: through a program by BPF_PROG_TEST_RUN, or over a wire. */
#ifndef NETOBS_BENCH_RUNNER_H
#define NETOBS_BENCH_RUNNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* The packets of a benchmark: the flows that follow each other, and their frames. */

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

/*
 * Two network namespaces without names, joined by a veth pair, a flood from one to the
 * other, and a program on it that is exchanged while it is attached. The packets go to
 * an address that no interface has, so they end right behind the other end.
 */

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

struct runner {
	struct packets *packets;
	struct wire *wire; /* NULL: BPF_PROG_TEST_RUN */
	int cpu;	   /* cpu_last() */
	uint64_t run;	   /* packets so far */
};

/* A program, over the wire that which is attached, and what user space does meanwhile. */
struct target {
	int prog_fd;
	void (*attend)(void *user); /* or NULL */
	void (*tend)(void *user);   /* or NULL */
	void *user;
};

/* Returns 0 or -errno. */
int runner_init(struct runner *ret_runner, struct packets *packets,
		struct wire *wire);

/**
 * Run packets for about @ms in a thread, after some that are not measured, while this thread
 * calls attend().
 *
 * @param ret_ns  per packet
 * @return 0, -EINTR: signals_are_stopping(), or another -errno
 */
int runner_measure(struct runner *runner, const struct target *target,
		   enum order order, uint32_t ms, double *ret_ns);

/* Run one packet of each flow; now and then call tend(). Returns as runner_measure() does. */
int runner_fill(struct runner *runner, const struct target *target);

#endif
