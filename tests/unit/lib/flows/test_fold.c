// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Records of logs against a model, and memory that ends. */
#include "flows/fold.h"
#include "lib_test.h"
#include "base/pages.h"
#include "base/hash.h"
#include "bpf/store/log.h"

#include <sys/mman.h>

enum {
	FLOWS = 3000, /* of the model */
	RECORDS = 40000,
	MANY = 3 * 16384 + 5, /* more than a chunk of each form */
	READ = 16,
};

/* ---- Memory that is refused ----------------------------------------------------- */

static int calls_left = -1; /* -1: no call is refused */

static bool is_refused(void)
{
	return calls_left >= 0 && calls_left-- == 0;
}

void *__real_mmap(void *at, size_t size, int prot, int flags, int fd, off_t from);
void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t from);
void *__real_reallocarray(void *bytes, size_t n, size_t size);
void *__wrap_reallocarray(void *bytes, size_t n, size_t size);

void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t from)
{
	if (!is_refused())
		return __real_mmap(at, size, prot, flags, fd, from);
	errno = ENOMEM;
	return MAP_FAILED;
}

void *__wrap_reallocarray(void *bytes, size_t n, size_t size)
{
	return is_refused() ? NULL : __real_reallocarray(bytes, n, size);
}

/* ---- Records ------------------------------------------------------------------- */

/* Flow @n: every third one is IPv6, and every fifth one leaves. */
static struct flow_key key_of(uint32_t n)
{
	struct flow_key key = { .ifindex = 1 + n % 7,
				.src_port = (uint16_t)n,
				.dst_port = 443,
				.netns = (uint16_t)(n % 2),
				.proto = 6,
				.flags = n % 5 ? 0 : KEY_EGRESS };

	if (n % 3) {
		key.src.words[2] = key.dst.words[2] = 0xffff0000;
	} else {
		key.flags |= KEY_IPV6;
		key.src.words[0] = 0xb80d0120;
	}
	key.src.words[3] = n;
	return key;
}

/* Packet @i of a flow. */
static struct flow_entry entry_of(const struct flow_key *key, uint32_t i)
{
	return (struct flow_entry){
		.key = *key,
		.tally = { .packets = 1 + i % 3,
			   .bytes = 40 + i % 100,
			   .l2_bytes = 54 + i % 100,
			   .first_ns = 1000 + i,
			   .last_ns = 1000 + i,
			   .attrs = { .marks = 1U << i % 19,
				      .dscp = i % 64,
				      .ttl_min = (uint8_t)(64 - i % 3),
				      .ttl_max = (uint8_t)(64 - i % 3),
				      .has_mac = true },
			   .macs = { 2, [11] = (uint8_t)i } },
	};
}

static struct hash_secret secret;

/* Writes packet @i of flow @n; returns the slots that it takes. */
static size_t write_record(struct log_slot *slots, uint32_t n, uint32_t i,
			   uint32_t generation)
{
	struct flow_key key = key_of(n);
	struct flow_entry entry = entry_of(&key, i);
	const struct flow_tally *tally = &entry.tally;
	const struct packet pkt = { .key = key, .attrs = tally->attrs };
	const struct wire_size size = { .packets = tally->packets,
					.bytes = tally->bytes,
					.l2_bytes = tally->l2_bytes };
	struct log_macs macs = { 0 };

	if (key.flags & KEY_IPV6) {
		log_write_entry(&slots[0], &slots[1], &entry, generation);
		return 2;
	}
	memcpy(&macs.low, tally->macs, 4);
	memcpy(&macs.high, tally->macs + 4, 8);
	log_write_packet(slots, &pkt, &size, &macs, hash_key(&key, &secret),
			 tally->first_ns,
			 (generation ? LOG_GENERATION : 0) | LOG_HAS_MAC);
	return 1;
}

static void open_fold(struct fold *fold, uint64_t max_bytes)
{
	secret_fill(&secret, sizeof(secret));
	fold_init(fold, &secret, UINT32_MAX, max_bytes);
}

/* One record of each flow from @from on. */
static void add_flows(struct fold *fold, uint32_t generation, uint32_t from,
		      uint32_t to)
{
	struct log_slot slots[64];

	while (from < to) {
		size_t n = 0;

		for (; from < to && n + 2 <= ARRAY_SIZE(slots); from++)
			n += write_record(&slots[n], from, 1, generation);
		assert_int_equal(fold_add(fold, slots, n), n);
	}
}

