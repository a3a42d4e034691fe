/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The features of a pipeline, which may add to the records of flows. */
#ifndef NETOBS_API_FEATURES_H
#define NETOBS_API_FEATURES_H

#include "drops/flow_drops.h"
#include "flows/flow_extra.h"
#include "flows/pipeline.h"
#include "nat/translations.h"
#include "who/who.h"

/* Zeroes: all are off. */
struct features {
	struct health health; /* of connections, if they are measured */
	struct who who;
	struct translations translations; /* by NAT */
	struct flow_drops drops;
	struct flow_extra list[4]; /* of these that are on */
};

/*
 * Open those that @opts want, and add them to a pipeline that is open and not initialized. After
 * an error, which is logged, features_close() frees all.
 *
 * @names: of containers; NULL: none are wanted
 */
int features_open(struct features *features, struct pipeline *pipeline,
		  const struct netobs_opts *opts, struct container_names *names,
		  const struct host *host, const struct log *log);

/* Call before pipeline_done(). */
void features_close(struct features *features);

#endif
