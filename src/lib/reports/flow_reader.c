/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include <netobs/flow_reader.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_reader.h"
#include "base/text.h"
#include "base/util.h"
#include "catalogue/direction.h"
#include "catalogue/fields.h"

enum { POINTS_MAX = 64 /* further ones are left out */ };

/* A flow, and the memory that it points into. */
struct netobs_flow_reader {
	struct netobs_flow flow;
	struct netobs_point points[POINTS_MAX];
	char names[POINTS_MAX][32];
	struct netobs_process processes[2]; /* at the source and the destination */
};

/* ---- A field, by its type ----------------------------------------------------------- */

static void read_address(struct json_value value, uint8_t ret_ip[16])
{
	char text[NETOBS_ADDR_STR_MAX];

	if (!ip_read(json_text(value, text, sizeof(text)), ret_ip))
		memset(ret_ip, 0, 16);
}

static void read_mac(struct json_value value, uint8_t ret_mac[6])
{
	char text[24];

	json_text(value, text, sizeof(text));
	sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &ret_mac[0], &ret_mac[1],
	       &ret_mac[2], &ret_mac[3], &ret_mac[4], &ret_mac[5]);
}

static uint8_t read_tunnel_name(struct json_value value)
{
	char text[16];

	json_text(value, text, sizeof(text));
	for (uint8_t i = 1; tunnel_name(i); i++)
		if (!strcmp(text, tunnel_name(i)))
			return i;
	return NETOBS_TUNNEL_NONE;
}

static uint64_t read_hash(struct json_value value)
{
	char text[24];

	json_text(value, text, sizeof(text));
	return strtoull(text, NULL, 16);
}

#define READ_number(field, value) \
	((field) = (__typeof__(field))json_number(value))
#define READ_id READ_number
#define READ_count READ_number
#define READ_duration READ_number
#define READ_hash(field, value) ((field) = read_hash(value))
#define READ_tcp_flags READ_number
#define READ_tcp_combined READ_number
#define READ_dscp READ_number
#define READ_time(field, value) ((field) = json_signed(value) * NSEC_PER_MSEC)
#define READ_address(field, value) read_address(value, field)
#define READ_tunnel_end READ_address
#define READ_mac(field, value) read_mac(value, field)
#define READ_text(field, value) json_text(value, field, sizeof(field))
#define READ_tunnel(field, value) ((field) = read_tunnel_name(value))

#define POINT_FIELD(...)
#define FIELD(member, type, bit, merge, key, ...)           \
	if (*(key) && (value = json_get(record, key)).at) { \
		READ_##type(flow->member, value);           \
		flow->has |= (bit);                         \
	}

static void read_fields(struct netobs_flow *flow, struct json_value record)
{
	struct json_value value;

#include "catalogue/fields.def"
}

/* ---- Points ------------------------------------------------------------------------- */

#define READ_name(i, value) \
	json_text(value, reader->names[i], sizeof(reader->names[i]))
#define READ_POINT_number(i, member, value) \
	(reader->points[i].member =         \
		 (__typeof__(reader->points[i].member))json_number(value))
#define READ_POINT_direction(i, member, value) \
	(reader->points[i].member = direction_of_index((int)json_number(value)))
#define READ_POINT_netns READ_POINT_number
#define READ_POINT_name(i, member, value) READ_name(i, value)

#define FIELD(...)
#define POINT_FIELD(member, type, key, ...)                                    \
	item = (struct json_item){ 0 };                                        \
	for (uint32_t i = 0;                                                   \
	     i < POINTS_MAX && json_next(json_get(record, key), &item); i++) { \
		READ_POINT_##type(i, member, item.value);                      \
		n = i + 1 > n ? i + 1 : n;                                     \
	}

/* If all points have one namespace, no list of namespaces is shown. */
static void read_points(struct netobs_flow_reader *reader,
			struct json_value record)
{
	struct json_item item;
	uint32_t n = 0;

#include "catalogue/fields.def"
	for (uint32_t i = 0; i < n; i++)
		reader->points[i].name = reader->names[i];
	reader->flow.n_points = n;
	reader->flow.point_size = sizeof(*reader->points);
	reader->flow.points = reader->points;
}

/* ---- Processes ---------------------------------------------------------------------- */

#define READ_PROCESS_number READ_number
#define READ_PROCESS_count READ_number
#define READ_PROCESS_text(field, value) json_text(value, field, sizeof(field))

#define FIELD(...)
#define POINT_FIELD(...)
#define PROCESS_FIELD(member, type, key, ...)           \
	snprintf(name, sizeof(name), "%s%s", end, key); \
	if ((value = json_get(record, name)).at)        \
		READ_PROCESS_##type(ret_process->member, value);

/* @end: "Src" or "Dst". @return whether there is one */
static bool read_process(struct json_value record, const char *end,
			 struct netobs_process *ret_process)
{
	struct json_value value;
	char name[24];

#include "catalogue/fields.def"
	ret_process->sz = sizeof(*ret_process);
	return ret_process->pid;
}

/* ---- The API ------------------------------------------------------------------------ */

int netobs_flow_reader_new(struct netobs_flow_reader **ret_reader)
{
	struct netobs_flow_reader *reader;

	if (!ret_reader)
		return -EINVAL;
	reader = calloc(1, sizeof(*reader));
	if (!reader)
		return -ENOMEM;
	*ret_reader = reader;
	return 0;
}

const struct netobs_flow *
netobs_flow_reader_read(struct netobs_flow_reader *reader, const char *json)
{
	const struct json_value record = json ? json_parse(json) :
						(struct json_value){ 0 };

	if (!reader || !record.at || *record.at != '{')
		return NULL;
	memset(reader->points, 0, sizeof(reader->points));
	memset(reader->names, 0, sizeof(reader->names));
	memset(reader->processes, 0, sizeof(reader->processes));
	reader->flow = (struct netobs_flow){ .sz = sizeof(reader->flow) };
	read_fields(&reader->flow, record);
	read_points(reader, record);
	if (read_process(record, "Src", &reader->processes[0]))
		reader->flow.src_process = &reader->processes[0];
	if (read_process(record, "Dst", &reader->processes[1]))
		reader->flow.dst_process = &reader->processes[1];
	return &reader->flow;
}

void netobs_flow_reader_free(struct netobs_flow_reader *reader)
{
	free(reader);
}