/* Calls @visit with each entry; returns how many there are. */
static uint32_t visit_entries(const struct fold *fold, uint32_t generation,
			      void (*visit)(void *ctx,
					    const struct flow_entry *entry),
			      void *ctx)
{
	const struct flow_entry *entries[READ];
	struct flow_entry room[READ];
	uint32_t from = 0, n;

	while ((n = fold_read(fold, generation, from, room, entries, READ))) {
		for (uint32_t i = 0; i < n; i++)
			visit(ctx, entries[i]);
		from += n;
	}
	return from;
}

static void add_packets(void *ctx, const struct flow_entry *entry)
{
	uint64_t *packets = ctx;

	*packets += entry->tally.packets;
}

static uint64_t count_packets(const struct fold *fold, uint32_t generation)
{
	uint64_t packets = 0;

	visit_entries(fold, generation, add_packets, &packets);
	return packets;
}

static uint32_t count_entries(const struct fold *fold, uint32_t generation)
{
	uint64_t packets = 0;
	uint32_t n = visit_entries(fold, generation, add_packets, &packets);

	assert_int_equal(n, fold_count(fold, generation));
	return n;
}

/* ---- Tests --------------------------------------------------------------------- */

struct model {
	struct flow_entry entries[GENERATIONS][FLOWS];
};

static void model_add(struct flow_entry *sum, const struct flow_entry *entry)
{
	struct flow_tally *to = &sum->tally;
	const struct flow_tally *from = &entry->tally;

	if (!to->packets) {
		*sum = *entry;
		return;
	}
	to->packets += from->packets;
	to->bytes += from->bytes;
	to->l2_bytes += from->l2_bytes;
	to->attrs.marks |= from->attrs.marks;
	to->attrs.ttl_min =
		(uint8_t)min_u64(to->attrs.ttl_min, from->attrs.ttl_min);
	to->attrs.ttl_max =
		(uint8_t)max_u64(to->attrs.ttl_max, from->attrs.ttl_max);
	if (from->last_ns >= to->last_ns)
		to->attrs.dscp = from->attrs.dscp;
	to->first_ns = min_u64(to->first_ns, from->first_ns);
	to->last_ns = max_u64(to->last_ns, from->last_ns);
}

/* Hardware addresses are the first ones that came, in the order of calls. */
static void match_with_model(void *ctx, const struct flow_entry *entry)
{
	struct flow_entry *model = ctx;
	struct flow_entry got = *entry;

	model += got.key.src.words[3];
	assert_int_equal(got.tally.macs[0], 2);
	memcpy(got.tally.macs, model->tally.macs, sizeof(got.tally.macs));
	assert_memory_equal(&got, model, sizeof(got));
	model->tally.packets = 0;
}

static void assert_is_model(const struct fold *fold, struct model *model,
			    uint32_t generation)
{
	visit_entries(fold, generation, match_with_model,
		      model->entries[generation]);
	for (uint32_t i = 0; i < FLOWS; i++)
		assert_int_equal(model->entries[generation][i].tally.packets, 0);
}

TEST(fold_is_the_sum_of_random_records)
{
	struct model *model = calloc(1, sizeof(*model));
	struct log_slot slots[2 * 100];
	struct fold fold;
	uint32_t i = 0;

	srand(1);
	open_fold(&fold, 0);
	while (i < RECORDS) {
		size_t n = 0, records = 1 + (size_t)rand() % 100;

		for (; records; records--, i++) {
			uint32_t flow = (uint32_t)rand() % FLOWS;
			uint32_t time = (uint32_t)rand() % RECORDS;
			uint32_t generation = i * 3 / 2 > RECORDS;
			struct flow_key key = key_of(flow);
			struct flow_entry entry = entry_of(&key, time);

			model_add(&model->entries[generation][flow], &entry);
			if (rand() % 4)
				n += write_record(&slots[n], flow, time,
						  generation);
			else
				assert_int_equal(fold_add_entry(&fold, generation,
								&entry),
						 0);
		}
		assert_int_equal(fold_add(&fold, slots, n), n);
	}
	assert_is_model(&fold, model, 0);
	assert_is_model(&fold, model, 1);
	fold_done(&fold);
	free(model);
}

/* A sum of several entries: the short one, and the one behind it. */
static void add_to_sums(void *ctx, const struct flow_entry *entry)
{
	model_add(&((struct flow_entry *)ctx)[entry->key.src.words[3]], entry);
}

static uint64_t random_bits(int bits)
{
	return ((uint64_t)rand() << 31 ^ (uint64_t)rand()) >> (62 - bits);
}

/* Of a size that few, or some, or most entries cannot say in their short form. */
static struct flow_tally random_tally(void)
{
	uint64_t bytes = random_bits(1 + rand() % 33);
	uint64_t first_ns = random_bits(41);

