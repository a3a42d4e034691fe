/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The status of a call, and what it means for its records. */
#ifndef NETOBS_SINKS_GRPC_STATUS_H
#define NETOBS_SINKS_GRPC_STATUS_H

#include <stddef.h>
#include <stdint.h>

/* The codes, of gRPC's 17, that are used by name. */
enum {
	STATUS_OK = 0,
	STATUS_INVALID_ARGUMENT = 3,
	STATUS_DEADLINE_EXCEEDED = 4,
	STATUS_RESOURCE_EXHAUSTED = 8,
	STATUS_OUT_OF_RANGE = 11,
	STATUS_UNIMPLEMENTED = 12,
	STATUS_UNAVAILABLE = 14,
	STATUS_UNKNOWN = 2,
};

enum status_action {
	STATUS_ACCEPTED,
	STATUS_LATER,	/* the server may accept the same records later */
	STATUS_TOO_BIG, /* the server may accept fewer records at a time */
	STATUS_REFUSED, /* one of the records is to blame */
};

/* @message: the collector's text, which distinguishes a size limit from a quota. */
enum status_action status_action(int status, const char *message);

/* "UNAVAILABLE" ... */
const char *status_name(int status);

enum { STATUS_RETRY_MAX_S = 300 };

/**
 * @param text  of a grpc-status-details-bin header, which may be anything
 * @return ms that the server asks to wait (google.rpc.RetryInfo), within STATUS_RETRY_MAX_S; 0: it
 *         does not
 */
int64_t status_retry_ms(const char *text, size_t len);

/** @return the number in a grpc-status header; STATUS_UNKNOWN: it has none */
int status_parse(const char *text, size_t len);

/*
 * Decode a grpc-message header, which has %XX for unusual characters. For the log, a
 * question mark takes the place of all that is not printable ASCII.
 */
void status_decode(const char *text, size_t len, char *to, size_t size);

#endif
