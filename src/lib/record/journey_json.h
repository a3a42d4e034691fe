/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A journey as JSON. It has an array of steps, which no table of fields can describe. */
#ifndef NETOBS_RECORD_JOURNEY_JSON_H
#define NETOBS_RECORD_JOURNEY_JSON_H

#include <netobs/trace.h>

/**
 * Write {"type":"journey","TimeMs":...}, without a newline; NETOBS_TRACE_JSON_MAX bytes are enough.
 * Parts that are not known have no member.
 *
 * @return length without NUL; -ENOBUFS: @size is too small
 */
int journey_json(const struct netobs_journey *journey, char *buf, size_t size);

#endif
