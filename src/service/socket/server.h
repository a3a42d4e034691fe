/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A socket and its clients, none of which is ever waited for: each has a queue of a size that
 * its user sets, and may have a time at which it is closed.
 */
#ifndef NETOBS_SERVICE_SERVER_H
#define NETOBS_SERVICE_SERVER_H

#include "base/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct server;

/* ---- A socket that clients connect to: ADDRESS:PORT, [ADDRESS]:PORT or unix:PATH ------ */

struct listen {
	int fd;
	char *unix_path; /* path to remove at the end; NULL: TCP */
	dev_t device;	 /* device of the socket's file, and */
	ino_t inode;	 /* its inode there */
};

/** @return why @spec is no address; NULL: it is one */
const char *listen_refuse(const char *spec);

/** @return whether only processes of this host can connect */
bool listen_is_local(const char *spec);

/**
 * Listen, in a non-blocking way. A socket in the file system that a killed process left
 * behind is replaced.
 *
 * @param spec  which listen_refuse() has accepted
 * @return 0 or -errno
 */
int listen_open(struct listen *listener, const char *spec);

/* Format the listening address, with the port that the kernel chose for 0. */
void listen_where(const struct listen *listener, char *text, size_t size);

/**
 * Accept a client.
 *
 * @param address  its own, as a text; unchanged for unix sockets
 * @return its socket, non-blocking and the caller's; or -errno: -EAGAIN
 */
int listen_accept(const struct listen *listener, char *address, size_t size);

/* Also removes the socket from the file system, unless another process has replaced it. */
void listen_close(struct listen *listener);

/* ---- The server ----------------------------------------------------------------------- */

enum { SERVER_CLIENTS = 128 };

/* The first member of a user's client, which begins as zeroes. */
struct server_client {
	struct server *server;
	int fd;
	bool is_last;	  /* close the client once its queue is sent */
	uint32_t events;  /* to wait for: EPOLLIN, or EPOLLHUP for no input */
	uint32_t watched; /* the events that the loop waits for */
	int64_t due_ms;	  /* when it is closed; 0: not by itself */
	int64_t taken_ms; /* when it last took a part of the queue */
	char *out; /* the queue: to be sent are the bytes from @start to @end */
	size_t size, start, end;
	char address[64]; /* address of the client, for messages; "" for unix sockets */
};

struct server_ops {
	size_t client_size;
	/**
	 * Close other clients if there are too many.
	 *
	 * @return false: close the connection @fd, it becomes no client
	 */
	bool (*admit)(struct server *server, int fd);
	/** A client has connected. The callee may close it. */
	void (*on_connect)(struct server_client *client);
	/** Receive. NULL: input is ignored, and its end closes the client. */
	void (*on_input)(struct server_client *client);
	/** A client is about to be freed. @why: why it is refused; NULL: it is not. */
	void (*on_close)(struct server_client *client, const char *why);
};

struct server {
	const struct server_ops *ops;
	struct loop loop; /* the descriptor to wait for is loop.fd */
	struct listen listener;
	int timer;
	int64_t wake_ms;   /* when the timer expires; 0: it does not */
	int64_t resume_ms; /* when connections are accepted again; 0: they are */
	struct server_client *list[SERVER_CLIENTS];
	size_t n;
};

/** No client can connect yet. @return 0, or -errno; server_close() in both cases */
int server_open(struct server *server, const struct server_ops *ops);

/** @spec is as in listen_open(). @return 0, or -errno */
int server_listen(struct server *server, const char *spec);

/** Serve the clients that are ready, without waiting. */
void server_dispatch(struct server *server);

/** Stop accepting, send queues for @ms at most, and close all clients. */
void server_close(struct server *server, int ms);

/** Close all clients, but keep listening. */
void server_drop(struct server *server);

/* ---- A client ---------------------------------------------------------------------- */

/** Take over the connection @fd. It may be closed at once. */
void server_add(struct server *server, int fd, const char *address);

/** Close and free a client; the last one of the list gets its index. @why: for on_close() */
void server_close_client(struct server_client *client, const char *why);

void server_set_due(struct server_client *client, int64_t due_ms);

/** Make a queue of @size bytes. @return false: there is no memory, and it was closed */
bool server_make_queue(struct server_client *client, size_t size);

/** @return the free bytes of the queue */
size_t server_room(const struct server_client *client);

/** Queue bytes. @return false: there is no room */
bool server_queue(struct server_client *client, const void *bytes, size_t len);

/** Send as much of the queue as the client takes now. @return false: it was closed */
bool server_send(struct server_client *client);

/** @return bytes, 0 at the end, or -errno: -EAGAIN */
ssize_t server_receive(struct server_client *client, void *to, size_t len);

#endif
