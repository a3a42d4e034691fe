/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What a kind of sink is, and what it is given. A module takes records from its
 * sink's queue, sends them, and acknowledges them when its other side has them. It
 * never waits: it says what is to be waited for, and is called again.
 */
#ifndef NETOBS_LIB_SINK_MODULE_H
#define NETOBS_LIB_SINK_MODULE_H

#include "mark.h"
#include "spec.h"

#include <netobs/flow.h>

struct sink_host;

/* A record, valid until the next call that gets one. */
struct sink_item {
	const struct netobs_flow *flow;
	struct mark end; /* behind it: to be acknowledged */
};

struct sink_host_ops {
	/* The next record; false: there is none, now. */
	bool (*next)(struct sink_host *host, struct sink_item *ret_item);
	/* The other side has all that is before @end. */
	void (*ack)(struct sink_host *host, struct mark end);
	/* Get again what is not acknowledged. */
	void (*rewind)(struct sink_host *host);
	/* Be called when @fd has @events (epoll); 0: not any more. */
	int (*watch)(struct sink_host *host, int fd, uint32_t events);
	/* Be called in @ms, at the latest; -1: no need. */
	void (*wake_in)(struct sink_host *host, int ms);
};

struct sink_host {
	const struct sink_host_ops *ops;
	const struct log *log;
};

struct sink_module {
	const char *kind;
	/* Take what is known of @spec, and wait for nothing. */
	int (*open)(struct spec *spec, struct sink_host *host, void **ret_state);
	/* There may be records, or room for them. -EPIPE: nobody wants any, ever. */
	int (*work)(void *state);
	void (*close)(void *state);
};

extern const struct sink_module sink_json;

#endif
