// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "net.h"

#include "base/util.h"

#include <assert.h>
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

/* It may have the interface that a link-local address needs: fe80::1%eth0. */
bool address_is_numeric(const char *text, struct sockaddr_storage *ret_address)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST };
	struct addrinfo *found;

	if (getaddrinfo(text, NULL, &hints, &found))
		return false;
	if (ret_address) {
		*ret_address = (struct sockaddr_storage){ 0 };
		memcpy(ret_address, found->ai_addr, found->ai_addrlen);
	}
	freeaddrinfo(found);
	return true;
}

/* Digits that are a port. */
static bool parse_port(const char *text, uint16_t *ret_port)
{
	size_t len = strspn(text, "0123456789");
	unsigned long port = strtoul(text, NULL, 10);

	if (!len || len > 5 || text[len] || !port || port > UINT16_MAX)
		return false;
	*ret_port = (uint16_t)port;
	return true;
}

/*
 * The end of the host in @text, which begins at @ret_host and may be in brackets.
 * NULL: it has none.
 */
static const char *find_host(const char *text, const char **ret_host,
			     size_t *ret_len)
{
	const char *end;

	if (*text != '[') {
		*ret_host = text;
		*ret_len = strcspn(text, ":");
		return text + *ret_len;
	}
	end = strchr(text, ']');
	if (!end)
		return NULL;
	*ret_host = text + 1;
	*ret_len = (size_t)(end - *ret_host);
	return end + 1;
}

static bool check_host(struct spec *spec, const char *text, const char *host,
		       bool has_brackets)
{
	bool is_v6 = strchr(host, ':');

	if (!*host)
		spec_refuse(spec, "'%s' has no host", text);
	else if (strpbrk(host, "/@ ,"))
		spec_refuse(spec, "'%s': there is '%c' in the name of the host",
			    text, *strpbrk(host, "/@ ,"));
	else if (has_brackets && (!is_v6 || !address_is_numeric(host, NULL)))
		spec_refuse(spec,
			    "'%s': what is in brackets is not an IPv6 address",
			    text);
	return !spec->is_wrong;
}

static bool parse_address(struct spec *spec, const char *text,
			  uint16_t otherwise, struct address *ret_address)
{
	const char *host, *rest;
	size_t len;

	rest = find_host(text, &host, &len);
	if (!rest || (*rest && *rest != ':')) {
		spec_refuse(spec, "'%s': the brackets are not around an address",
			    text);
		return false;
	}
	if (*text != '[' && *rest && strchr(rest + 1, ':')) {
		spec_refuse(spec, "'%s': an IPv6 address must be in brackets",
			    text);
		return false;
	}
	if (len >= sizeof(ret_address->host)) {
		spec_refuse(spec, "the host name is too long");
		return false;
	}
	memcpy(ret_address->host, host, len);
	if (!check_host(spec, text, ret_address->host, *text == '['))
		return false;
	if (*rest) {
		if (parse_port(rest + 1, &ret_address->port))
			return true;
		spec_refuse(spec, "'%s': the port is not from 1 to 65535", text);
		return false;
	}
	ret_address->port = otherwise;
	if (!otherwise)
		spec_refuse(spec, "'%s' has no port", text);
	return otherwise;
}

bool address_parse(struct spec *spec, const char *text, uint16_t otherwise,
		   struct address *ret_address)
{
	struct address address = { 0 };

	if (!text || strncmp(text, "//", 2)) {
		spec_refuse(spec, "//HOST%s is missing",
			    otherwise ? "[:PORT]" : ":PORT");
		return false;
	}
	if (!parse_address(spec, text + 2, otherwise, &address))
		return false;
	snprintf(address.name, sizeof(address.name),
		 strchr(address.host, ':') ? "[%s]:%u" : "%s:%u", address.host,
		 address.port);
	*ret_address = address;
	return true;
}

void address_read_source(struct spec *spec, struct sockaddr_storage *ret_source)
{
	const char *text = spec_string(spec, "source", NULL);

	*ret_source = (struct sockaddr_storage){ .ss_family = AF_UNSPEC };
	if (text && !address_is_numeric(text, ret_source))
		spec_refuse(spec, "option source: '%s' is not an IP address",
			    text);
}

/* ---- Looking up names ----------------------------------------------------------- */

/* A query of a thread. */
struct query {
	struct addrinfo hints;
	struct addrinfo *list;
	char error[RESOLVE_REASON_SIZE];
	char port[8];
	char host[];
};

static void query_free(void *arg)
{
	struct query *query = arg;

	if (query && query->list)
		freeaddrinfo(query->list);
	free(query);
}

void resolve_close(struct sink_host *sink, struct worker *resolve)
{
	if (resolve)
		sink->ops->watch(sink, worker_fd(resolve), 0);
	worker_free(resolve);
}

static const char *resolve_reason(int err)
{
	switch (err) {
	case EAI_NONAME:
	case EAI_NODATA:
		return "the host name is unknown";
	case EAI_AGAIN:
		return "the host name cannot be resolved now";
	case EAI_SYSTEM:
		return strerror(errno);
	default:
		return gai_strerror(err);
	}
}

