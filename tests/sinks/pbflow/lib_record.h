/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Records that are encoded, and read again. */
#ifndef TESTS_SINKS_PBFLOW_LIB_RECORD_H
#define TESTS_SINKS_PBFLOW_LIB_RECORD_H

#include "lib_test.h"

#include "sinks/pbflow/pbflow.h"

#include "flow.pb-c.h"

/* An address of this host, and no sampling. */
extern const struct pbflow_options record_options;

/* What of NetObserv's golden record a flow has. */
struct netobs_flow record_flow(void);

/* For record_free(). */
Pbflow__Record *record_unpack(const uint8_t *bytes, size_t len);

/* What a reader gets of a flow; for record_free(). */
Pbflow__Record *record_through(const struct netobs_flow *flow);

void record_free(Pbflow__Record *record);

#endif
