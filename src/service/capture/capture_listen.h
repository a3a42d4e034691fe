/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A socket that readers of packets connect to, such as tshark. Each gets a capture file of its
 * own, from the moment of its connection on. One that reads too slowly misses packets, which its
 * file counts.
 */
#ifndef NETOBS_SERVICE_CAPTURE_CAPTURE_LISTEN_H
#define NETOBS_SERVICE_CAPTURE_CAPTURE_LISTEN_H

#include <netobs/capture.h>
#include <stdbool.h>

#include "service/socket/server.h"

enum {
	CAPTURE_CLIENTS = 64,
	CAPTURE_HANDSHAKES = 64, /* at the same time, of TLS */
};

struct capture_listen_options {
	const char *spec; /* ADDRESS:PORT, [ADDRESS]:PORT or unix:PATH */
	bool is_any;	  /* not only a loopback address */
	/* All paths, or all NULL: without TLS. */
	const char *tls_ca, *tls_cert, *tls_key;
	enum netobs_packet_format format;
};

struct capture_listen {
	struct server server;
	enum netobs_packet_format format;
	uint64_t missed;  /* packets, by clients that read too slowly */
	uint64_t refused; /* clients */
	char reason[640]; /* of the last failure, or of the last client refused */
};

/* Why options->spec cannot be listened on; NULL: it can. */
const char *capture_listen_refuse(const struct capture_listen_options *options);

/* @return 0 or -errno: listener->reason says why */
int capture_listen_open(struct capture_listen *listener,
			const struct capture_listen_options *options);

/* Once privileges are dropped: whether renewed TLS files could be read. */
void capture_listen_check(struct capture_listen *listener);

/* Why the files of TLS cannot be read again, so that earlier ones are used; "": they can. */
const char *capture_listen_fault(const struct capture_listen *listener);

/* Begin a file for each client that has none yet. */
void capture_listen_begin(struct capture_listen *listener,
			  struct netobs_capture *capture);

void capture_listen_add(struct capture_listen *listener,
			const struct netobs_packet *packet);

/* Write statistics to the clients that have room for them. */
void capture_listen_stats(struct capture_listen *listener);

/* Send what clients take now. */
void capture_listen_flush(struct capture_listen *listener);

/* @return whether there is a client that may have packets */
bool capture_listen_has_clients(const struct capture_listen *listener);

/* Give clients a moment to read their queues, and close all. */
void capture_listen_close(struct capture_listen *listener);

#endif
