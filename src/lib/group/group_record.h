/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Converts groups to records: the values of keys become members. */
#ifndef NETOBS_GROUP_GROUP_RECORD_H
#define NETOBS_GROUP_GROUP_RECORD_H

#include <netobs/series.h>

#include "keys.h"
#include "series_sum.h"

/**
 * Fill all members but the time and the name.
 *
 * @param value  of the group; NULL: the group of other flows
 * @param times  the histograms that @histograms, enum netobs_series_histogram, chooses
 */
void group_record_fill(struct netobs_group_record *ret_record,
		       const struct group_keys *keys, const uint8_t *value,
		       const struct series_sum *sum, struct netobs_times *times,
		       uint32_t histograms);

/* Each fills the members for the value of one key. */
void group_record_addr(enum group_addr addr, const uint8_t value[16],
		       struct netobs_group_record *record);
void group_record_proto(const void *value, struct netobs_group_record *record);
void group_record_port(const void *value, struct netobs_group_record *record);
void group_record_service(const void *value, struct netobs_group_record *record);
void group_record_pair(const void *value, struct netobs_group_record *record);
void group_record_tuple(const void *value, struct netobs_group_record *record);
void group_record_conversation(const void *value,
			       struct netobs_group_record *record);
void group_record_interface(const void *value,
			    struct netobs_group_record *record);
void group_record_direction(const void *value,
			    struct netobs_group_record *record);
void group_record_vlan(const void *value, struct netobs_group_record *record);
void group_record_tunnel(const void *value, struct netobs_group_record *record);
void group_record_process(const void *value, struct netobs_group_record *record);
void group_record_container(const void *value,
			    struct netobs_group_record *record);
void group_record_pod(const void *value, struct netobs_group_record *record);
void group_record_network(const void *value, struct netobs_group_record *record);
void group_record_src_network(const void *value,
			      struct netobs_group_record *record);
void group_record_dst_network(const void *value,
			      struct netobs_group_record *record);

#endif
