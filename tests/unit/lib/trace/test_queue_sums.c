// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Sums of buckets: nothing is lost of the bytes, and flows with many bytes keep their shares, whatever others
 * there are. NETOBS_TEST_SEED repeats a run.
 */
#include "lib_seed.h"
#include "lib_test.h"

#include "base/util.h"
#include "trace/queue_sums.h"

#include <arpa/inet.h>

enum { ROUNDS = 300, BUCKETS = 16, PACKETS = 400, FLOWS_MAX = 200 };

/* All bytes of each flow; 0: packets without a flow. */
struct model {
	uint64_t bytes[FLOWS_MAX + 1], all;
	uint32_t n;
};

/* Half of the packets are of the flow 1. */
static void fill_bucket(struct queue_bucket *bucket, struct model *model)
{
	*bucket = (struct queue_bucket){ .waited_ns = 1000 };
	for (int i = 0; i < PACKETS; i++) {
		const uint32_t bytes = 60 + test_below(1400);
		const uint32_t flow = i % 2 ? 1 : test_below(model->n + 1);

		bucket->bytes += bytes;
		model->all += bytes;
		model->bytes[flow] += bytes;
		if (flow)
			queue_add_share(bucket, flow * 2654435761U, bytes);
	}
}

static uint64_t sum_flows(const struct queue_sums *sums, const struct model *model)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < sums->flows.n; i++) {
		const struct queue_sum *one = slots_at(&sums->flows, i);
		uint32_t flow = 1;

		while (flow * 2654435761U != one->id)
			assert_true(++flow <= model->n);
		assert_true(one->bytes <= model->bytes[flow]);
		sum += one->bytes;
	}
	return sum;
}

static void check_largest(const struct queue_sums *sums, const struct model *model)
{
	struct netobs_queue queue = { 0 };
	const struct netobs_queue_share *largest = queue.shares;
	const uint32_t n = queue_sums_fill(sums, &queue);
	uint32_t above = 0;

	assert_int_equal(queue.amount, model->all);
	assert_int_equal(queue.rest, model->all);

	assert_int_equal(n, min_u64(sums->flows.n, NETOBS_QUEUE_SHARES_MAX));
	assert_int_equal(largest[0].pid, 2654435761U);
	assert_in_range(largest[0].amount, model->bytes[1] / 10 * 9,
			model->bytes[1]);
	for (uint32_t i = 1; i < n; i++)
		assert_true(largest[i].amount <= largest[i - 1].amount);
	for (uint32_t i = 0; i < sums->flows.n; i++)
		above += ((struct queue_sum *)slots_at(&sums->flows, i))->bytes >
			 largest[n - 1].amount;
	assert_true(above < n);
}

TEST(bytes_are_in_a_share_or_in_the_rest)
{
	struct queue_sums sums = { 0 };

	srand(test_seed());
	for (int round = 0; round < ROUNDS; round++) {
		struct model model = { .n = 1 + test_below(FLOWS_MAX) };
		struct queue_bucket bucket;
		uint64_t in_shares;

		for (int i = 0; i < BUCKETS; i++) {
			fill_bucket(&bucket, &model);
			queue_sums_add(&sums, &bucket);
		}
		assert_int_equal(sums.bytes, model.all);
		assert_int_equal(sums.waited_ns, BUCKETS * 1000);
		in_shares = sum_flows(&sums, &model);
		assert_true(in_shares <= sums.bytes);
		if (model.n <= QUEUE_TRIES)
			assert_int_equal(in_shares, model.all - model.bytes[0]);
		check_largest(&sums, &model);
		queue_sums_clear(&sums);
	}
	queue_sums_free(&sums);
}

/* ---- Sockets ------------------------------------------------------------------------ */

#define V4(a, b, c, d)                                     \
	{                                                  \
		.bytes = { [10] = 0xff, 0xff, a, b, c, d } \
	}

static const struct queue_flow origin = {
	V4(10, 0, 0, 2), V4(192, 0, 2, 1), 5000, 53, 17, { 0 }
};

TEST(a_flow_has_an_origin_before_nat)
{
	struct queue_sender sender = {
		.flow = { V4(198, 51, 100, 1), V4(192, 0, 2, 1), 61000, 53, 17, { 0 } },
		.before = { .src = { htonl(0x0a000002) },
			    .src_port = htons(5000),
			    .family = AF_INET,
			    .dst = { htonl(0xc0000201) },
			    .dst_port = htons(53),
			    .proto = 17 },
	};
	struct queue_flow found = queue_origin(&sender);

	assert_memory_equal(&found, &origin, sizeof(found));
	sender.before = (struct nat_tuple){ 0 };
	found = queue_origin(&sender);
	assert_memory_equal(&found, &sender.flow, sizeof(found));
}

TEST(a_socket_fits_the_flow_before_nat)
{
	const struct {
		struct queue_owner owner;
		enum queue_match match;
	} cases[] = {
		{ { .socket = 0x1234 }, QUEUE_SOCKET },
		{ { .flow = origin }, QUEUE_CONNECTED },
		{ { .flow = { V4(10, 0, 0, 2), { .lanes = { 0 } }, 5000, 0, 17, { 0 } } },
		  QUEUE_ITS_ADDRESS },
		{ { .flow = { V4(0, 0, 0, 0), V4(0, 0, 0, 0), 5000, 0, 17, { 0 } } },
		  QUEUE_ANY_ADDRESS },
		{ { .flow = { .src_port = 5000, .proto = 17 } },
		  QUEUE_ANY_ADDRESS },
		{ { .flow = { .src_port = 5000, .proto = 6 } }, QUEUE_NO_MATCH },
		{ { .flow = { .src_port = 5001, .proto = 17 } }, QUEUE_NO_MATCH },
		{ { .flow = { V4(10, 0, 0, 3), V4(0, 0, 0, 0), 5000, 0, 17, { 0 } } },
		  QUEUE_NO_MATCH },
		{ { .flow = { V4(10, 0, 0, 2), V4(192, 0, 2, 1), 5000, 54, 17, { 0 } } },
		  QUEUE_NO_MATCH },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(queue_match(&cases[i].owner, &origin, 0x1234),
				 cases[i].match);
}

TEST(sockets_without_an_address_are_not_alike)
{
	const struct queue_owner owner = { .flow = { .proto = 1 } };

	assert_int_equal(queue_match(&owner, &origin, 0), QUEUE_NO_MATCH);
}

int main(void)
{
	return tests_run(NULL, NULL);
}
