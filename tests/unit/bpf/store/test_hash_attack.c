// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Flows that are chosen to collide, by an attacker who knows all but the secret,
 * are spread as a random function would spread them. Each family is hashed with
 * fresh secrets; NETOBS_TEST_SEED repeats a run.
 */
#include "host.h"
#include "lib_seed.h"
#include "lib_test.h"

#include <math.h>

enum {
	SMALL = 1 << 12,
	MEDIUM = 1 << 16,
	LARGE = 1 << 20,
	ROUNDS = 4,
	LANES = sizeof(struct flow_key) / sizeof(uint64_t),
	SUBSET_BITS = 20, /* of LARGE */
};

/* What a family's members are made from. */
struct draw {
	uint64_t base[LANES];
	uint64_t deltas[SUBSET_BITS][LANES];
	uint32_t bits; /* 2^bits flows */
};

struct family {
	const char *name;
	void (*vary)(const struct draw *draw, uint64_t *lanes, uint32_t i);
};

/* Part @k of @n equal ones of the bits of @i. */
static uint64_t part_of(const struct draw *draw, uint32_t i, int k, int n)
{
	uint32_t width = draw->bits / n;

	return i >> k * width & ((1U << width) - 1);
}

static uint64_t to_top(const struct draw *draw, uint64_t part, int n)
{
	return part << (64 - draw->bits / n);
}

/* In both halves of a lane. */
static uint64_t in_halves(uint64_t top)
{
	return top ^ top >> 32;
}

static void vary_folded_source(const struct draw *draw, uint64_t *lanes,
			       uint32_t i)
{
	for (int k = 0; k < 2; k++)
		lanes[k] ^= in_halves(to_top(draw, part_of(draw, i, k, 2), 2));
}

static void vary_folded_addresses(const struct draw *draw, uint64_t *lanes,
				  uint32_t i)
{
	for (int k = 0; k < 4; k++)
		lanes[k] ^= in_halves(to_top(draw, part_of(draw, i, k, 4), 4));
}

static void vary_tops_of_lanes(const struct draw *draw, uint64_t *lanes,
			       uint32_t i)
{
	for (int k = 0; k < 4; k++)
		lanes[k] ^= to_top(draw, part_of(draw, i, k, 4), 4);
}

static void vary_tops_of_words(const struct draw *draw, uint64_t *lanes,
			       uint32_t i)
{
	for (int k = 0; k < 4; k++)
		lanes[k / 2] ^= to_top(draw, part_of(draw, i, k, 4), 4) >>
				k % 2 * 32;
}

static void vary_bottoms_of_words(const struct draw *draw, uint64_t *lanes,
				  uint32_t i)
{
	for (int k = 0; k < 4; k++)
		lanes[k / 2] ^= part_of(draw, i, k, 4) << k % 2 * 32;
}

/* What is added to one is subtracted from the other, in each word. */
static void vary_so_that_sums_stay(const struct draw *draw, uint64_t *lanes,
				   uint32_t i)
{
	for (int k = 0; k < 2; k++) {
		uint64_t part = part_of(draw, i, k, 2);

		lanes[k] += part << 32 | part;
		lanes[k + 2] -= part << 32 | part;
	}
}

static void vary_so_that_xors_stay(const struct draw *draw, uint64_t *lanes,
				   uint32_t i)
{
	for (int k = 0; k < 2; k++) {
		uint64_t part = to_top(draw, part_of(draw, i, k, 2), 2);

		lanes[k] ^= part;
		lanes[k + 2] ^= part;
	}
}

static void vary_equal_halves(const struct draw *draw, uint64_t *lanes, uint32_t i)
{
	for (int k = 0; k < 2; k++)
		lanes[k] = part_of(draw, i, k, 2) * 0x100000001ULL;
}

/* A product with a zero would hide the other factor. */
static void vary_beside_zeroes(const struct draw *draw, uint64_t *lanes,
			       uint32_t i)
{
	for (int k = 0; k < 4; k++)
		lanes[k] = part_of(draw, i, k, 4) << k % 2 * 32;
}

static void vary_lanes_that_are_swapped(const struct draw *draw,
					uint64_t *lanes, uint32_t i)
{
	uint32_t number = i / 2;

	lanes[0] = lanes[2] = 0;
	lanes[1] = (i & 1 ? part_of(draw, number, 0, 2) :
			    part_of(draw, number, 1, 2) | 1ULL << 40);
	lanes[3] = (i & 1 ? part_of(draw, number, 1, 2) | 1ULL << 40 :
			    part_of(draw, number, 0, 2));
}

