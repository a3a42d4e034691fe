/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "round_trips.h"

#include "flow_sums.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SEGMENTS = 1 << 16, AVERAGES = 1 << 12 };

struct round_trip_segment {
	struct packet_tuple tuple;
	uint32_t end;
	uint64_t time_ns; /* 0: none */
};

struct round_trip_average {
	struct packet_tuple tuple;
	int64_t ns;
};

int round_trips_init(struct round_trips *trips)
{
	*trips = (struct round_trips){
		.segments = calloc(SEGMENTS, sizeof(*trips->segments)),
		.averages = calloc(AVERAGES, sizeof(*trips->averages)),
	};
	if (trips->segments && trips->averages)
		return 0;
	round_trips_free(trips);
	return -ENOMEM;
}

void round_trips_free(struct round_trips *trips)
{
	free(trips->segments);
	free(trips->averages);
	*trips = (struct round_trips){ 0 };
}

/* Where the segment that ends before @end is, or would be. */
static struct round_trip_segment *find_segment(const struct round_trips *trips,
					       const struct packet_tuple *tuple,
					       uint32_t end)
{
	uint64_t place = packet_tuple_hash(tuple) + end * 0x9e3779b1U;

	return &trips->segments[(uint32_t)place / (UINT32_MAX / SEGMENTS + 1)];
}

static struct packet_tuple swap_ends(const struct packet_tuple *tuple)
{
	return (struct packet_tuple){
		.src = tuple->dst,
		.dst = tuple->src,
		.src_port = tuple->dst_port,
		.dst_port = tuple->src_port,
		.proto = tuple->proto,
	};
}

static void add_sample(struct round_trips *trips,
		       const struct packet_tuple *tuple, uint64_t ns)
{
	struct round_trip_average *average =
		&trips->averages[packet_tuple_hash(tuple) % AVERAGES];

	trips->samples++;
	trips->sum_ns += ns;
	if (memcmp(&average->tuple, tuple, sizeof(*tuple)))
		*average = (struct round_trip_average){ *tuple, (int64_t)ns };
	else
		average->ns += ((int64_t)ns - average->ns) / 8;
}

int64_t round_trips_average_ns(const struct round_trips *trips,
			       const struct packet_tuple *tuple)
{
	const struct round_trip_average *average =
		&trips->averages[packet_tuple_hash(tuple) % AVERAGES];

	return memcmp(&average->tuple, tuple, sizeof(*tuple)) ? 0 : average->ns;
}

void round_trips_add(struct round_trips *trips, const struct packet_report *report)
{
	const struct packet_sample *sample = &report->sample;
	struct packet_tuple sender = swap_ends(&sample->tuple);
	struct round_trip_segment *segment;

	if (report->end != report->seq)
		*find_segment(trips, &sample->tuple, report->end) =
			(struct round_trip_segment){ sample->tuple, report->end,
						     sample->time_ns };
	if (!report->has_ack)
		return;
	segment = find_segment(trips, &sender, report->ack);
	if (!segment->time_ns || segment->end != report->ack ||
	    memcmp(&segment->tuple, &sender, sizeof(sender)))
		return;
	add_sample(trips, &sender, sample->time_ns - segment->time_ns);
	segment->time_ns = 0;
}
