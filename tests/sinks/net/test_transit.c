// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What is known of messages, from how many bytes were confirmed. */
#include "sinks/net/transit.h"

#include "lib_test.h"
#include "base/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct position records(uint64_t n)
{
	return (struct position){ n, 2 * n, 3 * n };
}

/* Messages of 100 bytes and 10 records each. */
static void add(struct transit *transit, unsigned int n)
{
	for (unsigned int i = 1; i <= n; i++)
		transit_add(transit, 100 * i, records(10), records(10 * i));
}

static void confirmed_is_not_delivered(void **state)
{
	struct transit transit;

	(void)state;
	transit_start(&transit, records(0));
	add(&transit, 5);
	transit_confirm(&transit, 399, 1000);
	assert_false(transit_is_confirmed(&transit));
	assert_int_equal(transit.delivered.seq, 0);
	transit_confirm(&transit, 500, 2000);
	assert_true(transit_is_confirmed(&transit));
	assert_int_equal(transit.delivered.seq, 0);
	assert_false(transit_is_delivered(&transit));
}

static void what_is_read_is_delivered_and_sure(void **state)
{
	struct transit transit;

	(void)state;
	transit_start(&transit, records(0));
	add(&transit, 5);
	transit_read(&transit, 500); /* nothing is confirmed */
	assert_int_equal(transit.delivered.seq, 0);
	transit_confirm(&transit, 400, 1000);
	transit_read(&transit, 250);
	assert_int_equal(transit.delivered.seq, 20);
	assert_int_equal(transit.delivered.bytes, 60);
	assert_int_equal(transit.unsure.seq, 0);
}

static void what_is_taken_for_read_is_delivered_and_unsure(void **state)
{
	struct transit transit;

	(void)state;
	transit_start(&transit, records(0));
	add(&transit, 5);
	transit_confirm(&transit, 200, 1000);
	transit_confirm(&transit, 400, 2000);
	transit_take(&transit, 1999);
	assert_int_equal(transit.delivered.seq, 20);
	assert_int_equal(transit.unsure.seq, 20);
	transit_read(&transit, 100);
	assert_int_equal(transit.unsure.seq, 10);
	transit_take(&transit, INT64_MAX);
	assert_int_equal(transit.delivered.seq, 40);
	assert_int_equal(transit.unsure.packets, 60);
	assert_false(transit_is_delivered(&transit));
	transit_confirm(&transit, 500, 3000);
	transit_read(&transit, 500);
	assert_int_equal(transit.unsure.seq, 0);
	assert_true(transit_is_delivered(&transit));
	assert_int_equal(transit.n, 0);
}

static void half_of_what_is_confirmed_is_taken_the_older_one(void **state)
{
	const unsigned int delivered[] = { 20, 30, 40, 40 };
	struct transit transit;

	(void)state;
	transit_start(&transit, records(0));
	add(&transit, 5);
	transit_take_half(&transit);
	assert_int_equal(transit.delivered.seq, 0);
	transit_confirm(&transit, 400, 1000);
	for (size_t i = 0; i < ARRAY_SIZE(delivered); i++) {
		transit_take_half(&transit);
		assert_int_equal(transit.delivered.seq, delivered[i]);
		assert_int_equal(transit.unsure.seq, delivered[i]);
	}
}

/* It may never be ahead of the proven position, nor differ from the truth at the end. */
static void too_many_messages_are_known_less_exactly(void **state)
{
	const unsigned int n = 10 * TRANSIT_MAX;
	struct transit transit;
	uint64_t sent = 0, confirmed = 0, read = 0, known = 0;
	unsigned int seed = (unsigned int)time(NULL);

	(void)state;
	printf("seed %u\n", seed);
	transit_start(&transit, records(0));
	while (read < 100 * n) {
		if (sent < n && rand_r(&seed) % 3) {
			sent++;
			transit_add(&transit, 100 * sent, records(10),
				    records(10 * sent));
		}
		if (!(rand_r(&seed) % 8))
			confirmed += (uint64_t)rand_r(&seed) %
				     (100 * sent - confirmed + 1);
		transit_confirm(&transit, confirmed, (int64_t)sent);
		if (!(rand_r(&seed) % 64))
			transit_take(&transit, (int64_t)sent - 5);
		if (!(rand_r(&seed) % 32))
			read += (uint64_t)rand_r(&seed) % (confirmed - read + 1);
		transit_read(&transit, read);
		assert_in_range(transit.delivered.seq, known, confirmed / 10);
		assert_in_range(transit.delivered.seq - transit.unsure.seq, 0,
				read / 10);
		known = transit.delivered.seq;
		assert_true(transit.n_taken <= transit.n_confirmed &&
			    transit.n_confirmed <= transit.n &&
			    transit.n <= TRANSIT_MAX);
		if (sent == n)
			read = confirmed = 100 * n;
	}
	transit_confirm(&transit, confirmed, 0);
	transit_read(&transit, read);
	assert_int_equal(transit.delivered.seq, 10 * n);
	assert_int_equal(transit.unsure.seq, 0);
	assert_int_equal(transit.n, 0);
}

/* However few places are known. */
static void what_is_taken_stays_apart_from_the_rest(void **state)
{
	struct transit transit;

	(void)state;
	transit_start(&transit, records(0));
	add(&transit, TRANSIT_MAX);
	transit_confirm(&transit, 500, 1000);
	transit_confirm(&transit, 1000, 2000);
	transit_take(&transit, 1000);
	transit_add(&transit, 100 * (TRANSIT_MAX + 1), records(10),
		    records(10 * (TRANSIT_MAX + 1)));
	assert_true(transit.n < TRANSIT_MAX);
	assert_int_equal(transit.unsure.seq, 50);
	transit_read(&transit, 500);
	assert_int_equal(transit.delivered.seq, 50);
	assert_int_equal(transit.unsure.seq, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(confirmed_is_not_delivered),
		cmocka_unit_test(what_is_read_is_delivered_and_sure),
		cmocka_unit_test(what_is_taken_for_read_is_delivered_and_unsure),
		cmocka_unit_test(half_of_what_is_confirmed_is_taken_the_older_one),
		cmocka_unit_test(too_many_messages_are_known_less_exactly),
		cmocka_unit_test(what_is_taken_stays_apart_from_the_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
