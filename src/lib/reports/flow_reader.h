/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A flow record from its JSON. */
#ifndef NETOBS_REPORTS_FLOW_READER_H
#define NETOBS_REPORTS_FLOW_READER_H

#include <netobs/flow.h>

#include "base/json_reader.h"

enum { FLOW_READER_POINTS = 64 /* per record; further ones are left out */ };

/* A flow read from a record, and the memory that it points into. */
struct flow_reader {
	struct netobs_flow flow;
	struct netobs_point points[FLOW_READER_POINTS];
	char names[FLOW_READER_POINTS][32];
	struct netobs_process processes[2]; /* at the source and the destination */
};

void flow_reader_read(struct flow_reader *reader, struct json_value record);

#endif
