// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "resolve.h"

#include "base/detached.h"
#include "base/util.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Shared by the caller and the thread: the last one to drop it frees it. */
struct resolve {
	atomic_uint owners;
	atomic_bool is_done;
	int event_fd;
	struct addrinfo hints;
	struct addrinfo *list;
	char error[128];
	char port[8];
	char host[];
};

void resolve_close(struct resolve *resolve)
{
	if (!resolve || atomic_fetch_sub(&resolve->owners, 1) > 1)
		return;
	if (resolve->list)
		freeaddrinfo(resolve->list);
	close_fd(&resolve->event_fd);
	free(resolve);
}

static const char *reason(int err)
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

static int look_up(struct resolve *resolve)
{
	int err = getaddrinfo(resolve->host, resolve->port, &resolve->hints,
			      &resolve->list);

	if (err)
		snprintf(resolve->error, sizeof(resolve->error), "%s",
			 reason(err));
	return err;
}

static void finish(struct resolve *resolve)
{
	atomic_store(&resolve->is_done, true);
	eventfd_write(resolve->event_fd, 1);
}

static void *run(void *arg)
{
	struct resolve *resolve = arg;

	look_up(resolve);
	finish(resolve);
	resolve_close(resolve);
	return NULL;
}

static int start(struct resolve *resolve)
{
	int err;

	resolve->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (resolve->event_fd < 0)
		return -errno;
	resolve->hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
	if (look_up(resolve) != EAI_NONAME) {
		finish(resolve);
		return 0;
	}
	resolve->error[0] = '\0';
	resolve->hints.ai_flags = AI_NUMERICSERV;
	atomic_store(&resolve->owners, 2);
	err = detached_run(run, resolve, false);
	if (err)
		atomic_store(&resolve->owners, 1);
	return err;
}

int resolve_start(const char *host, uint16_t port, int type,
		  struct resolve **ret_resolve)
{
	size_t size = strlen(host) + 1;
	struct resolve *resolve = calloc(1, sizeof(*resolve) + size);
	int err;

	if (!resolve)
		return -ENOMEM;
	memcpy(resolve->host, host, size);
	snprintf(resolve->port, sizeof(resolve->port), "%u", port);
	resolve->hints.ai_socktype = type;
	resolve->owners = 1;
	err = start(resolve);
	if (err) {
		resolve_close(resolve);
		return err;
	}
	*ret_resolve = resolve;
	return 0;
}

int resolve_fd(const struct resolve *resolve)
{
	return resolve->event_fd;
}

int resolve_take(struct resolve *resolve, struct addrinfo **ret_list)
{
	if (!atomic_load(&resolve->is_done))
		return -EAGAIN;
	if (!resolve->list)
		return -ENOENT;
	*ret_list = TAKE_PTR(resolve->list);
	return 0;
}

const char *resolve_error(const struct resolve *resolve)
{
	return resolve->error;
}
