/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "client.h"

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <netobs/version.h>

#include "base/clock_ms.h"
#include "base/text.h"
#include "base/util.h"

enum {
	ANSWER_MS = 20000,
	CHANGE_MS = 120000, /* a service may have thousands of interfaces to change */
	CHUNK = 64 << 10, /* bytes to receive at once, at least */
};

__attribute__((format(printf, 2, 3))) static void
complain(const struct control_connection *connection, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "netobsctl %s: ", connection->verb);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

/* ---- Connecting ------------------------------------------------------------------- */

static void complain_permission(const struct control_connection *connection)
{
	const struct group *group = NULL;
	struct stat status;

	if (!stat(connection->path, &status))
		group = getgrgid(status.st_gid);
	if (group && status.st_gid)
		complain(connection,
			 "%s: permission denied: it is for root, the user of the "
			 "service and members of the group '%s'",
			 connection->path, group->gr_name);
	else
		complain(connection,
			 "%s: permission denied: it is for root and the user of "
			 "the service",
			 connection->path);
}

static void complain_connect(const struct control_connection *connection,
			     int error)
{
	if (error == EACCES || error == EPERM)
		complain_permission(connection);
	else if (error == ENOENT || error == ECONNREFUSED)
		complain(connection,
			 "no service listens at %s: start one with "
			 "'systemctl start netobs' or 'netobsctl run', or name its "
			 "socket with --socket",
			 connection->path);
	else
		complain(connection, "cannot connect to %s: %s",
			 connection->path, strerror(error));
}

/* @return a socket; -1: errno says why not */
static int open_connection(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	cleanup_fd int fd = -1;

	if (strlen(path) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return -1;
	return TAKE_FD(fd);
}

bool control_is_there(const char *path)
{
	cleanup_fd int fd = open_connection(path ?: CONTROL_SOCKET);

	return fd >= 0 || errno == EACCES;
}

static int connect_to(struct control_connection *connection)
{
	connection->fd = open_connection(connection->path);
	if (connection->fd >= 0)
		return 0;
	complain_connect(connection, errno);
	return -EPIPE;
}

int control_connect(struct control_connection *ret_connection, const char *verb,
		    const char *path, const char *request)
{
	struct control_connection *connection = ret_connection;
	char line[CONTROL_REQUEST_MAX];
	int len, err;

	*connection = (struct control_connection){
		.verb = verb,
		.path = path ?: CONTROL_SOCKET,
		.fd = -1,
		.answer_ms = control_is_change(request) ? CHANGE_MS : ANSWER_MS,
	};
	err = connect_to(connection);
	if (err)
		return err;
	len = snprintf(line, sizeof(line), "%d %s\n", CONTROL_PROTOCOL, request);
	/* A service that refuses the connection has said why, and closed it. */
	if (send(connection->fd, line, (size_t)len, MSG_NOSIGNAL) == len ||
	    errno == EPIPE)
		return 0;
	complain(connection, "cannot send to %s: %s", connection->path,
		 strerror(errno));
	return -EPIPE;
}

void control_disconnect(struct control_connection *connection)
{
	close_fd(&connection->fd);
	buffer_free(&connection->bytes);
}

/* ---- Receiving -------------------------------------------------------------------- */

/* @return the next line, without its end; NULL: it has not come whole */
static char *take_line(struct control_connection *connection)
{
	const struct buffer *bytes = &connection->bytes;
	char *line = bytes->bytes + connection->start, *end;

	if (!bytes->bytes)
		return NULL;
	end = memchr(line, '\n', bytes->len - connection->start);
	if (!end)
		return NULL;
	*end = '\0';
	connection->start += (size_t)(end + 1 - line);
	return line;
}

static int receive_more(struct control_connection *connection)
{
	struct buffer *bytes = &connection->bytes;
	ssize_t n;

	if (connection->start) {
		bytes->len -= connection->start;
		memmove(bytes->bytes, bytes->bytes + connection->start,
			bytes->len);
		connection->start = 0;
	}
	if (bytes->len > 2 * CONTROL_ANSWER_MAX)
		return -EMSGSIZE;
	if (!buffer_reserve(bytes, CHUNK))
		return -ENOMEM;
	n = recv(connection->fd, bytes->bytes + bytes->len,
		 bytes->size - bytes->len, 0);
	if (n <= 0)
		return n && errno != ECONNRESET ? -errno : -EPIPE;
	bytes->len += (size_t)n;
	return 0;
}

int control_receive(struct control_connection *connection, int timeout_ms,
		    char **ret_line)
{
	const int64_t end_ms = now_ms() + timeout_ms;
	struct pollfd fd = { .fd = connection->fd, .events = POLLIN };

	while (!(*ret_line = take_line(connection))) {
		int n = poll(&fd, 1, timeout_ms < 0 ? -1 : left_ms(end_ms));
		int err = n > 0	 ? receive_more(connection) :
			  n == 0 ? -EAGAIN :
				   -errno;

		if (err)
			return err;
	}
	return 0;
}

static int check_protocol(const struct control_connection *connection,
			  struct json_value answer)
{
	const uint64_t protocol = json_number(json_get(answer, "protocol"));
	char version[64];

	if (protocol == CONTROL_PROTOCOL)
		return 0;
	json_get_text(answer, "version", version, sizeof(version));
	safe_cell(version);
	if (answer.at && protocol)
		complain(connection,
			 "the service has version %s and protocol %llu, this is "
			 "version %s with protocol %d: use netobsctl of its version",
			 version, (unsigned long long)protocol, NETOBS_VERSION,
			 CONTROL_PROTOCOL);
	else
		complain(connection,
			 "%s: it is not the socket of a netobs service",
			 connection->path);
	return -EPROTO;
}

int control_answer(struct control_connection *connection,
		   struct json_value *ret_answer)
{
	struct json_value answer;
	char *line, message[512], error[16];
	int err = control_receive(connection, connection->answer_ms, &line);

	if (err == -EINTR)
		return err;
	if (err) {
		complain(connection, "%s: %s", connection->path,
			 err == -EAGAIN ? "the service does not answer" :
			 err == -EPIPE ? "the service has closed the connection" :
					 strerror(-err));
		return err;
	}
	answer = json_parse(line);
	err = check_protocol(connection, answer);
	if (err)
		return err;
	*ret_answer = answer;
	if (json_is_true(json_get(answer, "ok")))
		return 0;
	json_get_text(answer, "error", error, sizeof(error));
	err = strcmp(error, "absent") ? -EREMOTEIO : -ENOTSUP;
	if (err == -ENOTSUP && connection->may_lack)
		return err;
	json_get_text(answer, "message", message, sizeof(message));
	safe_cell(message);
	complain(connection, "%s", message);
	return err;
}
