/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Requests to the control socket of a service. What goes wrong is printed to stderr. */
#ifndef NETOBS_CLI_CLIENT_CLIENT_H
#define NETOBS_CLI_CLIENT_CLIENT_H

#include "base/buffer.h"
#include "base/json_reader.h"
#include "service/control/control.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct control_connection {
	const char *verb; /* verb of messages */
	const char *path;
	int fd;
	int answer_ms; /* in which the answer has to come */
	bool may_lack; /* not to be printed: the service does not have that */
	struct buffer bytes; /* received lines, those that are not taken yet from @start on */
	size_t start;
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

/* Mappings by NAT as a table, or as lines of JSON: of a service, or of the library. */

struct netobs_mapping;
struct netobs_mapping_query;

struct mapping_row {
	char *line; /* JSON */
	char state[16];
	uint64_t times[3]; /* the end, the last packet, the beginning */
};

/* All zero: it is empty, and takes all. */
struct mapping_list {
	const struct netobs_mapping_query *query; /* it takes those that match; NULL: all */
	struct mapping_row *rows;
	uint32_t n, capacity;
	bool is_out_of_memory;
};

/* Add a mapping that matches; @list: a struct mapping_list. */
void mapping_list_add(const struct netobs_mapping *mapping, void *list);

/**
 * Add the mappings of the service at @socket. If the service at
 * the default socket keeps no mappings, which is printed, or there is no service, those of the
 * kernel's table are added.
 *
 * @param tuple        the query as text; NULL: none
 * @param has_service  whether there is one that keeps mappings; set to false if not
 * @return 0; < 0: it failed, which was printed
 */
int mapping_list_ask(struct mapping_list *list, const char *socket,
		     const char *tuple, bool *has_service);

/**
 * Add the mappings of the kernel's table.
 *
 * @param netns  whose table; NULL: that of this process
 * @return 0; < 0: it failed, which was printed
 */
int mapping_list_kernel(struct mapping_list *list, const char *netns);

/* Sort mappings in use before others, the latest first. */
void mapping_list_sort(struct mapping_list *list);

/* Print @most of them to standard output; 0: all. @width: of a line of a table; 0: any */
void mapping_list_print_table(const struct mapping_list *list, uint32_t most,
			      uint32_t width);
void mapping_list_print_json(const struct mapping_list *list, uint32_t most);

/* Make it empty; the query stays. */
void mapping_list_clear(struct mapping_list *list);

#endif
