/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Events of a trace as a capture file: a packet for each that has one, at its interface and time, with a comment that
 * says where it was. Its headers are made from the event: trace_packet.h.
 */
#ifndef NETOBS_CLI_TRACE_TRACE_PCAPNG_H
#define NETOBS_CLI_TRACE_TRACE_PCAPNG_H

#include <netobs/trace.h>
#include <stdbool.h>

struct trace_pcapng;

/**
 * Make the file, before the trace starts. A FIFO is waited for until it has a reader.
 *
 * @param path  "-": standard output
 * @return 0; -EINTR: a signal came; -errno: it cannot be made
 */
int trace_pcapng_open(const char *path, struct trace_pcapng **ret_pcapng);

/* The trace has started: begin to replace the file. */
void trace_pcapng_start(struct trace_pcapng *pcapng);

/** @return whether it is a packet of the file, or would be but for an error */
bool trace_pcapng_add(struct trace_pcapng *pcapng,
		      const struct netobs_trace_event *event);

/** Write what there is. @return 0; < 0: the first error so far */
int trace_pcapng_flush(struct trace_pcapng *pcapng);

/** @return as trace_pcapng_flush(); NULL is fine */
int trace_pcapng_close(struct trace_pcapng *pcapng);

#endif
