/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The sinks of a service. They are replaced in two steps, so that an unusable configuration changes
 * nothing. A sink that is replaced delivers the records that it has.
 */
#ifndef NETOBS_SERVICE_SERVICE_SINKS_H
#define NETOBS_SERVICE_SERVICE_SINKS_H

#include <netobs/record.h>

#include "service/outputs/output.h"
#include "service/outputs/sink_totals.h"
#include "service_config.h"

enum {
	SERVICE_LEAVING_MAX = 16, /* netobsctl-run(8) has it */
	/* sinks in use, prepared, and leaving */
	SERVICE_OUTPUTS_MAX = 2 * SERVICE_SINKS_MAX + SERVICE_LEAVING_MAX,
};

enum service_sink_state {
	SERVICE_SINK_IN_USE,
	SERVICE_SINK_NEW,     /* prepared: it gets no records yet */
	SERVICE_SINK_LEAVING, /* gets no more records, and delivers those it has */
	/* A successor needs its file or spool. It takes records until that is open. */
	SERVICE_SINK_HANDING_OVER,
};

struct service_sink {
	char *name, *spec;
	enum service_sink_state state;
	uint32_t types; /* types of records that it takes: bits by enum netobs_record_type */
	bool has_prompt;   /* has records to be sent at once */
	bool is_finishing; /* was told that no record follows */
	bool shares_spool; /* its successor has the same spool, and sends the records left in it */
};

/* Sinks of a configuration that are opened one after the other, once others are closed. */
struct service_handover {
	int64_t began_ms;		 /* all of them have one deadline */
	bool is_over[SERVICE_SINKS_MAX]; /* for sinks of the configuration: open, or failed */
	size_t next;	 /* index at which the next step continues */
	bool is_hurried; /* the next step needs not wait */
	int result;	 /* the first failure */
};

struct service_sinks {
	struct output outputs[SERVICE_OUTPUTS_MAX];
	struct service_sink sinks[SERVICE_OUTPUTS_MAX]; /* state of each output */
	size_t n;
	struct output pattern;	   /* callbacks, and what else all have */
	struct sink_totals totals; /* totals of closed sinks */
	struct service_handover handover;
};

/**
 * Open the sinks of @config that are not in use with the same options, for some milliseconds.
 *
 * @return 0: all are open; -EINPROGRESS: to be called again; < 0: one cannot be opened, which
 *         was logged, and those that were opened are closed
 */
int service_sinks_prepare(struct service_sinks *sinks,
			  const struct service_config *config);

/**
 * Use the sinks of @config from now on. service_sinks_proceed() follows: a sink that needs the
 * spool or the file of its predecessor is opened once that can be closed.
 */
void service_sinks_commit(struct service_sinks *sinks,
			  const struct service_config *config);

/**
 * Continue, for some milliseconds, the change that service_sinks_commit() began.
 *
 * @return 0: all sinks are open; -EINPROGRESS: call again, after service_sinks_rest() ms at the
 *         latest; < 0: a sink cannot be opened: its predecessor stays
 */
int service_sinks_proceed(struct service_sinks *sinks,
			  const struct service_config *config);

/** @return milliseconds until the next call of service_sinks_proceed() */
int service_sinks_rest(const struct service_sinks *sinks);

/** Close the sinks that service_sinks_prepare() has opened. */
void service_sinks_abandon(struct service_sinks *sinks);

/**
 * Have files opened anew, as after a rotation by another program.
 *
 * @return 0; < 0: one cannot be opened, which was logged
 */
int service_sinks_reopen(struct service_sinks *sinks);

/*
 * Write a record to the sinks that take its type. service_sinks_interval() sends flows, and
 * service_sinks_flush_prompt() the others.
 */
void service_sinks_record(struct service_sinks *sinks,
			  const struct netobs_record *record);
void service_sinks_flush_prompt(struct service_sinks *sinks);

void service_sinks_interval(struct service_sinks *sinks);

/** Close leaving sinks that have delivered all. @return 0; < 0: a sink failed permanently */
int service_sinks_tend(struct service_sinks *sinks);

/**
 * No record follows: send what is pending, for some milliseconds.
 *
 * @return 0: done; -EINPROGRESS: call again
 */
int service_sinks_finish(struct service_sinks *sinks);

/** @return whether records wait to be delivered */
bool service_sinks_are_pending(const struct service_sinks *sinks);

/**
 * Close all.
 *
 * @return whether all records were delivered or are kept on disk
 */
bool service_sinks_close(struct service_sinks *sinks);

#endif