	return (struct flow_tally){
		.packets = 1 + random_bits(1 + rand() % 33),
		.bytes = bytes,
		.l2_bytes = rand() % 8 ? bytes + random_bits(1 + rand() % 25) : 0,
		.first_ns = first_ns,
		.last_ns = first_ns + random_bits(1 + rand() % 41),
		.attrs = { .marks = (uint32_t)random_bits(20),
			   .dscp = (uint8_t)random_bits(6),
			   .ttl_min = 64,
			   .ttl_max = 64 },
	};
}

TEST(sums_that_are_not_short_are_exact)
{
	enum { KEYS = 200, ENTRIES = 4000 };

	struct flow_entry want[KEYS] = { 0 }, got[KEYS] = { 0 };
	struct fold fold;

	srand(2);
	open_fold(&fold, 0);
	for (int i = 0; i < ENTRIES; i++) {
		uint32_t flow = (uint32_t)rand() % KEYS;
		struct flow_entry entry = { .key = key_of(flow),
					    .tally = random_tally() };

		model_add(&want[flow], &entry);
		assert_int_equal(fold_add_entry(&fold, 0, &entry), 0);
	}
	/* A short one and a long one of each key at most. */
	assert_true(visit_entries(&fold, 0, add_to_sums, got) <= 2 * KEYS);
	for (int i = 0; i < KEYS; i++) {
		/* Of the packets that came last at the same time, any may count. */
		got[i].tally.attrs.dscp = want[i].tally.attrs.dscp;
		assert_memory_equal(&got[i], &want[i], sizeof(want[i]));
	}
	fold_done(&fold);
}

TEST(half_a_record_is_left)
{
	struct log_slot slots[4];
	struct fold fold;
	size_t n;

	open_fold(&fold, 0);
	n = write_record(slots, 1, 1, 0);
	n += write_record(&slots[n], 3, 1, 0);
	assert_int_equal(n, 3);
	assert_int_equal(fold_add(&fold, slots, 0), 0);
	assert_int_equal(fold_add(&fold, slots, 2), 1);
	assert_int_equal(fold_add(&fold, slots + 1, 1), 0);
	assert_int_equal(fold_add(&fold, slots + 1, 2), 2);
	assert_int_equal(count_entries(&fold, 0), 2);
	fold_done(&fold);
}

TEST(flows_whose_hashes_are_equal_stay_apart)
{
	static const uint32_t hashes[] = { 0, 0x80000000, UINT32_MAX };
	struct fold fold;

	for (size_t h = 0; h < ARRAY_SIZE(hashes); h++) {
		open_fold(&fold, 0);
		for (uint32_t i = 0; i < 2 * FLOWS; i++) {
			struct log_slot slots[2];

			if (write_record(slots, 1 + i % FLOWS * 3, 1, 0) > 1)
				continue;
			slots->hash = hashes[h];
			assert_int_equal(fold_add(&fold, slots, 1), 1);
		}
		assert_int_equal(count_entries(&fold, 0), FLOWS);
		assert_int_equal(count_packets(&fold, 0), 2ULL * FLOWS * 2);
		fold_done(&fold);
	}
}

TEST(generations_share_memory_and_give_it_back)
{
	struct fold fold;
	uint64_t bytes;

	open_fold(&fold, 0);
	add_flows(&fold, 0, 0, MANY);
	assert_int_equal(count_entries(&fold, 0), MANY);
	bytes = fold_bytes(&fold);
	/* While the old one is read, the new one takes its released chunks. */
	for (uint32_t from = 0; from < MANY; from++) {
		const struct flow_entry *entry;
		struct flow_entry room;
		uint32_t flow;

		assert_int_equal(fold_read(&fold, 0, from, &room, &entry, 1), 1);
		flow = entry->key.src.words[3];
		fold_release(&fold, 0, from + 1);
		add_flows(&fold, 1, flow, flow + 1);
	}
	fold_reset(&fold, 0);
	assert_int_equal(count_entries(&fold, 0), 0);
	assert_int_equal(count_entries(&fold, 1), MANY);
	assert_int_equal(count_packets(&fold, 1), 2ULL * MANY);
	assert_true(fold_bytes(&fold) <=
		    bytes + FOLD_FORMS * 2ULL * PAGES_HUGE + 4096);
	/* Then two quiet intervals. */
	fold_reset(&fold, 1);
	fold_reset(&fold, 0);
	fold_reset(&fold, 1);
	assert_int_equal(fold_bytes(&fold), 0);
	fold_done(&fold);
}

/* The bytes of flows below @end, of which every third one is long. */
static uint64_t bytes_of_flows(uint32_t end)
{
	uint32_t n_long = (end + 2) / 3;

	return (uint64_t)n_long * FOLD_LONG_BYTES +
	       (uint64_t)(end - n_long) * FOLD_SHORT_BYTES;
}

