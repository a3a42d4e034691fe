/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Expressions with every primitive of pcap-filter(7), for frames as in samples.h. */
#ifndef HARNESS_FILTER_EXPRESSIONS_H
#define HARNESS_FILTER_EXPRESSIONS_H

#include <stddef.h>

extern const char *const filter_expressions[];
extern const size_t n_filter_expressions;

#endif
