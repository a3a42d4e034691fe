/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The control socket of the service, as docs/control.md describes it: a request is a line, the
 * answer a line of JSON, or a stream of records. It never waits for a client, and neither
 * many clients nor slow ones keep others from being served, or take more than a bounded amount
 * of memory.
 */
#ifndef NETOBS_SERVICE_CONTROL_CONTROL_H
#define NETOBS_SERVICE_CONTROL_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CONTROL_SOCKET "/run/netobs/control.sock"
#define CONTROL_GROUP "netobs" /* its members may connect */

enum {
	CONTROL_PROTOCOL = 1,
	CONTROL_REQUEST_MAX = 4096, /* bytes of a request, with its newline */
	CONTROL_ANSWER_MAX = 8 << 20,
};

/* Only root and the user of the service may request it, and it may take long. */
static inline bool control_is_change(const char *command)
{
	return !strcmp(command, "reload") || !strcmp(command, "reopen");
}

struct json;
struct netobs_flow;
struct netobs_mapping_query;

/* The functions of the service for its clients. */
struct control_ops {
	/** Add the members of the status to an open object. */
	void (*add_status)(struct json *json, void *user);
	/** @return all metrics as text, valid until the next call; NULL: out of memory */
	const char *(*metrics)(void *user);
	/** Soon, control_begin_reload() and control_end_reload() follow. */
	void (*request_reload)(void *user);
	/** @return 0; < 0: why was logged, which control_note() got */
	int (*reopen)(void *user);
	/**
	 * Add mappings that match to an open array: netobs_mappings(). @return as that
	 */
	int (*mappings)(struct json *json, uint64_t *cursor,
			const struct netobs_mapping_query *query, void *user);
};

struct control;

/** @return why @path makes no sense; NULL: it does */
const char *control_refuse(const char *path);

/**
 * Listen. The directory of the default path is made if it is missing.
 *
 * @param path         NULL: CONTROL_SOCKET; "none": there is to be no socket
 * @param ret_control  yours: control_close(); NULL if there is to be no socket
 * @return 0, or -errno
 */
int control_open(const char *path, const struct control_ops *ops, void *user,
		 struct control **ret_control);

/* For all below, NULL is fine: there is no socket. */

/** @return the descriptor to poll for reading; -1: none */
int control_fd(const struct control *control);

/** Serve the clients; to be called when control_fd() polls readable. */
void control_dispatch(struct control *control);

/** Send a record to the clients that follow them. */
void control_flow(struct control *control, const struct netobs_flow *flow);

/** Call when all records of an interval have been passed. */
void control_interval(struct control *control);

/** A message was logged: it is part of the answer if a request is why. */
void control_note(struct control *control, int level, const char *text);

/** Call when a reload that clients asked for begins: the configuration is read and applied. */
void control_begin_reload(struct control *control);

/**
 * The reload has ended: answer its clients with the outcome and the messages logged.
 *
 * @param failure  the configuration in use instead; NULL: success
 */
void control_end_reload(struct control *control, const char *failure);

/** Send queues for a moment, and close all clients. */
void control_close(struct control *control);

/* ---- Notify ---------------------------------------------------------------------------- */

/*
 * Reports of the state of a service to systemd(1): sd_notify(3). The protocol is a datagram,
 * which systemd guarantees to be stable; libsystemd would load liblzma, libzstd and libgcrypt.
 */

/**
 * Send lines such as READY=1, for a second at most if systemd does not read; does nothing
 * without NOTIFY_SOCKET.
 */
void notify_send(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Send a line as notify_send(), but drop it if it would have to wait. */
void notify_now(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** RELOADING=1, to be followed by READY=1. */
void notify_reloading(void);

/** @return how often to send WATCHDOG=1, in milliseconds; 0: not at all */
uint32_t notify_watchdog_ms(void);

#endif
