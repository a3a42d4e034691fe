/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Flow records as flow.proto has them, which is made of flow.proto.in and the catalogue:
 * NetObserv's fields with its meaning, and the rest of a record in fields of our own.
 * flowlogs-pipeline, which reads them, fails without some fields: data_link, network,
 * transport, time_flow_rtt and one interface are always there.
 */
#ifndef NETOBS_SINKS_PBFLOW_PBFLOW_H
#define NETOBS_SINKS_PBFLOW_PBFLOW_H

#include "sink/module.h"
#include "record/any.h"

#include <netobs/flow.h>

#include <stdbool.h>

enum {
	PBFLOW_POINT_MAX = 3 * PACK_NAME_MAX + 32, /* bytes of an interface */
	PBFLOW_FIELDS_MAX = 1024, /* bytes of all other fields */
	PBFLOW_PROCESS_MAX = 3 * sizeof(struct netobs_process),
	PBFLOW_RECORD_MAX = PBFLOW_FIELDS_MAX + 2 * PBFLOW_PROCESS_MAX +
			    PACK_POINTS_MAX * PBFLOW_POINT_MAX,
	PBFLOW_ENTRY_MAX = PBFLOW_RECORD_MAX + 4, /* a record among Records */
};

struct pbflow_options {
	uint8_t agent_ip[16]; /* as in struct netobs_flow; all 0: unknown */
};

/* Read the address in @spec (agent_ip=), or else find one. */
void pbflow_read_options(struct spec *spec, struct pbflow_options *options);

/**
 * Write a Record.
 *
 * @param buf  has PBFLOW_RECORD_MAX bytes
 * @return its length
 */
size_t pbflow_record(const struct netobs_flow *flow,
		     const struct pbflow_options *options, uint8_t *buf);

/*
 * Write a flow as one entry of Records: several entries, one after the other, are a message.
 * @buf has PBFLOW_ENTRY_MAX bytes. @return its length
 */
size_t pbflow_entry(const struct netobs_flow *flow,
		    const struct pbflow_options *options, uint8_t *buf);

#endif
