/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A socket that readers of packets connect to, such as tshark. Each gets a capture file of its
 * own, from the moment of its connection on. One that reads too slowly misses packets, which its
 * file counts.
 */
#ifndef NETOBS_CLI_CAPTURE_CAPTURE_LISTEN_H
#define NETOBS_CLI_CAPTURE_CAPTURE_LISTEN_H

#include <netobs/capture.h>
#include <stdbool.h>

#include "service/socket/server.h"

enum { CAPTURE_CLIENTS = 64 };

struct capture_listen {
	struct server server;
	enum netobs_packet_format format;
	uint64_t missed;  /* packets, by clients that read too slowly */
	uint64_t refused; /* clients */
};

/* @return why @spec cannot be listened on; NULL: it can */
const char *capture_listen_refuse(const char *spec);

/*
 * @spec: ADDRESS:PORT or [ADDRESS]:PORT of loopback, or unix:PATH.
 *
 * @return 0 or -errno
 */
int capture_listen_open(struct capture_listen *listener, const char *spec,
			enum netobs_packet_format format);

/* Begin a file for each client that has none yet. */
void capture_listen_begin(struct capture_listen *listener,
			  struct netobs *capture);

void capture_listen_add(struct capture_listen *listener,
			const struct netobs_packet *packet);

/* Write statistics to the clients that have room for them. */
void capture_listen_stats(struct capture_listen *listener);

/* Send what clients take now. */
void capture_listen_flush(struct capture_listen *listener);

/* @return whether a client is connected */
bool capture_listen_has_clients(const struct capture_listen *listener);

/* Give clients a moment to read their queues, and close all. */
void capture_listen_close(struct capture_listen *listener);

#endif
