/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Names of containers and pods that are found once their groups have a series. */
#include "lib_seed.h"
#include "lib_series.h"
#include "lib_test.h"

/* A flow from a process in a container. @name: ""; it is not known */
static void add_from(struct netobs_series *series, const char *id,
		     const char *name, uint64_t bytes)
{
	struct netobs_process process = { .sz = sizeof(process), .pid = 7 };
	struct netobs_flow flow = series_flow(1, 1, 1, bytes);

	snprintf(process.container_id, sizeof(process.container_id), "%s", id);
	snprintf(process.container_name, sizeof(process.container_name), "%s",
		 name);
	flow.src_process = &process;
	assert_int_equal(netobs_series_add(series, &flow.record), 0);
}

static void keep_name(const struct netobs_record *passed, void *user)
{
	const struct netobs_group_record *record = (const void *)passed;
	snprintf(user, sizeof(record->container_name), "%s",
		 record->container_name);
}

static void end_interval(struct netobs_series *series, const char *name)
{
	char found[64] = "none";

	assert_int_equal(netobs_series_end_interval(series, 0, keep_name, found),
			 1);
	assert_string_equal(found, name);
}

SERIES_TEST(records_take_a_name_that_is_found_later, "container", 4)
{
	static struct scrape scrape;

	add_from(series, "c0ffee", "", 100);
	end_interval(series, "");
	take_scrape(series, &scrape);
	assert_non_null(find_row(&scrape, "0 c0ffee "));
	add_from(series, "c0ffee", "web", 10);
	end_interval(series, "web");

	/* One that does not know it takes no name away. */
	add_from(series, "c0ffee", "", 1);
	end_interval(series, "web");
	add_from(series, "c0ffee", "shop", 1);
	end_interval(series, "shop");
	take_scrape(series, &scrape);
	assert_int_equal(scrape.n, 1 + 2);
	assert_int_equal(find_row(&scrape, "0 c0ffee ")->sum.bytes, 112);
}

SERIES_TEST(a_pod_has_its_name_and_namespace, "pod", 4)
{
	struct netobs_process process = { .sz = sizeof(process),
					  .pod_uid = "0f3e9c1a-5b7d" };
	struct netobs_flow flow = series_flow(1, 1, 1, 100);
	static struct scrape scrape;

	flow.src_process = &process;
	strcpy(process.pod_name, "web-0");
	strcpy(process.pod_namespace, "shop");
	assert_int_equal(netobs_series_add(series, &flow.record), 0);
	assert_int_equal(netobs_series_end_interval(series, 0, NULL, NULL), 0);
	take_scrape(series, &scrape);
	assert_int_equal(scrape.n, 1 + 2);
	assert_int_equal(
		find_row(&scrape, "0 shop/web-0 (0f3e9c1a) ")->sum.bytes, 100);
}

enum { CONTAINERS = 40, INTERVALS = 200, FLOWS = 60 };

/* Names come, change and are not known, while groups enter and leave. */
SERIES_TEST(sums_are_exact_whenever_names_come, "container", 10)
{
	static struct scrape scrape;
	uint64_t bytes = 0;

	for (int interval = 0; interval < INTERVALS; interval++) {
		for (int i = 0; i < FLOWS; i++) {
			const unsigned int one = test_below(CONTAINERS);
			const uint64_t more = 1 + test_below(1000) * one;
			char id[32], name[32] = "";

			snprintf(id, sizeof(id), "%012x", one);
			if (test_below(3) == 0)
				snprintf(name, sizeof(name), "box-%d",
					 test_below(3));
			add_from(series, id, name, more);
			bytes += more;
		}
		netobs_series_end_interval(series, interval, NULL, NULL);
		take_scrape(series, &scrape);
		assert_int_equal(scrape.total.bytes, bytes);
		assert_true(scrape.n <= 10 + 2);
	}
}
