/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Series of tests, and what a scrape of them finds. */
#ifndef HARNESS_LIB_SERIES_H
#define HARNESS_LIB_SERIES_H

#include "lib_test.h"

#include <netobs/series.h>

enum { SERIES = 500, ROWS_MAX = SERIES + 2 };

/* A flow of client @client to port 443 of service @service. */
struct netobs_flow series_flow(uint32_t service, uint32_t client,
			       uint64_t packets, uint64_t bytes);

struct netobs_series *make_series(const char *keys, uint32_t most);
struct netobs_series *make_timed_series(const char *keys, uint32_t most,
					uint32_t histograms);

/* A case of struct netobs_series *series, which is make_series() of @keys and @most. */
#define SERIES_TEST(name, keys, most)                                   \
	static void name##_of(struct netobs_series *series);            \
	TEST(name)                                                      \
	{                                                               \
		struct netobs_series *series = make_series(keys, most); \
                                                                        \
		name##_of(series);                                      \
		netobs_series_free(series);                             \
	}                                                               \
	static void name##_of(struct netobs_series *series)

/* Counters alone: sums are compared, and added up, as arrays of them. */
struct sum {
	uint64_t flows, packets, bytes, retransmits, drop_packets, drop_bytes;
	uint64_t connections, connections_failed;
	struct netobs_times rtt, app_latency;
};

void add_sum(struct sum *sum, const struct sum *more);

/* What a series had, by its text. */
struct seen {
	char text[2 * NETOBS_GROUP_TEXT_MAX];
	struct sum sum;
};

struct scrape {
	struct seen rows[ROWS_MAX];
	size_t n;
	struct sum total;
};

/* Of all series, sorted; all texts differ. */
void take_scrape(const struct netobs_series *series, struct scrape *scrape);

/* @text: the kind and the texts of the first two keys: "0 10.2.0.1:443/TCP 10.1.0.1" */
const struct seen *find_row(const struct scrape *scrape, const char *text);

/* Of port 443 of @service, grouped by service. */
const struct seen *find_service(const struct scrape *scrape, uint32_t service);

/* No series steps back. @return how many series of @before are there no more */
size_t check_steps(const struct scrape *before, const struct scrape *after);

#endif
