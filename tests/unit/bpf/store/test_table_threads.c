// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The shared table as several CPUs write to it at the same time. */
#include "host.h"
#include "lib_test.h"

#include "bpf/store/table.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

enum {
	THREADS = 4,
	BUCKETS = 8,
	COMMON = 40, /* flows that all threads have */
	OWN = 8,     /* and each for itself; all of them fill half the table */
	FLOWS = COMMON + THREADS * OWN,
	ADDS = 3, /* of each flow, by each thread */
	ROUNDS = 10000,
	BYTES = 100, /* per packet */
};

struct race {
	struct flow_bucket table[BUCKETS];
	struct flow_key keys[FLOWS];
	uint64_t hashes[FLOWS];
	int round;   /* the latest that has begun */
	int arrived; /* threads that are done with it */
};

struct racer {
	pthread_t thread;
	struct race *race;
	int number;
	uint64_t added[FLOWS];	 /* packets, in this round */
	uint64_t refused[FLOWS]; /* for which there was no room */
};

/* All bytes of the key depend on the flow's number, so that a mixture shows. */
static struct flow_key key_of(int round, int flow)
{
	struct flow_key key;

	memset(&key, 1 + flow, sizeof(key));
	key.ifindex = 1 + round;
	return key;
}

static struct flow_tally addition_of(int number, int flow)
{
	return (struct flow_tally){
		.packets = 1 + number,
		.bytes = (1 + number) * BYTES,
		.l2_bytes = (1 + number) * BYTES,
		.first_ns = 1000 + number,
		.last_ns = 2000 + number,
		.attrs.marks = 1 << flow % FLOW_MARKS | 1 << number,
		.attrs.ttl_min = 64,
		.attrs.ttl_max = 64,
	};
}

/* As in store.h. NULL: there is no room. */
static struct flow_entry *find_or_insert(struct racer *racer, int flow)
{
	struct race *race = racer->race;
	const struct flow_entry entry = {
		.key = race->keys[flow],
		.tally = { .first_ns = 1500,
			   .last_ns = 1500,
			   .attrs.ttl_min = 64,
			   .attrs.ttl_max = 64 },
	};
	uint64_t hash = race->hashes[flow];
	struct flow_bucket *first = &race->table[scale(hash >> 32, BUCKETS)];
	struct flow_bucket *second = &race->table[scale(hash, BUCKETS)];
	struct flow_entry *known = bucket_find(first, &entry.key, tag_of(hash));

	if (!known)
		known = bucket_find(second, &entry.key, tag_of(hash));
	if (known)
		return known;
	return bucket_insert(prefer_second(first, second) ? second : first,
			     &entry, tag_of(hash));
}

static void add(struct racer *racer, int flow)
{
	struct flow_entry *entry = find_or_insert(racer, flow);
	struct flow_tally part = addition_of(racer->number, flow);

	racer->added[flow] += part.packets;
	if (entry)
		shared_add(&entry->tally, &part);
	else
		racer->refused[flow] += part.packets;
}

/* First what all of them want, in one order, so that they meet; then the rest. */
static void run_round(struct racer *racer)
{
	for (int i = 0; i < ADDS; i++) {
		for (int flow = 0; flow < COMMON; flow++)
			add(racer, flow);
		for (int k = 0; k < OWN; k++)
			add(racer, COMMON + racer->number * OWN + k);
	}
}

static void *run(void *arg)
{
	struct racer *racer = arg;
	struct race *race = racer->race;

	for (int round = 1; round <= ROUNDS; round++) {
		while (__atomic_load_n(&race->round, __ATOMIC_ACQUIRE) < round)
			sched_yield();
		run_round(racer);
		__atomic_fetch_add(&race->arrived, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void start_round(struct race *race, struct racer *racers, int round)
{
	memset(race->table, 0, sizeof(race->table));
	for (int flow = 0; flow < FLOWS; flow++) {
		race->keys[flow] = key_of(round, flow);
		race->hashes[flow] = hash_key(&race->keys[flow], &host_secret);
	}
	for (int i = 0; i < THREADS; i++) {
		memset(racers[i].added, 0, sizeof(racers[i].added));
		memset(racers[i].refused, 0, sizeof(racers[i].refused));
	}
	race->arrived = 0;
	__atomic_store_n(&race->round, round, __ATOMIC_RELEASE);
	while (__atomic_load_n(&race->arrived, __ATOMIC_ACQUIRE) < THREADS)
		sched_yield();
}

/* What is in the table, by flow. */
struct found {
	uint64_t packets[FLOWS];
	uint32_t marks[FLOWS];
	uint32_t entries[FLOWS];
};

static void note_entry(const struct race *race, const struct flow_entry *entry,
		       uint32_t tag, struct found *found)
{
	const struct flow_tally *tally = &entry->tally;
	int flow = entry->key.src.bytes[0] - 1;

	assert_in_range(flow, 0, FLOWS - 1);
	assert_memory_equal(&entry->key, &race->keys[flow], sizeof(entry->key));
	/* No claim is left behind but the owner's. */
	assert_int_equal(tag, tag_of(race->hashes[flow]) << TAG_SHIFT | 1);
	assert_int_equal(tally->bytes, tally->packets * BYTES);
	assert_int_equal(tally->l2_bytes, tally->packets * BYTES);
	assert_in_range(tally->first_ns, 1000, 1500);
	assert_in_range(tally->last_ns, 1500, 2000 + THREADS);
	found->packets[flow] += tally->packets;
	found->marks[flow] |= marks_gather(tally->mark_counts);
	found->entries[flow]++;
}

static struct found look(const struct race *race)
{
	struct found found = { 0 };

	for (int i = 0; i < BUCKETS; i++)
		for (int k = 0; k < BUCKET_SLOTS; k++)
			if (race->table[i].tags[k])
				note_entry(race, &race->table[i].entries[k],
					   race->table[i].tags[k], &found);
	return found;
}

/* A thread that has entered a flow finds it ever after. */
static uint32_t most_entries(int flow)
{
	return flow < COMMON ? THREADS : 1;
}

static void check_round(const struct race *race, const struct racer *racers)
{
	struct found found = look(race);

	for (int flow = 0; flow < FLOWS; flow++) {
		uint64_t added = 0, refused = 0;
		uint32_t marks = 0;

		for (int i = 0; i < THREADS; i++) {
			added += racers[i].added[flow];
			refused += racers[i].refused[flow];
			if (racers[i].added[flow])
				marks |= addition_of(i, flow).attrs.marks;
		}
		assert_int_equal(found.packets[flow] + refused, added);
		if (!refused)
			assert_int_equal(found.marks[flow], marks);
		assert_in_range(found.entries[flow], !refused,
				most_entries(flow));
	}
}

static void nothing_is_lost_between_threads(void **state)
{
	static struct racer racers[THREADS];
	static struct race race;

	(void)state;
	for (int i = 0; i < THREADS; i++) {
		racers[i].race = &race;
		racers[i].number = i;
		assert_int_equal(pthread_create(&racers[i].thread, NULL, run,
						&racers[i]),
				 0);
	}
	for (int round = 1; round <= ROUNDS; round++) {
		start_round(&race, racers, round);
		check_round(&race, racers);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(racers[i].thread, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_lost_between_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
