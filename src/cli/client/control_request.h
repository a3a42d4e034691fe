/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Requests to the control socket of a service. What goes wrong is printed to stderr. */
#ifndef NETOBS_CLI_CLIENT_CONTROL_REQUEST_H
#define NETOBS_CLI_CLIENT_CONTROL_REQUEST_H

#include <stddef.h>

#include "service/control/control.h"
#include "base/json_reader.h"

struct control_connection {
	const char *verb; /* verb of messages */
	const char *path;
	int fd;
	int answer_ms; /* in which the answer has to come */
	bool may_lack; /* not to be printed: the service does not have that */
	char *buf;     /* received lines, from @start to @end */
	size_t start, end, size;
};

/**
 * Connect and send a request.
 *
 * @param path            of the socket; NULL: CONTROL_SOCKET
 * @param ret_connection  yours, also on failure: control_disconnect()
 * @return 0; < 0: it failed
 */
int control_connect(struct control_connection *ret_connection, const char *verb,
		    const char *path, const char *request);

/** @return whether something listens at @path, if only for others; NULL: CONTROL_SOCKET */
bool control_is_there(const char *path);

/**
 * Receive a line, which is valid until the next call.
 *
 * @param timeout_ms  -1: no limit
 * @return 0; -EAGAIN: none has come in time; -EINTR; -EPIPE: the service has closed the
 *         connection; others: it failed
 */
int control_receive(struct control_connection *connection, int timeout_ms,
		    char **ret_line);

/**
 * Receive the answer, and print why the service refuses, if it does.
 *
 * @param ret_answer  valid until the next line is received
 * @return 0; -ENOTSUP: the service does not have that; others: it failed
 */
int control_answer(struct control_connection *connection,
		   struct json_value *ret_answer);

/** Print the answer to a request for the status, for people: status_text.c. */
void status_print(struct json_value answer);

void control_disconnect(struct control_connection *connection);

#endif
