/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The connections of a control socket: who may connect, what waits for them, and for how long. */
#ifndef NETOBS_SERVICE_CONTROL_CONTROL_CLIENT_H
#define NETOBS_SERVICE_CONTROL_CONTROL_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/loop.h"
#include "control.h"

enum {
	CONTROL_CLIENTS = 64,
	CONTROL_LIVE_CLIENTS = 8, /* of these, that follow records */
};

enum control_client_state {
	CLIENT_ASKING,
	CLIENT_ANSWERED, /* the answer is sent, then the connection ends */
	CLIENT_WAITING,	 /* for the end of what it has asked for */
	CLIENT_LIVE,	 /* it follows records */
};

struct control_client {
	struct control_clients *all;
	int fd;
	enum control_client_state state;
	bool may_change;
	bool is_claimed;  /* what it waits for has begun */
	int64_t due_ms;	  /* when it is closed; 0: not by itself */
	int64_t taken_ms; /* when it last took a part of @out */
	size_t asked;	  /* bytes of the request */
	char *out;	  /* to be sent: from @start to @end */
	size_t start, end;
	uint64_t sent, missed; /* records */
	char request[CONTROL_REQUEST_MAX + 1];
};

struct control_clients {
	struct loop loop;
	int timer;
	gid_t group; /* whose members may connect; -1: none */
	bool group_may_change;
	/* A request has come whole, as a text; it answers or closes the client. */
	void (*on_request)(struct control_client *client, void *user);
	void *user;
	struct control_client *list[CONTROL_CLIENTS];
	size_t n, n_live;
};

/** @return 0, or -errno */
int control_clients_open(struct control_clients *all);

/** Send what is queued, as far as clients take it soon, and close all; no request is taken. */
void control_clients_close(struct control_clients *all);

/** Take over the connection @fd. @return the client; NULL: it was closed */
struct control_client *control_client_add(struct control_clients *all, int fd);

/** @return whether it is one that may connect */
bool control_client_is_admitted(struct control_client *client);

/** Wait for its request. */
void control_client_listen(struct control_client *client);

/** Send @text, which is taken over, and close it. NULL: there is no memory for an answer. */
void control_client_answer(struct control_client *client, char *text);

/** Answer it later. */
void control_client_wait(struct control_client *client);

/** What those that wait have asked for begins. */
void control_clients_claim(struct control_clients *all);

/** @return whether any waits for what has begun */
bool control_clients_are_claimed(const struct control_clients *all);

/** What has begun is over: answer those that waited for it. NULL: there is no memory for that. */
void control_clients_answer(struct control_clients *all, const char *text);

/**
 * One that has taken nothing of what waits for it for a minute makes room, if it has to.
 *
 * @return whether another one can follow records
 */
bool control_clients_find_place(struct control_clients *all);

/** Send @text, and all records from now on. */
void control_client_follow(struct control_client *client, const char *text);

/** Send a record as a line of JSON to those that follow them; @len 0: it is too long. */
void control_clients_flow(struct control_clients *all, const char *line,
			  size_t len);

/** Send to each of these how many records it has got, and has missed. */
void control_clients_mark(struct control_clients *all);

#endif
