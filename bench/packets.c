/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "runner.h"

#include "base/util.h"
#include "bpf/parse/headers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const order_names[] = {
	[ORDER_UNIFORM] = "uniform", [ORDER_ZIPF] = "zipf", [ORDERS] = NULL
};

/* ---- Frames ---------------------------------------------------------------- */

enum { L3 = sizeof(struct ether_wire), L4 = L3 + sizeof(struct ipv4_wire) };

void frame_make(uint8_t ret_frame[FRAME])
{
	memset(ret_frame, 0, FRAME);
	ret_frame[0] = 0x02; /* of no interface: the packet ends behind the hook */
	ret_frame[12] = ETHERTYPE_IPV4 >> 8;
	*(struct ipv4_wire *)(ret_frame + L3) = (struct ipv4_wire){
		.version_ihl = 0x45,
		.total = htons(FRAME - L3),
		.ttl = 64,
		.proto = IPPROTO_UDP,
		.dst = htonl(0xc6120007), /* 198.18.0.7 */
	};
	/* RFC 768: ports 7 and 9, and the length. */
	ret_frame[L4 + 1] = 7;
	ret_frame[L4 + 3] = 9;
	ret_frame[L4 + 5] = FRAME - L4;
}

void frame_set_flow(uint8_t frame[FRAME], uint32_t flow)
{
	((struct ipv4_wire *)(frame + L3))->src = flow;
}

/* ---- Flows ----------------------------------------------------------------- */

/*
 * So long that nearly all flows occur, and that the caches hold no more of the
 * sequence itself than of any other stream.
 */
enum { LENGTH_MIN = 1 << 20, LENGTH_PER_FLOW = 4, SEED = 1 };

static const double zipf_exponent = 1.1;

/* SplitMix64 (Steele, Lea, Flood 2014). */
uint64_t packets_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static uint32_t random_below(uint64_t *state, uint32_t limit)
{
	return (packets_random(state) >> 32) * limit >> 32;
}

void packets_permute(uint32_t *ret_numbers, uint32_t n, uint64_t seed)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t other = random_below(&seed, i + 1);

		ret_numbers[i] = ret_numbers[other];
		ret_numbers[other] = i;
	}
}

/* Of @sums, which rise, the first above @value. */
static uint32_t find_above(const double *sums, uint32_t n, double value)
{
	uint32_t low = 0, high = n - 1;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (sums[middle] > value)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* The flow of rank k has a share of packets in proportion to k ^ -zipf_exponent. */
static int draw_by_zipf(struct packets *packets)
{
	cleanup_free double *sums = calloc(packets->flows, sizeof(*sums));
	uint64_t seed = SEED;
	double sum = 0;

	if (!sums)
		return -ENOMEM;
	for (uint32_t i = 0; i < packets->flows; i++)
		sums[i] = sum += pow(i + 1.0, -zipf_exponent);
	for (uint32_t i = 0; i < packets->length; i++) {
		double drawn = (packets_random(&seed) >> 11) * 0x1p-53 * sum;

		/* Frequent flows are spread over the tables as all others are. */
		packets->orders[ORDER_ZIPF][i] =
			packets->each[find_above(sums, packets->flows, drawn)];
	}
	return 0;
}

static int make_orders(struct packets *packets)
{
	uint64_t seed = SEED;

	packets->length = LENGTH_MIN;
	while (packets->length < packets->flows * LENGTH_PER_FLOW)
		packets->length *= 2;
	for (int i = 0; i < ORDERS; i++) {
		packets->orders[i] = calloc(packets->length, sizeof(uint32_t));
		if (!packets->orders[i])
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < packets->length; i++)
		packets->orders[ORDER_UNIFORM][i] =
			random_below(&seed, packets->flows);
	return draw_by_zipf(packets);
}

int packets_prepare(struct packets *packets, uint32_t flows, bool with_orders)
{
	packets_clear(packets);
	packets->flows = flows;
	packets->each = calloc(flows, sizeof(*packets->each));
	if (!packets->each)
		return -ENOMEM;
	packets_permute(packets->each, flows, SEED);
	return with_orders ? make_orders(packets) : 0;
}

void packets_clear(struct packets *packets)
{
	free(packets->each);
	for (int i = 0; i < ORDERS; i++)
		free(packets->orders[i]);
	*packets = (struct packets){ 0 };
}

void packets_take(struct packets *packets, enum order order,
		  uint32_t *ret_flows, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		ret_flows[i] = packets->orders[order][packets->position++ &
						      (packets->length - 1)];
}
