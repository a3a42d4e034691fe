// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "address.h"

#include "base/util.h"
#include "base/worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

/* A query of a thread. */
struct query {
	struct addrinfo hints;
	struct addrinfo *list;
	char error[128];
	char port[8];
	char host[];
};

struct resolve {
	struct sink_host *sink;
	struct worker *worker;
	struct query *query; /* NULL: it is not answered */
};

static void query_free(void *arg)
{
	struct query *query = arg;

	if (query && query->list)
		freeaddrinfo(query->list);
	free(query);
}

void resolve_close(struct resolve *resolve)
{
	if (!resolve)
		return;
	if (resolve->worker)
		resolve->sink->ops->watch(resolve->sink,
					  worker_fd(resolve->worker), 0);
	worker_free(resolve->worker);
	query_free(resolve->query);
	free(resolve);
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

static int start_query(struct resolve *resolve, struct query *query)
{
	int err = worker_new(query_run, query_free, &resolve->worker);

	if (err)
		return err;
	resolve->sink->ops->watch(resolve->sink, worker_fd(resolve->worker),
				  EPOLLIN);
	if (query_look_up(query, AI_NUMERICHOST) == EAI_NONAME)
		return worker_start(resolve->worker, query);
	worker_put_done(resolve->worker, query);
	return 0;
}

int resolve_start(struct sink_host *sink, const struct address *address,
		  int type, struct resolve **ret_resolve)
{
	struct resolve *resolve = calloc(1, sizeof(*resolve));
	struct query *query = query_new(address, type);
	int err = -ENOMEM;

	if (resolve && query) {
		resolve->sink = sink;
		err = start_query(resolve, query);
	}
	if (err) {
		query_free(query);
		resolve_close(resolve);
		return err;
	}
	*ret_resolve = resolve;
	return 0;
}

int resolve_take(struct resolve *resolve, struct addrinfo **ret_list)
{
	if (!resolve->query)
		resolve->query = worker_take(resolve->worker);
	if (!resolve->query)
		return -EAGAIN;
	if (!resolve->query->list)
		return -ENOENT;
	*ret_list = TAKE_PTR(resolve->query->list);
	return 0;
}

const char *resolve_error(const struct resolve *resolve)
{
	return resolve->query->error;
}
