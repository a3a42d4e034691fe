/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What a collector answers, and what follows from it. */
#ifndef NETOBS_SINKS_GRPC_STATUS_H
#define NETOBS_SINKS_GRPC_STATUS_H

#include <stddef.h>

/* Those of gRPC that are named here; there are 17. */
enum {
	STATUS_OK = 0,
	STATUS_INVALID_ARGUMENT = 3,
	STATUS_DEADLINE_EXCEEDED = 4,
	STATUS_RESOURCE_EXHAUSTED = 8,
	STATUS_OUT_OF_RANGE = 11,
	STATUS_INTERNAL = 13,
	STATUS_UNAVAILABLE = 14,
	STATUS_DATA_LOSS = 15,
	STATUS_UNKNOWN = 2,
};

enum status_action {
	STATUS_ACCEPTED,
	STATUS_LATER,	/* the same may be taken another time */
	STATUS_SUSPECT, /* so may the same, or something in it never will */
	STATUS_TOO_BIG, /* less at a time may be taken */
	STATUS_REFUSED, /* something in it never will */
};

/* @message: the collector's text, which distinguishes a size limit from a quota. */
enum status_action status_action(int status, const char *message);

/* "UNAVAILABLE" ... */
const char *status_name(int status);

/* The number in a grpc-status header; STATUS_UNKNOWN: it is none. */
int status_parse(const char *text, size_t len);

/*
 * A grpc-message header, where anything unusual is %XX; what is no printable ASCII
 * is written as a question mark, since it goes to the log.
 */
void status_decode(const char *text, size_t len, char *to, size_t size);

#endif
