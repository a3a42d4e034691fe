/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The clients of a control socket: permission to connect, their requests, and timeouts. */
#ifndef NETOBS_SERVICE_CONTROL_CONTROL_CLIENT_H
#define NETOBS_SERVICE_CONTROL_CONTROL_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "control.h"
#include "service/socket/server.h"

enum {
	CONTROL_CLIENTS = 64,
	CONTROL_LIVE_CLIENTS = 8, /* clients that may follow records */
	CONTROL_STALL_MS =
		5000, /* a client that takes no records for so long may be replaced */
	CONTROL_LIVE_QUEUE = 4 << 20,  /* bytes that wait for a client */
	CONTROL_LIVE_BATCH = 64 << 10, /* bytes that are sent at once */
};

enum control_client_state {
	CLIENT_ASKING,
	CLIENT_ANSWERED, /* the answer is sent, then the connection ends */
	CLIENT_WAITING,	 /* for the end of the work that it asked for */
	CLIENT_LIVE,	 /* follows records */
};

struct control_client {
	struct server_client base;
	enum control_client_state state;
	bool may_change;
	bool is_claimed;       /* the work that it waits for has begun */
	size_t asked;	       /* bytes of the request */
	uint64_t sent, missed; /* records */
	char request[CONTROL_REQUEST_MAX + 1];
};

struct control_clients {
	struct server server;
	gid_t group; /* group whose members may connect; -1: none */
	/* A client without permission to connect: answer it. */
	void (*on_stranger)(struct control_client *client, void *user);
	/* A request has come whole, as a text; it answers or closes the client. */
	void (*on_request)(struct control_client *client, void *user);
	void *user;
	size_t n_live;
};

/** No client can connect yet. @return 0, or -errno; control_clients_close() in both cases */
int control_clients_open(struct control_clients *all);

/** Take no more requests, send queues for a moment, and close all clients. */
void control_clients_close(struct control_clients *all);

/** Send @text, which is taken over, and close the client. NULL: there is no memory for an answer. */
void control_client_answer(struct control_client *client, char *text);

/** Answer it later. */
void control_client_wait(struct control_client *client);

/** Mark the waiting clients: the work that they asked for begins. */
void control_clients_claim(struct control_clients *all);

/** @return whether a client waits for the work that has begun */
bool control_clients_are_claimed(const struct control_clients *all);

/** Send @text to the clients that waited for it. NULL: there was no memory for it. */
void control_clients_answer(struct control_clients *all, const char *text);

/**
 * Make room for a client that follows records: evict one that has read nothing for CONTROL_STALL_MS.
 *
 * @return whether there is room
 */
bool control_clients_find_place(struct control_clients *all);

/** Send @text, and all records from now on. */
void control_client_follow(struct control_client *client, const char *text);

/** Send a record as a line of JSON to the clients that follow records; @len 0: it is too long. */
void control_clients_flow(struct control_clients *all, const char *line,
			  size_t len);

/** Send to each of these how many records it has got, and has missed. */
void control_clients_mark(struct control_clients *all);

#endif