static int query_look_up(struct query *query, int flags)
{
	int err;

	query->hints.ai_flags = flags | AI_NUMERICSERV;
	err = getaddrinfo(query->host, query->port, &query->hints, &query->list);
	snprintf(query->error, sizeof(query->error), "%s",
		 err ? resolve_reason(err) : "");
	return err;
}

static void query_run(void *query)
{
	query_look_up(query, 0);
}

static struct query *query_new(const struct address *address, int type)
{
	size_t size = strlen(address->host) + 1;
	struct query *query = calloc(1, sizeof(*query) + size);

	if (!query)
		return NULL;
	memcpy(query->host, address->host, size);
	snprintf(query->port, sizeof(query->port), "%u", address->port);
	query->hints.ai_socktype = type;
	return query;
}

int resolve_start(struct sink_host *sink, const struct address *address,
		  int type, struct worker **ret_resolve)
{
	struct query *query = query_new(address, type);
	struct worker *worker = NULL;
	int err = query ? worker_new(query_run, query_free, &worker) : -ENOMEM;

	if (!err)
		sink->ops->watch(sink, worker_fd(worker), EPOLLIN);
	if (!err && query_look_up(query, AI_NUMERICHOST) != EAI_NONAME)
		worker_put_done(worker, query);
	else if (!err)
		err = worker_start(worker, query);
	if (err) {
		query_free(query);
		resolve_close(sink, worker);
		return err;
	}
	*ret_resolve = worker;
	return 0;
}

int resolve_take(struct worker *resolve, struct addrinfo **ret_list,
		 char ret_reason[static RESOLVE_REASON_SIZE])
{
	struct query *query = worker_take(resolve);

	if (!query)
		return -EAGAIN;
	strcpy(ret_reason, query->error);
	*ret_list = TAKE_PTR(query->list);
	query_free(query);
	return *ret_list ? 0 : -ENOENT;
}

unsigned int address_count(const struct addrinfo *list)
{
	unsigned int n = 0;

	for (; list; list = list->ai_next)
		n++;
	return n;
}

const struct addrinfo *address_at(const struct addrinfo *list, unsigned int i)
{
	const unsigned int n = address_count(list);

	assert(n);
	for (i %= n; i; i--)
		list = list->ai_next;
	return list;
}

/* ---- TCP ----------------------------------------------------------------------------- */

/* Seconds: keepalives detect a dead peer while nothing is sent. */
enum { KEEP_IDLE = 10, KEEP_INTERVAL = 5, KEEP_COUNT = 3 };

/*
 * No TCP_USER_TIMEOUT: it also ends a connection whose other side answers, but has
 * kept its window closed for that long. stream.c looks at the answers instead.
 */
static void set_options(int fd)
{
	const struct {
		int level, name, value;
	} options[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE },
		{ IPPROTO_TCP, TCP_KEEPINTVL, KEEP_INTERVAL },
		{ IPPROTO_TCP, TCP_KEEPCNT, KEEP_COUNT },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		setsockopt(fd, options[i].level, options[i].name,
			   &options[i].value, sizeof(options[i].value));
}

int socket_connect(const struct addrinfo *address,
		   const struct sockaddr_storage *source)
{
	cleanup_fd int fd =
		socket(address->ai_family,
		       address->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (source->ss_family != AF_UNSPEC &&
	    source->ss_family != address->ai_family)
		return -EAFNOSUPPORT;
	/* Addresses of a family have the same length. */
	if (source->ss_family != AF_UNSPEC &&
	    bind(fd, (const struct sockaddr *)source, address->ai_addrlen))
		return -errno;
	if (connect(fd, address->ai_addr, address->ai_addrlen) &&
	    errno != EINPROGRESS)
		return -errno;
	return TAKE_FD(fd);
}

int tcp_connect(const struct addrinfo *address,
		const struct sockaddr_storage *source)
{
	int fd = socket_connect(address, source);

	if (fd >= 0)
		set_options(fd);
	return fd;
}

int tcp_connect_result(int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLOUT };

	return poll(&ready, 1, 0) <= 0 ? -EAGAIN : socket_error(fd);
}

ssize_t socket_read(int fd, void *to, size_t len)
{
	ssize_t n;

	do {
		n = recv(fd, to, len, MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

ssize_t socket_write(int fd, const void *from, size_t len)
{
	ssize_t n;

	do {
		n = send(fd, from, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

size_t tcp_unacknowledged(int fd)
{
	int bytes;

	return ioctl(fd, SIOCOUTQ, &bytes) || bytes < 0 ? 0 : (size_t)bytes;
}

int tcp_look(int fd, struct tcp_peer *ret_peer)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		return -errno;
	*ret_peer = (struct tcp_peer){
		.is_silent = info.tcpi_retransmits || info.tcpi_probes,
		.silent_ms = info.tcpi_last_ack_recv,
	};
	return 0;
}

int socket_error(int fd)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
		return -errno;
	return -err;
}
