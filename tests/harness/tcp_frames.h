/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Segments of TCP connections that go through the flow programs at times that a test chooses. */
#ifndef HARNESS_TCP_FRAMES_H
#define HARNESS_TCP_FRAMES_H

#include "prog.h"

enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16 };

/* Timestamps (RFC 7323), with two NOPs. */
enum tcp_stamps {
	STAMPS_NONE,
	STAMPS_FIRST,	/* as appendix A has them */
	STAMPS_SHIFTED, /* the NOPs are behind */
};

/* A segment from or to a client. */
struct tcp_frame {
	bool is_ipv6;
	bool is_vxlan;
	bool is_answer; /* from the server */
	bool egress;
	uint16_t port; /* of the client */
	uint8_t flags;
	uint32_t seq, ack;
	uint32_t len;
	uint64_t us;
	uint64_t ns;	   /* in place of `us`, if it is not 0 */
	uint16_t segments; /* GSO or GRO; 0: one */
	enum tcp_stamps stamps;
	uint32_t tsval, tsecr;
};

/* One that goes out from a client. */
static inline struct tcp_frame tcp_out(uint16_t port, uint8_t flags, uint32_t seq,
				       uint32_t ack, uint32_t len, uint64_t us)
{
	return (struct tcp_frame){ .egress = true,
				   .port = port,
				   .flags = flags,
				   .seq = seq,
				   .ack = ack,
				   .len = len,
				   .us = us };
}

/* One that comes in from its server. */
static inline struct tcp_frame tcp_in(uint16_t port, uint8_t flags, uint32_t seq,
				      uint32_t ack, uint32_t len, uint64_t us)
{
	struct tcp_frame frame = tcp_out(port, flags, seq, ack, len, us);

	frame.egress = false;
	frame.is_answer = true;
	return frame;
}

/* @return its key, as the programs have it */
struct flow_key tcp_send(struct prog *prog, struct tcp_frame frame);

/*
 * An echo request, or the reply to it, with an identifier and a sequence number: @number. What of
 * @frame is the client's port is the end of the client's address here.
 */
struct flow_key echo_send(struct prog *prog, struct tcp_frame frame,
			  uint32_t number);

/*
 * Observed at the client: its segments go out. The handshake takes 300 us, the server 50 ms,
 * and its data is acknowledged after 20 us. All of it begins at @common.us.
 */
void tcp_exchange(struct prog *prog, struct tcp_frame common,
		  struct flow_key *ret_key);

#endif
