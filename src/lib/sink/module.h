/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The interface to a module, which implements a kind of sink. A module reads records from the spool
 * of its sink, sends them, and acknowledges those that arrived. It never waits: it registers the
 * events at which it is called again.
 *
 * A loadable module is a shared object built from the same sources as the library: this interface
 * may change with any version.
 */
#ifndef NETOBS_SINK_MODULE_H
#define NETOBS_SINK_MODULE_H

#include "sink/spool/spool.h"
#include "base/spec.h"

#include "record/any.h"

#include <errno.h>
#include <stdlib.h>

struct outage;
struct sink_host;

/* State of a file, a connection or a collector that is written to. */
enum peer_state {
	PEER_AWAY, /* the sink is called again once that may have changed */
	PEER_LOST, /* was ready at the last call */
	PEER_CONNECTING, /* a name is looked up, or a connection made */
	PEER_READY,
	PEER_NEW, /* ready, but another one than before */
};

/* A record, valid until the next call that gets one. */
struct sink_item {
	const struct netobs_record *record; /* record of one of the sink's types */
	struct position own;		    /* counts of the record */
	struct position end;		    /* behind it: to be acknowledged */
};

struct sink_host_ops {
	/* Get the next record; false: there is none, or the time of this call is over. */
	bool (*next)(struct sink_host *host, struct sink_item *ret_item);
	/* @return whether there are records for next() */
	bool (*has_more)(const struct sink_host *host);
	/* The time of this call is over: next() returns no record until work() is called again. */
	bool (*is_out_of_time)(const struct sink_host *host);
	/* The consumer has all records before @end. */
	void (*ack)(struct sink_host *host, struct position end);
	/* Refuse the records between the last acknowledged or refused one and @end for good. */
	void (*refuse)(struct sink_host *host, struct position end);
	/* Read again all that are neither acknowledged nor refused. */
	void (*rewind)(struct sink_host *host);
	/* Call work() when @fd has @events (epoll); 0: no more. */
	int (*watch)(struct sink_host *host, int fd, uint32_t events);
	/* Call work() in @ms, at the latest; -1: no need. */
	void (*wake_in)(struct sink_host *host, int ms);
	/* The outcome of the packets; false: unknown. */
	bool (*get_stats)(struct sink_host *host, struct netobs_stats *ret_stats);
};

struct sink_host {
	const struct sink_host_ops *ops;
	const struct log *log;
	uint32_t types;	   /* types of records: SINK_TYPE(), or-ed */
	uint32_t sampling; /* one packet or flow of so many was counted */
	enum netobs_sampling sampling_mode;
	/* The outage of the other side, for statistics; NULL: the module has none. */
	const struct outage *outage;
};

/* A type of records among others. */
#define SINK_TYPE(type) (1U << NETOBS_RECORD_##type)
/* JSON can represent all types, also future ones. */
#define SINK_TYPES_ALL ((1U << NETOBS_RECORD_TYPES) - 1)

/* Takes one of a module's counters. */
typedef void sink_counter_fn(void *ctx, const char *name, uint64_t value);

struct sink_module {
	const char *version; /* NETOBS_VERSION */
	uint32_t types; /* types of records that it can represent: SINK_TYPE(), or-ed */
	uint32_t otlp_types; /* types of kinds whose name begins with "otlp" */
	size_t state_size;
	/*
	 * Read the options in @spec, without waiting for anything. @state is all
	 * zero. close() is called in any case.
	 */
	int (*open)(struct spec *spec, struct sink_host *host, void *state);
	/*
	 * Called when there may be records, or room for them, or a watched event.
	 * @flush: send partly filled messages now. -EPIPE: the consumer is gone
	 * permanently.
	 */
	int (*work)(void *state, bool flush);
	void (*close)(void *state);
	/* Counters since the start: "messages", "reconnects" ... May be NULL. */
	void (*counters)(const void *state, sink_counter_fn *take, void *ctx);
	/*
	 * Write to a file by its name anew, which may be that of another file now. 0; < 0: it
	 * cannot be opened, which is logged once. May be NULL.
	 */
	int (*reopen)(void *state);
};

extern const struct sink_module sink_json;
extern const struct sink_module sink_null;

static inline void sink_module_close(const struct sink_module *module, void *state)
{
	module->close(state);
	free(state);
}

/* Errors: as open(), or -ENOMEM. */
static inline int sink_module_open(const struct sink_module *module,
				   struct spec *spec, struct sink_host *host,
				   void **ret_state)
{
	void *state = calloc(1, module->state_size);
	int err = state ? module->open(spec, host, state) : -ENOMEM;

	if (!err)
		*ret_state = state;
	else if (state)
		sink_module_close(module, state);
	return err;
}

/* The name of the module in a shared object. */
#define SINK_MODULE_SYMBOL "netobs_sink_module"
extern const struct sink_module netobs_sink_module;

#endif