TEST(cap_refuses_new_flows_alone)
{
	struct log_slot slots[64];
	struct fold fold;
	size_t n = 0, used;

	open_fold(&fold, 2 * bytes_of_flows(FLOWS / 2));
	add_flows(&fold, 0, 0, FLOWS / 2);
	add_flows(&fold, 1, 0, FLOWS / 2);
	add_flows(&fold, 0, 0, FLOWS / 2); /* they are there */
	for (uint32_t i = 0; i < 10; i++)
		n += write_record(&slots[n], i, 1, 0);
	used = n;
	n += write_record(&slots[n], FLOWS, 1, 0);
	n += write_record(&slots[n], 1, 1, 0);
	assert_int_equal(fold_add(&fold, slots, n), used);
	assert_int_equal(count_entries(&fold, 0), FLOWS / 2);
	fold_reset(&fold, 1);
	assert_int_equal(fold_add(&fold, slots + used, n - used), n - used);
	fold_done(&fold);
}

TEST(each_generation_has_a_cap_of_its_own)
{
	struct flow_entry entry = { .key.ifindex = 1 };
	struct fold fold;

	secret_fill(&secret, sizeof(secret));
	fold_init(&fold, &secret, 100, 0);
	for (uint32_t i = 0; i < 100; i++)
		for (uint32_t g = 0; g < GENERATIONS; g++) {
			assert_int_equal(fold_is_filling(&fold, g, UINT64_MAX),
					 i >= 75);
			entry.key.src.words[3] = i;
			assert_int_equal(fold_add_entry(&fold, g, &entry), 0);
		}
	entry.key.src.words[3] = 100;
	assert_int_equal(fold_add_entry(&fold, 0, &entry), -ENOSPC);
	entry.key.src.words[3] = 99;
	assert_int_equal(fold_add_entry(&fold, 0, &entry), 0);
	fold_reset(&fold, 0);
	assert_false(fold_is_filling(&fold, 0, UINT64_MAX));
	assert_true(fold_is_filling(&fold, 1, UINT64_MAX));
	fold_done(&fold);
}

TEST(drain_is_wanted_while_there_is_room_for_what_comes)
{
	enum { CAP = 10000, COMING = 1000 };
	struct flow_entry entry = { .key.ifindex = 1 };
	struct fold fold;

	secret_fill(&secret, sizeof(secret));
	fold_init(&fold, &secret, CAP, 0);
	for (uint32_t i = 0; i < CAP - COMING; i++) {
		assert_false(fold_is_filling(&fold, 0, COMING));
		assert_int_equal(fold_is_filling(&fold, 0, CAP),
				 i >= CAP - CAP / 4);
		entry.key.src.words[3] = i;
		assert_int_equal(fold_add_entry(&fold, 0, &entry), 0);
	}
	assert_true(fold_is_filling(&fold, 0, COMING));
	fold_done(&fold);
}

/* Records that come late, of a generation that is read, must not be added to it. */
TEST(what_is_read_takes_no_more)
{
	struct flow_entry entry = { .key.ifindex = 1 };
	struct log_slot slot[2];
	struct fold fold;

	open_fold(&fold, 0);
	add_flows(&fold, 0, 0, 100);
	fold_release(&fold, 0, 50);
	write_record(slot, 7, 1, 0);
	assert_int_equal(fold_add(&fold, slot, 1), 0);
	assert_int_equal(fold_add_entry(&fold, 0, &entry), -ENOSPC);
	assert_int_equal(fold_count(&fold, 0), 100);
	fold_reset(&fold, 0);
	assert_int_equal(fold_add_entry(&fold, 0, &entry), 0);
	fold_done(&fold);
}

/* What is refused comes again, as it would from a log. */
TEST(refused_memory_loses_no_record)
{
	enum { SLOTS = 2 * MANY };

	struct log_slot *slots = malloc(SLOTS * sizeof(*slots));
	size_t n = 0;

	secret_fill(&secret, sizeof(secret));
	for (uint32_t i = 0; i < MANY; i++)
		n += write_record(&slots[n], i, 1, i & 1);
	for (int refused = 0;; refused++) {
		struct fold fold;
		size_t used = 0;

		fold_init(&fold, &secret, UINT32_MAX, 0);
		calls_left = refused;
		while (used < n)
			used += fold_add(&fold, slots + used, n - used);
		assert_int_equal(count_entries(&fold, 0), (MANY + 1) / 2);
		assert_int_equal(count_entries(&fold, 1), MANY / 2);
		assert_int_equal(count_packets(&fold, 0) + count_packets(&fold, 1),
				 2ULL * MANY);
		fold_done(&fold);
		if (calls_left >= 0)
			break;
	}
	calls_left = -1;
	free(slots);
}
