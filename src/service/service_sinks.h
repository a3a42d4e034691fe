/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The sinks of a service. They are replaced in two steps, so that a configuration that cannot
 * be used changes nothing. A sink that is replaced delivers what it has been given.
 */
#ifndef NETOBS_SERVICE_SERVICE_SINKS_H
#define NETOBS_SERVICE_SERVICE_SINKS_H

#include <netobs/record.h>

#include "service/outputs/output.h"
#include "service_config.h"

enum {
	SERVICE_LEAVING_MAX = 16,
	/* In use, prepared, and leaving. */
	SERVICE_OUTPUTS_MAX = 2 * SERVICE_SINKS_MAX + SERVICE_LEAVING_MAX,
};

enum service_sink_state {
	SERVICE_SINK_IN_USE,
	SERVICE_SINK_NEW,     /* prepared: it gets no records yet */
	SERVICE_SINK_LEAVING, /* it gets no more records, and has some */
};

struct service_sink {
	char *name, *spec;
	enum service_sink_state state;
	uint32_t types; /* of records that it takes: bits by enum netobs_record_type */
	bool has_prompt; /* records that are to be sent now */
};

struct service_sinks {
	struct output outputs[SERVICE_OUTPUTS_MAX];
	struct service_sink sinks[SERVICE_OUTPUTS_MAX]; /* of each output */
	size_t n;
	struct output pattern; /* callbacks, and what else all have */
};

/**
 * Open the sinks of @config that are not in use with the same options.
 *
 * @return 0; < 0: one cannot be opened, which was logged
 */
int service_sinks_prepare(struct service_sinks *sinks,
			  const struct service_config *config);

/**
 * Use the sinks of @config from now on. A sink that needs the spool or the file of its
 * predecessor is opened now, after that has been closed.
 *
 * @return 0; < 0: such a sink cannot be opened: its predecessor goes on
 */
int service_sinks_commit(struct service_sinks *sinks,
			 const struct service_config *config);

/** Close the sinks that service_sinks_prepare() has opened. */
void service_sinks_abandon(struct service_sinks *sinks);

/**
 * Have files opened anew, as after a rotation by another program.
 *
 * @return 0; < 0: one cannot be opened, which was logged
 */
int service_sinks_reopen(struct service_sinks *sinks);

void service_sinks_flow(struct service_sinks *sinks,
			const struct netobs_flow *flow);

/* Write a record to the sinks that take its type; service_sinks_flush_prompt() sends it. */
void service_sinks_record(struct service_sinks *sinks,
			  const struct netobs_record *record);
void service_sinks_flush_prompt(struct service_sinks *sinks);

void service_sinks_interval(struct service_sinks *sinks);

/** Close leaving sinks that have delivered all. @return 0; < 0: a sink failed permanently */
int service_sinks_tend(struct service_sinks *sinks);

/**
 * Send what is pending, for some seconds, and close all.
 *
 * @return whether all of it was delivered or is kept on disk
 */
bool service_sinks_close(struct service_sinks *sinks);

#endif
