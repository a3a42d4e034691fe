/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/**
 * @file flow_reader.h
 * Flows from their JSON: what netobs_flow_json() writes, a sink has sent, or a service serves
 * (netobsctl flows --live).
 *
 * One thread at a time may use a reader.
 */
#ifndef NETOBS_FLOW_READER_H
#define NETOBS_FLOW_READER_H

#include <netobs/flow.h>
#include <netobs/version.h>

#ifdef __cplusplus
extern "C" {
#endif

struct netobs_flow_reader;

/**
 * @param ret_reader  the caller frees it by netobs_flow_reader_free()
 * @return 0; -EINVAL: @p ret_reader is NULL; -ENOMEM
 */
NETOBS_API int netobs_flow_reader_new(struct netobs_flow_reader **ret_reader);

/**
 * Read a flow. Members that are missing are absent; those with values of another type are 0. Of points,
 * the first 64 are read.
 *
 * @param json  one object; NUL-terminated
 * @return the flow, valid until the next call: netobs_flow_dup(); NULL: it is no JSON object, or
 *         an argument is NULL
 */
NETOBS_API const struct netobs_flow *
netobs_flow_reader_read(struct netobs_flow_reader *reader, const char *json);

/** Free the reader. NULL is fine. */
NETOBS_API void netobs_flow_reader_free(struct netobs_flow_reader *reader);

#ifdef __cplusplus
}
#endif

#endif
