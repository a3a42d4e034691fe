/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Whether a filter expression chooses a connection, by its addresses and ports alone. */
#ifndef NETOBS_TRACE_TRACE_MATCH_H
#define NETOBS_TRACE_TRACE_MATCH_H

#include "bpf/trace.h"
#include "filter/filter.h"

#include <stdbool.h>

/* @return whether an expression can match such connections; NULL matches all */
bool trace_match_has_tcp(const char *expression);
bool trace_match_has_datagrams(const char *expression);

/** @param filter  NULL: all. @return whether a segment of either direction matches */
bool trace_match(const struct filter *filter, const struct trace_tuple *tuple);

#endif
