/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "lib_series.h"

#include "lib_test.h"

struct netobs_flow series_flow(uint32_t service, uint32_t client,
			       uint64_t packets, uint64_t bytes)
{
	return (struct netobs_flow){
		.sz = sizeof(struct netobs_flow),
		.has = NETOBS_HAS_PORTS | NETOBS_HAS_TCP,
		.packets = packets,
		.bytes = bytes,
		.src = { [10] = 0xff, 0xff, 10, 1, 0, (uint8_t)client },
		.dst = { [10] = 0xff,
			 0xff,
			 10,
			 2,
			 (uint8_t)(service >> 8),
			 (uint8_t)service },
		.src_port = 40000,
		.dst_port = 443,
		.tcp_flags = 2,
		.proto = 6,
	};
}

struct netobs_series *make_timed_series(const char *keys, uint32_t most,
					uint32_t histograms)
{
	char why[NETOBS_ERROR_MAX] = "";
	const struct netobs_series_opts opts = { .sz = sizeof(opts),
						 .keys = keys,
						 .name = "test",
						 .max_series = most,
						 .histograms = histograms,
						 .error = &why };
	struct netobs_series *series = NULL;

	if (netobs_series_new(&opts, &series) < 0)
		fail_msg("%s: %s", keys, why);
	return series;
}

struct netobs_series *make_series(const char *keys, uint32_t most)
{
	return make_timed_series(keys, most, 0);
}

/* ---- A scraper ------------------------------------------------------------------------ */

void add_sum(struct sum *sum, const struct sum *more)
{
	counters_add(sum, more, sizeof(*sum));
}

static void take_row(const struct netobs_series_row *row, void *user)
{
	struct scrape *scrape = user;
	struct seen *seen = &scrape->rows[scrape->n++];

	assert_true(scrape->n <= ROWS_MAX);
	snprintf(seen->text, sizeof(seen->text), "%u %s %s", row->kind,
		 row->n > 0 ? row->texts[0] : "",
		 row->n > 1 ? row->texts[1] : "");
	seen->sum = (struct sum){
		.flows = row->flows,
		.packets = row->packets,
		.bytes = row->bytes,
		.retransmits = row->retransmits,
		.drop_packets = row->drop_packets,
		.drop_bytes = row->drop_bytes,
		.connections = row->connections,
		.connections_failed = row->connections_failed,
	};
	if (row->rtt)
		seen->sum.rtt = *row->rtt;
	if (row->app_latency)
		seen->sum.app_latency = *row->app_latency;
	add_sum(&scrape->total, &seen->sum);
}

static int compare_seen(const void *a, const void *b)
{
	return strcmp(((const struct seen *)a)->text,
		      ((const struct seen *)b)->text);
}

void take_scrape(const struct netobs_series *series, struct scrape *scrape)
{
	int n;

	scrape->n = 0;
	scrape->total = (struct sum){ 0 };
	n = netobs_series_each(series, take_row, scrape);
	assert_int_equal(n, scrape->n);
	qsort(scrape->rows, scrape->n, sizeof(*scrape->rows), compare_seen);
	for (size_t i = 1; i < scrape->n; i++) /* all differ */
		assert_int_not_equal(
			compare_seen(&scrape->rows[i - 1], &scrape->rows[i]), 0);
}

const struct seen *find_row(const struct scrape *scrape, const char *text)
{
	struct seen key;

	snprintf(key.text, sizeof(key.text), "%s", text);
	return bsearch(&key, scrape->rows, scrape->n, sizeof(*scrape->rows),
		       compare_seen);
}

/* @return whether one of its counters is below what it was */
static bool steps_back(const struct sum *was, const struct sum *is)
{
	const uint64_t *before = &was->flows, *after = &is->flows;

	for (size_t i = 0; i < sizeof(*was) / sizeof(*before); i++)
		if (after[i] < before[i])
			return true;
	return false;
}

/* @return how many series of @before are there no more */
size_t check_steps(const struct scrape *before, const struct scrape *after)
{
	size_t left = 0;

	for (size_t i = 0; i < before->n; i++) {
		const struct seen *was = &before->rows[i];
		const struct seen *is = find_row(after, was->text);

		left += !is;
		assert_true(!is || !steps_back(&was->sum, &is->sum));
	}
	return left;
}

const struct seen *find_service(const struct scrape *scrape, uint32_t service)
{
	char text[64];

	snprintf(text, sizeof(text), "0 10.2.%u.%u:443/TCP ", service >> 8,
		 service & 255);
	return find_row(scrape, text);
}
