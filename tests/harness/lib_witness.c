/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "lib_witness.h"

#include "lib_test.h"

static void copy_points(struct witness_flow *to)
{
	struct netobs_flow *flow = &to->flow;

	assert_true(flow->n_points <= WITNESS_POINTS);
	for (uint32_t i = 0; i < flow->n_points; i++) {
		to->points[i] = flow->points[i];
		snprintf(to->names[i], sizeof(to->names[i]), "%s",
			 flow->points[i].name);
	}
}

void witness_on_flow(const struct netobs_record *record, void *user)
{
	const struct netobs_flow *flow = (const void *)record;
	struct witness *witness = user;

	assert_true(array_reserve(&witness->flows, witness->n_flows,
				  &witness->capacity, sizeof(*witness->flows),
				  16));
	witness->flows[witness->n_flows].flow = *flow;
	copy_points(&witness->flows[witness->n_flows]);
	witness->n_flows++;
	witness->packets += flow->packets;
	witness->bytes += flow->bytes;
}

void witness_on_interval(void *user)
{
	struct witness *witness = user;

	witness->n_intervals++;
}

void witness_on_log(int level, const char *message, void *user)
{
	struct witness *witness = user;
	size_t room = sizeof(witness->log) - witness->log_len;
	int len =
		snprintf(witness->log + witness->log_len, room, "%s\n", message);

	if (len > 0 && (size_t)len < room)
		witness->log_len += len;
	witness->n_lines++;
	witness->errors += level == NETOBS_LOG_ERROR;
	witness->warnings += level == NETOBS_LOG_WARNING;
}

void witness_listen(struct witness *witness, struct netobs_opts *opts)
{
	opts->on_record = witness_on_flow;
	opts->on_interval = witness_on_interval;
	opts->on_log = witness_on_log;
	opts->user = witness;
}

struct log witness_log(struct witness *witness)
{
	return (struct log){ .write = witness_on_log, .user = witness };
}

bool witness_read(const struct witness *witness, const char *words)
{
	return strstr(witness->log, words);
}

const char *witness_last(const struct witness *witness)
{
	size_t at = witness->log_len ? witness->log_len - 1 : 0;

	while (at && witness->log[at - 1] != '\n')
		at--;
	return witness->log + at;
}

void witness_clear(struct witness *witness)
{
	free(witness->flows);
	memset(witness, 0, sizeof(*witness));
}

uint64_t witness_packets_to(const struct witness *witness, uint16_t port)
{
	uint64_t packets = 0;

	for (uint32_t i = 0; i < witness->n_flows; i++) {
		const struct netobs_flow *flow = &witness->flows[i].flow;

		if (flow->has & NETOBS_HAS_PORTS && flow->dst_port == port)
			packets += flow->packets;
	}
	return packets;
}
