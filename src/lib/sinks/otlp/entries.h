/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The entries of requests, as fields of the message around them. */
#ifndef NETOBS_SINKS_OTLP_ENTRIES_H
#define NETOBS_SINKS_OTLP_ENTRIES_H

#include "otlp.h"

uint8_t *put_log_record(uint8_t *to, const struct netobs_record *record);

/* Of groups: a metric for each count that is known, with a data point. */
uint8_t *put_metrics(uint8_t *to, const struct netobs_group_record *group);

/** @return how many put_metrics() writes */
uint32_t count_metrics(const struct netobs_group_record *group);

#endif