/* ::ffff:a.b.c.d: two words of the addresses are all there is to choose. */
static void vary_ipv4(const struct draw *draw, uint64_t *lanes, uint32_t i)
{
	for (int k = 0; k < 2; k++) {
		lanes[2 * k] = 0;
		lanes[2 * k + 1] = (lanes[2 * k + 1] ^ part_of(draw, i, k, 2))
					   << 32 |
				   0xffff0000;
	}
}

static void vary_ipv4_tops(const struct draw *draw, uint64_t *lanes, uint32_t i)
{
	for (int k = 0; k < 2; k++) {
		lanes[2 * k] = 0;
		lanes[2 * k + 1] = to_top(draw, part_of(draw, i, k, 2), 2) |
				   0xffff0000;
	}
}

static void vary_ports(const struct draw *draw, uint64_t *lanes, uint32_t i)
{
	lanes[4] ^= part_of(draw, i, 0, 2) << 32 ^ part_of(draw, i, 1, 2) << 48;
}

/* The flows of many interfaces and VLANs. */
static void vary_point(const struct draw *draw, uint64_t *lanes, uint32_t i)
{
	lanes[4] ^= part_of(draw, i, 0, 2);
	lanes[5] ^= part_of(draw, i, 1, 2);
}

static void vary_vni_and_address(const struct draw *draw, uint64_t *lanes,
				 uint32_t i)
{
	lanes[6] ^= part_of(draw, i, 0, 2) << 32;
	lanes[3] ^= to_top(draw, part_of(draw, i, 1, 2), 2);
}

static void vary_by_random_xors(const struct draw *draw, uint64_t *lanes,
				uint32_t i)
{
	for (uint32_t bit = 0; bit < draw->bits; bit++)
		for (int k = 0; i >> bit & 1 && k < LANES; k++)
			lanes[k] ^= draw->deltas[bit][k];
}

static void vary_by_random_sums(const struct draw *draw, uint64_t *lanes,
				uint32_t i)
{
	for (uint32_t bit = 0; bit < draw->bits; bit++)
		for (int k = 0; i >> bit & 1 && k < LANES; k++)
			lanes[k] += draw->deltas[bit][k];
}

/* The first three are also tried with a million flows. */
static const struct family families[] = {
	{ "folded source", vary_folded_source },
	{ "folded addresses", vary_folded_addresses },
	{ "tops of lanes", vary_tops_of_lanes },
	{ "tops of words", vary_tops_of_words },
	{ "bottoms of words", vary_bottoms_of_words },
	{ "sums stay", vary_so_that_sums_stay },
	{ "xors stay", vary_so_that_xors_stay },
	{ "equal halves", vary_equal_halves },
	{ "beside zeroes", vary_beside_zeroes },
	{ "swapped", vary_lanes_that_are_swapped },
	{ "ipv4", vary_ipv4 },
	{ "ipv4 tops", vary_ipv4_tops },
	{ "ports", vary_ports },
	{ "interface and VLAN", vary_point },
	{ "vni and address", vary_vni_and_address },
	{ "random xors", vary_by_random_xors },
	{ "random sums", vary_by_random_sums },
};

enum { N_FAMILIES = sizeof(families) / sizeof(families[0]), N_LARGE = 3 };

/* A difference of one or two octets, as an attacker may try: never none. */
static void draw_delta(uint64_t *ret_delta)
{
	size_t lane = test_random() % LANES;
	uint64_t difference[2];

	for (int k = 0; k < 2; k++) {
		difference[k] = test_random() % 255 + 1;
		difference[k] <<= test_random() % 8 * 8;
	}
	ret_delta[lane] = difference[0];
	if (difference[0] != difference[1])
		ret_delta[test_random() % LANES] ^= difference[1];
}

static struct draw draw_one(uint32_t n)
{
	struct draw draw = { .bits = (uint32_t)__builtin_ctz(n) };

	for (int k = 0; k < LANES; k++)
		draw.base[k] = test_random();
	for (int bit = 0; bit < SUBSET_BITS; bit++)
		draw_delta(draw.deltas[bit]);
	return draw;
}

static struct hash_secret draw_secret(void)
{
	uint32_t words[sizeof(struct hash_secret) / sizeof(uint32_t)];
	struct hash_secret secret;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		words[i] = (uint32_t)test_random();
	memcpy(&secret, words, sizeof(secret));
	return secret;
}

