/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A program that reads packets from a socket. It gets a capture file of its own; while it
 * reads too slowly, it misses packets, which its file counts.
 */
#ifndef NETOBS_CLI_CAPTURE_CLIENT_H
#define NETOBS_CLI_CAPTURE_CLIENT_H

#include <netobs/capture.h>
#include <stdbool.h>

#include "service/tls/tls_module.h"

/* TLS of a socket that clients connect to; its module is NULL: there is none. */
struct capture_tls {
	const struct tls_module *module;
	struct tls_context *context;
};

struct capture_client {
	int fd;
	const struct capture_tls *tls;
	struct tls *connection; /* NULL: without TLS */
	bool is_ready; /* no handshake is under way: it may have packets */
	bool is_gone;
	bool is_refused;		     /* and never had packets */
	int64_t due_ms;			     /* when it has to be ready */
	char address[64];		     /* its own, for messages */
	struct netobs_packet_writer *writer; /* NULL: there is no capture yet */
	char *queue;
	size_t start, end; /* of the bytes that it has not read yet */
};

/* @fd is the client's then. NULL: no memory. */
struct capture_client *capture_client_new(int fd, const struct capture_tls *tls);

void capture_client_free(struct capture_client *client);

/* What to wait for, as poll(2) has it. */
short capture_client_events(const struct capture_client *client);

/* Handle input: a step of the handshake; other input is ignored. */
void capture_client_read(struct capture_client *client);

/* Send what the client takes now. */
void capture_client_flush(struct capture_client *client);

/* Begin its file. */
void capture_client_begin(struct capture_client *client,
			  struct netobs_capture *capture,
			  enum netobs_packet_format format);

/* @return false: the client has no room for it, which its file counts */
bool capture_client_add(struct capture_client *client,
			const struct netobs_packet *packet);

/* Write statistics, if there is room for them. */
void capture_client_stats(struct capture_client *client);

/* Why a client is refused, for people. */
const char *capture_client_reason(const struct capture_client *client);

#endif
