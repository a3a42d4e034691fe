/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "httpd_module.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include <netobs/version.h>

#include "base/clock_ms.h"
#include "base/util.h"

enum {
	CLIENTS = 96,
	/* libmicrohttpd accepts up to 10 in a row; the oldest leave room for these. */
	CROWD = 64,
	REQUEST_MS = 10000, /* for a request and its answer, or idle */
	LOOK_MS = 1000,	    /* how often requests are checked for that */
	MEMORY = 16 << 10,  /* memory of a connection, for the request's head */
};

struct client {
	struct MHD_Connection *connection; /* NULL: free */
	int64_t since_ms;		   /* begin of the request */
	bool is_cut;
};

struct httpd {
	struct MHD_Daemon *daemon;
	int epoll_fd;
	httpd_answer_fn *answer;
	void *user;
	struct client clients[CLIENTS];
	unsigned int n_clients;
};

/* ---- Clients ---------------------------------------------------------------------- */

/*
 * libmicrohttpd drops clients that are silent, but not those that send a byte now and then.
 * It closes the connection when it finds its end.
 */
static void cut_client(struct client *client)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
		client->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	client->is_cut = true;
	if (info)
		shutdown(info->connect_fd, SHUT_RDWR);
}

static void cut_oldest(struct httpd *httpd)
{
	struct client *oldest = NULL;

	for (size_t i = 0; i < CLIENTS; i++) {
		struct client *client = &httpd->clients[i];

		if (client->connection && !client->is_cut &&
		    (!oldest || client->since_ms < oldest->since_ms))
			oldest = client;
	}
	if (oldest)
		cut_client(oldest);
}

static void cut_slow(struct httpd *httpd)
{
	const int64_t before_ms = now_ms() - REQUEST_MS;

	for (size_t i = 0; i < CLIENTS; i++) {
		struct client *client = &httpd->clients[i];

		if (client->connection && !client->is_cut &&
		    client->since_ms < before_ms)
			cut_client(client);
	}
}

static void add_client(struct httpd *httpd, struct MHD_Connection *connection,
		       void **ret_client)
{
	size_t i = 0;

	if (httpd->n_clients >= CROWD)
		cut_oldest(httpd);
	while (i < CLIENTS && httpd->clients[i].connection)
		i++;
	if (i == CLIENTS)
		return;
	httpd->clients[i] = (struct client){ .connection = connection,
					     .since_ms = now_ms() };
	httpd->n_clients++;
	*ret_client = &httpd->clients[i];
}

static void on_connection(void *arg, struct MHD_Connection *connection,
			  void **client, enum MHD_ConnectionNotificationCode code)
{
	struct httpd *httpd = arg;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		add_client(httpd, connection, client);
	} else if (*client) {
		*(struct client *)*client = (struct client){ 0 };
		httpd->n_clients--;
	}
}

/* The next request of the same client has its own time. */
static void on_completed(void *arg, struct MHD_Connection *connection,
			 void **request, enum MHD_RequestTerminationCode code)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
		connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	(void)arg;
	(void)request;
	(void)code;
	if (info && info->socket_context)
		((struct client *)info->socket_context)->since_ms = now_ms();
}

/* ---- Requests --------------------------------------------------------------------- */

static enum MHD_Result send_reply(struct MHD_Connection *connection,
				  unsigned int status,
				  const struct httpd_answer *answer)
{
	enum MHD_Result queued;
	struct MHD_Response *response = MHD_create_response_from_buffer(
		answer->len, (void *)answer->body, MHD_RESPMEM_MUST_COPY);

	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
				answer->type);
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW,
					"GET, HEAD");
	queued = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return queued;
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection,
				  const char *url, const char *method,
				  const char *version, const char *data,
				  size_t *data_len, void **request)
{
	static const char refusal[] = "GET and HEAD are answered\n";
	const struct httpd *httpd = arg;
	struct httpd_answer answer = { .type = "text/plain",
				       .body = refusal,
				       .len = strlen(refusal) };
	unsigned int status = MHD_HTTP_METHOD_NOT_ALLOWED;

	(void)version;
	(void)data;
	if (!strcmp(method, MHD_HTTP_METHOD_GET) ||
	    !strcmp(method, MHD_HTTP_METHOD_HEAD)) {
		/* The first call comes before a body, which is not wanted. */
		if (!*request || *data_len) {
			*request = arg;
			*data_len = 0;
			return MHD_YES;
		}
		status = httpd->answer(httpd->user, url, &answer);
	}
	return send_reply(connection, status, &answer);
}

/* ---- The server ------------------------------------------------------------------- */

static void httpd_close(struct httpd *httpd)
{
	if (!httpd)
		return;
	if (httpd->daemon)
		MHD_stop_daemon(httpd->daemon);
	free(httpd);
}

static struct MHD_Daemon *start_daemon(struct httpd *httpd, int listen_fd)
{
	return MHD_start_daemon(
		MHD_USE_EPOLL, 0, NULL, NULL, on_request, httpd,
		MHD_OPTION_LISTEN_SOCKET, listen_fd,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned int)CLIENTS,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)REQUEST_MS / 1000,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, httpd,
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, httpd, MHD_OPTION_END);
}

static int httpd_open(int listen_fd, httpd_answer_fn *answer, void *user,
		      struct httpd **ret_httpd)
{
	struct httpd *httpd = calloc(1, sizeof(*httpd));
	const union MHD_DaemonInfo *info;

	if (!httpd)
		return -ENOMEM;
	httpd->answer = answer;
	httpd->user = user;
	httpd->daemon = start_daemon(httpd, listen_fd);
	if (!httpd->daemon) {
		free(httpd);
		return -ENOMEM;
	}
	info = MHD_get_daemon_info(httpd->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	httpd->epoll_fd = info->epoll_fd;
	*ret_httpd = httpd;
	return 0;
}

static int httpd_fd(const struct httpd *httpd)
{
	return httpd->epoll_fd;
}

static int httpd_run(struct httpd *httpd)
{
	MHD_UNSIGNED_LONG_LONG ms;
	int wait_ms = -1;

	cut_slow(httpd);
	MHD_run(httpd->daemon);
	if (MHD_get_timeout(httpd->daemon, &ms) == MHD_YES)
		wait_ms = (int)min_u64(ms, LOOK_MS);
	return httpd->n_clients ? sooner_ms(wait_ms, LOOK_MS) : wait_ms;
}

__attribute__((visibility("default"))) const struct httpd_module netobs_httpd = {
	.loaded = { .version = NETOBS_VERSION },
	.open = httpd_open,
	.fd = httpd_fd,
	.run = httpd_run,
	.close = httpd_close,
};