/* ---- What to expect of a random function ----------------------------------- */

/*
 * Thrown into @n_bins at random, @n flows exceed this in any bin with a
 * probability below 1e-9: Bernstein's inequality, over all bins.
 */
static double most_in_bin(double n, double n_bins)
{
	double mean = n / n_bins, log_bound = log(n_bins * 1e9);

	return mean + log_bound / 3 +
	       sqrt(log_bound * log_bound / 9 + 2 * mean * log_bound);
}

/* Why hashes are not as at random; empty if they are. */
struct fault {
	char text[128];
};

/* Bins that stay empty: the mean, and 6.5 standard deviations at most. */
static void check_empty(uint32_t n_empty, double n, double n_bins,
			struct fault *fault)
{
	double share = exp(-n / n_bins), mean = n_bins * share;
	double deviation = sqrt(n_bins * share * (1 - (1 + n / n_bins) * share));

	if (fabs(n_empty - mean) > 6.5 * deviation + 1)
		snprintf(fault->text, sizeof(fault->text),
			 "%u bins of %.0f are empty, not %.0f", n_empty, n_bins,
			 mean);
}

static void check_spread(const uint64_t *hashes, uint32_t n, uint32_t n_bins,
			 int shift, struct fault *fault)
{
	static uint32_t bins[LARGE];
	uint32_t n_empty = 0, most = 0;

	memset(bins, 0, n_bins * sizeof(*bins));
	for (uint32_t i = 0; i < n; i++) {
		uint32_t *bin = &bins[hashes[i] >> shift & (n_bins - 1)];

		if (++*bin > most)
			most = *bin;
	}
	for (uint32_t i = 0; i < n_bins; i++)
		n_empty += !bins[i];
	check_empty(n_empty, n, n_bins, fault);
	if (most > most_in_bin(n, n_bins))
		snprintf(fault->text, sizeof(fault->text),
			 "%u flows in a bin of %u, not %.0f", most, n_bins,
			 most_in_bin(n, n_bins));
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/*
 * NH promises a collision for a pair in 2^32 secrets at most: of a million flows 128
 * pairs on average, of 65,536 half of one. 16 times as many are allowed, and never less
 * than 8.
 */
static void check_distinct(uint64_t *hashes, uint32_t n, struct fault *fault)
{
	double pairs = (double)n * n / 2 / 4294967296.0;
	uint32_t n_same = 0;

	qsort(hashes, n, sizeof(*hashes), compare_u64);
	for (uint32_t i = 1; i < n; i++)
		n_same += hashes[i] == hashes[i - 1];
	if (n_same > 8 + 16 * pairs)
		snprintf(fault->text, sizeof(fault->text),
			 "%u of %u hashes are not distinct", n_same, n);
}

/* The places that the hash chooses: see store.h, table.h, flow_table.c. */
static struct fault find_fault(uint64_t *hashes, uint32_t n)
{
	struct fault fault = { "" };

	check_spread(hashes, n, n / BUCKET_SLOTS, 64 - __builtin_ctz(n) + 4,
		     &fault);
	check_spread(hashes, n, n / BUCKET_SLOTS, 32 - __builtin_ctz(n) + 4,
		     &fault);
	check_spread(hashes, n, n, 0, &fault);
	check_spread(hashes, n, n, 64 - __builtin_ctz(n), &fault);
	check_distinct(hashes, n, &fault);
	return fault;
}

/* ---- The attacks ------------------------------------------------------------- */

static struct flow_key member(const struct family *family,
			      const struct draw *draw, uint32_t i)
{
	uint64_t lanes[LANES];
	struct flow_key key;

	memcpy(lanes, draw->base, sizeof(lanes));
	family->vary(draw, lanes, i);
	memcpy(&key, lanes, sizeof(key));
	return key;
}

/* Of keys over IPv4 outside tunnels not all words are hashed: see hash_key(). */
static bool is_ipv4_family(const struct family *family)
{
	return family->vary == vary_ipv4 || family->vary == vary_ipv4_tops ||
	       family->vary == vary_ports || family->vary == vary_point;
}

static uint64_t hash_flow(const struct family *family, struct flow_key *key,
			  const struct hash_secret *secret)
{
	if (!is_ipv4_family(family))
		return hash_all_words(key, secret);
	key->flags &= ~KEY_IPV6;
	key->tunnel = TUNNEL_NONE;
	return hash_key(key, secret);
}

/* Of a tunnel's addresses: 32 bits in the flow's key, and 32 bits to check. */
static uint64_t hash_tunnel(const struct family *family, struct flow_key *key,
			    const struct hash_secret *secret)
{
	(void)family;
	return (uint64_t)hash_addrs(key, secret->outer) << 32 |
	       hash_addrs(key, secret->outer_check);
}

typedef uint64_t (*hash_fn)(const struct family *family, struct flow_key *key,
			    const struct hash_secret *secret);

static struct fault attack_once(const struct family *family, hash_fn hash,
				uint32_t n)
{
	static uint64_t hashes[LARGE];
	struct hash_secret secret = draw_secret();
	struct draw draw = draw_one(n);

	for (uint32_t i = 0; i < n; i++) {
		struct flow_key key = member(family, &draw, i);

		hashes[i] = hash(family, &key, &secret);
	}
	return find_fault(hashes, n);
}

/*
 * The flows of a family differ in few ways, so a secret for which two of them collide
 * has many that do: one attack in some thousands finds such a secret. A hash that can
 * be attacked fails with most secrets, so two of three attacks have to succeed.
 */
static void attack(const struct family *family, hash_fn hash, uint32_t n)
{
	struct fault first = attack_once(family, hash, n);

	for (int again = 0; first.text[0] && again < 2; again++) {
		struct fault other = attack_once(family, hash, n);

		if (other.text[0])
			fail_msg("%s, %u flows: %s, then %s", family->name, n,
				 first.text, other.text);
	}
}

TEST(flows_are_spread_as_at_random)
{
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < N_FAMILIES; i++) {
			attack(&families[i], hash_flow, SMALL);
			attack(&families[i], hash_flow, MEDIUM);
		}
	}
	for (int i = 0; i < N_LARGE; i++)
		attack(&families[i], hash_flow, LARGE);
}

