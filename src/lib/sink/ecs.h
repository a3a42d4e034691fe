/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Records in JSON with the names of the Elastic Common Schema: members keep their values, and have the
 * names of catalogue/names.def. Names with dots are objects to Elasticsearch.
 */
#ifndef NETOBS_SINK_ECS_H
#define NETOBS_SINK_ECS_H

#include <stddef.h>

enum { ECS_MORE = 4 << 10 }; /* bytes that names may take more */

/**
 * @param json  a record as netobs_record_json() writes it, of @len bytes, at most RECORD_JSON_MAX; has room
 *              for ECS_MORE more
 * @return its length
 */
size_t ecs_rename(char *json, size_t len);

#endif