TEST(tunnels_are_told_apart)
{
	for (int i = 0; i < N_FAMILIES; i++) {
		if (families[i].vary == vary_ports ||
		    families[i].vary == vary_point ||
		    families[i].vary == vary_vni_and_address ||
		    families[i].vary == vary_by_random_xors ||
		    families[i].vary == vary_by_random_sums)
			continue; /* not in the addresses alone */
		attack(&families[i], hash_tunnel, MEDIUM);
	}
}

/* Where one of a tunnel's hashes is the same for two, the other is not. */
TEST(hashes_of_tunnels_are_independent)
{
	struct hash_secret secret = draw_secret();

	for (int i = 0; i < SMALL; i++) {
		struct hash_secret other = draw_secret();
		struct draw draw = draw_one(SMALL);
		struct flow_key key;
		uint32_t before;

		memcpy(&key, draw.base, sizeof(key));
		before = hash_addrs(&key, secret.outer);
		memcpy(secret.outer_check, other.outer_check,
		       sizeof(secret.outer_check));
		assert_int_equal(hash_addrs(&key, secret.outer), before);
		assert_int_not_equal(hash_addrs(&key, secret.outer_check),
				     before);
	}
}

/* ---- What hashes depend on ---------------------------------------------------- */

static void assert_hash_depends_on(const struct flow_key *key, size_t word)
{
	uint64_t hash = hash_key(key, &host_secret);

	for (size_t bit = 0; bit < 32; bit++) {
		struct flow_key other = *key;

		((uint32_t *)&other)[word] ^= 1U << bit;
		assert_int_not_equal(hash_key(&other, &host_secret), hash);
	}
}

/* Others than these are the same in each key of its kind. */
TEST(hash_depends_on_every_bit_that_differs)
{
	static const size_t ipv4_words[] = { 3, 7, 8, 9, 10, 11 };
	const struct flow_key ipv4 = { .proto = 6 },
			      ipv6 = { .proto = 6, .flags = KEY_IPV6 },
			      tunnelled = { .proto = 6, .tunnel = TUNNEL_VXLAN };

	for (size_t i = 0; i < sizeof(ipv4_words) / sizeof(ipv4_words[0]); i++)
		assert_hash_depends_on(&ipv4, ipv4_words[i]);
	for (size_t word = 0; word < HASH_FLOW_WORDS; word++) {
		assert_hash_depends_on(&tunnelled, word);
		if (word < 12)
			assert_hash_depends_on(&ipv6, word);
	}
}
