// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Processes that are killed while they fold, at any instruction: what the next one finds is
 * the sum of all that the sources say was added, against a model that knows nothing of
 * folds. NETOBS_TEST_SEED repeats a run, as far as the scheduler does.
 */
#include "flows/fold.h"
#include "flows/fold_kept.h"
#include "flows/fold_recover.h"
#include "lib_test.h"
#include "base/pages.h"
#include "base/util.h"
#include "bpf/store/log.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

enum {
	FLOWS = 700,
	LOGS = 2,
	ENTRIES = LOGS, /* the source of entries that were summed up elsewhere */
	SOURCES = LOGS + 1,
	CHUNKS = 8,
	KILLS_STEPPED = 80, /* after a number of instructions, */
	KILLS_OPENING = 30, /* of the first steps of a process */
	STEPS_MAX = 3000,
	KILLS_TIMED = 80, /* after a time */
	RUN_MAX_US = 3000,
	READ = 16,
};

/* ---- Memory of several processes --------------------------------------------------- */

struct shared {
	bool is_there[CHUNKS];
	struct hash_secret secret;
	uint64_t seed;
};

static struct shared *shared;
static char *chunks[CHUNKS];
static struct fold_kept *kept;

static void *map_shared(size_t size)
{
	void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(bytes != MAP_FAILED);
	return bytes;
}

static void *open_chunk(void *ctx, uint32_t number)
{
	(void)ctx;
	assert_true(number < CHUNKS);
	return shared->is_there[number] ? chunks[number] : NULL;
}

static void *make_chunk(void *ctx, uint32_t number)
{
	(void)ctx;
	if (number >= CHUNKS)
		return NULL;
	shared->is_there[number] = true;
	return chunks[number];
}

static void close_chunk(void *ctx, void *chunk)
{
	(void)ctx;
	(void)chunk;
}

static void remove_chunk(void *ctx, uint32_t number, void *chunk)
{
	(void)ctx;
	assert_ptr_equal(chunk, chunks[number]);
	shared->is_there[number] = false;
}

static const struct fold_memory memory = {
	.open = open_chunk,
	.make = make_chunk,
	.close = close_chunk,
	.remove = remove_chunk,
};

static uint32_t count_chunks(void)
{
	uint32_t n = 0;

	for (int i = 0; i < CHUNKS; i++)
		n += shared->is_there[i];
	return n;
}

static int open_fold(struct fold *fold)
{
	fold_init(fold, &shared->secret, UINT32_MAX, 0);
	return fold_keep(fold, kept, SOURCES, &memory);
}

static int setup(void **state)
{
	const char *given = getenv("NETOBS_TEST_SEED");

	(void)state;
	shared = map_shared(sizeof(*shared));
	kept = map_shared(fold_kept_bytes(SOURCES));
	for (int i = 0; i < CHUNKS; i++)
		chunks[i] = map_shared(PAGES_HUGE);
	shared->seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
	print_message("NETOBS_TEST_SEED=%llu\n",
		      (unsigned long long)shared->seed);
	for (size_t i = 0; i < sizeof(shared->secret) / 8; i++)
		((uint64_t *)&shared->secret)[i] = 0x9e3779b97f4a7c15 * (i + 1);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (int i = 0; i < CHUNKS; i++)
		munmap(chunks[i], PAGES_HUGE);
	munmap(kept, fold_kept_bytes(SOURCES));
	munmap(shared, sizeof(*shared));
	return 0;
}

/* ---- What sources have ---------------------------------------------------------------- */

/* Splitmix64: the same for each process. */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

struct addition {
	uint32_t flow, generation;
	struct flow_entry entry;
	bool is_packet;	  /* a record of one slot */
	uint32_t n_slots; /* positions of the source that it takes */
};

/* Some flows have no short entry, and some sums outgrow theirs. */
static struct flow_key key_of(uint32_t flow)
{
	struct flow_key key = { .ifindex = 1 + flow % 3,
				.src_port = (uint16_t)flow,
				.dst_port = 443,
				.proto = 17 };

	if (flow % 4) {
		key.src.words[2] = key.dst.words[2] = 0xffff0000;
	} else {
		key.flags |= KEY_IPV6;
		key.src.words[0] = 0xb80d0120;
	}
	key.src.words[3] = flow;
	return key;
}

/* The addition number @at of a source. */
static struct addition addition_of(uint32_t source, uint64_t at)
{
	uint64_t random = mix(shared->seed ^ mix(source) ^ mix(at * 31));
	struct addition addition = {
		.flow = (uint32_t)(random % FLOWS),
		.generation = random >> 20 & 1,
	};
	struct flow_tally *tally = &addition.entry.tally;

	addition.entry.key = key_of(addition.flow);
	tally->packets = 1 + (random >> 21 & 7);
	tally->bytes = 60 * tally->packets;
	addition.is_packet = source != ENTRIES && addition.flow % 4;
	addition.n_slots = addition.is_packet || source == ENTRIES ? 1 : 2;
	if (!addition.is_packet && !(random >> 24 & 7))
		tally->bytes += random >> 32;
	tally->l2_bytes = tally->bytes + 14 * tally->packets;
	tally->first_ns = 1000000 + (random >> 40);
	tally->last_ns = tally->first_ns;
	tally->attrs.marks = 1U << (random >> 27) % 20;
	tally->attrs.ttl_min = tally->attrs.ttl_max = 64;
	return addition;
}

static void write_addition(const struct addition *addition, struct log_slot *slots)
{
	const struct flow_tally *tally = &addition->entry.tally;
	const struct packet pkt = { .key = addition->entry.key,
				    .attrs = tally->attrs };
	const struct wire_size size = { .packets = tally->packets,
					.bytes = tally->bytes,
					.l2_bytes = tally->l2_bytes };
	const struct log_macs macs = { 0 };

	if (addition->is_packet)
		log_write_packet(slots, &pkt, &size, &macs,
				 hash_key(&pkt.key, &shared->secret),
				 tally->first_ns,
				 log_generation_flag(addition->generation));
	else
		log_write_entry(&slots[0], &slots[1], &addition->entry,
				addition->generation);
}

/* ---- The process that is killed ---------------------------------------------------- */

static void fold_run(struct fold *fold, uint32_t log, uint32_t n)
{
	struct log_slot slots[128];
	uint64_t from = kept->positions[log], at = from;

	while (at < from + n && at - from + 2 <= ARRAY_SIZE(slots)) {
		struct addition addition = addition_of(log, at);

		write_addition(&addition, &slots[at - from]);
		at += addition.n_slots;
	}
	fold_add_from(fold, log, from);
	fold_add(fold, slots, at - from);
}

static void fold_one(struct fold *fold)
{
	uint64_t at = kept->positions[ENTRIES];
	struct addition addition = addition_of(ENTRIES, at);

	fold_add_from(fold, ENTRIES, at);
	if (fold_add_entry(fold, addition.generation, &addition.entry))
		abort();
}

enum stop { STOP_TIMED, STOP_STEPPED, STOP_STEPPED_OPENING };

static void stop(void)
{
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
}

/* With memory of its own, as another process has it. */
static _Noreturn void run_child(uint64_t seed, enum stop how)
{
	struct fold fold;

	if (how == STOP_STEPPED_OPENING)
		stop();
	if (open_fold(&fold))
		abort();
	if (how == STOP_STEPPED)
		stop();
	for (;; seed = mix(seed)) {
		if (seed % 8 < 2)
			fold_one(&fold);
		else
			fold_run(&fold, seed % 8 & 1, 1 + (seed >> 8) % 60);
	}
}

static void step_child(pid_t pid, uint64_t steps)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	for (uint64_t i = 0; i < steps; i++) {
		assert_true(WIFSTOPPED(status));
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, 0, 0), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
}

static void kill_one(uint64_t seed, enum stop how)
{
	struct timespec pause = { .tv_nsec = (long)(seed % RUN_MAX_US) * 1000 };
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		run_child(seed, how);
	if (how == STOP_TIMED)
		nanosleep(&pause, NULL);
	else
		step_child(pid, seed % STEPS_MAX);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* ---- The model --------------------------------------------------------------------- */

struct sum {
	uint64_t packets, bytes, l2_bytes, first_ns, last_ns;
	uint32_t marks;
};

struct model {
	uint64_t positions[SOURCES];
	struct sum sums[GENERATIONS][FLOWS];
};

static void add_sum(struct sum *sum, const struct flow_tally *tally)
{
	if (!sum->packets || tally->first_ns < sum->first_ns)
		sum->first_ns = tally->first_ns;
	sum->packets += tally->packets;
	sum->bytes += tally->bytes;
	sum->l2_bytes += tally->l2_bytes;
	sum->last_ns = max_u64(sum->last_ns, tally->last_ns);
	sum->marks |= tally->attrs.marks;
}

/* Up to where the sources were added. */
static void model_go_on(struct model *model)
{
	for (uint32_t source = 0; source < SOURCES; source++) {
		uint64_t *at = &model->positions[source];
		uint64_t end = kept->positions[source];

		assert_true(*at <= end);
		while (*at < end) {
			struct addition addition = addition_of(source, *at);

			add_sum(&model->sums[addition.generation][addition.flow],
				&addition.entry.tally);
			*at += addition.n_slots;
		}
		assert_int_equal(*at, end);
	}
}

static void assert_is_model(const struct fold *fold, const struct model *model,
			    uint32_t generation)
{
	const struct flow_entry *entries[READ];
	struct sum *sums = calloc(FLOWS, sizeof(*sums));
	struct flow_entry room[READ];
	uint32_t from = 0, n;

	while ((n = fold_read(fold, generation, from, room, entries, READ))) {
		for (uint32_t i = 0; i < n; i++)
			add_sum(&sums[entries[i]->key.src.words[3]],
				&entries[i]->tally);
		from += n;
	}
	assert_memory_equal(sums, model->sums[generation], FLOWS * sizeof(*sums));
	free(sums);
}

/* Two entries of a flow at most. */
static void assert_are_models(const struct fold *fold, const struct model *model)
{
	for (uint32_t g = 0; g < GENERATIONS; g++) {
		assert_is_model(fold, model, g);
		assert_true(fold_count(fold, g) <= 2 * FLOWS);
	}
}

/* As a drain does, in a process that lives. */
static void empty_generation(struct fold *fold, struct model *model,
			     uint32_t generation)
{
	fold_reset(fold, generation);
	memset(model->sums[generation], 0, sizeof(model->sums[generation]));
}

static void run_kills(struct model *model, int n, enum stop how)
{
	for (int i = 0; i < n; i++) {
		uint64_t seed = mix(shared->seed + (uint64_t)i * 3 + how);
		struct fold fold;

		kill_one(seed, how);
		model_go_on(model);
		assert_int_equal(open_fold(&fold), 0);
		assert_are_models(&fold, model);
		if (!(seed >> 60))
			empty_generation(&fold, model, seed >> 59 & 1);
		fold_done(&fold);
	}
	assert_true(model->positions[0]);
}

/* ---- Tests --------------------------------------------------------------------------- */

static struct model model;

static void kills_after_a_time_lose_and_double_nothing(void **state)
{
	(void)state;
	run_kills(&model, KILLS_TIMED, STOP_TIMED);
}

static void kills_at_any_instruction_lose_and_double_nothing(void **state)
{
	(void)state;
	run_kills(&model, KILLS_STEPPED, STOP_STEPPED);
	run_kills(&model, KILLS_OPENING, STOP_STEPPED_OPENING);
}

static void add_all(struct fold *fold)
{
	for (int i = 0; i < 1000; i++)
		fold_one(fold);
}

/* Whatever cannot be read is emptied, and its chunks are given back. */
static void damage_is_found(void **state)
{
	struct fold fold;

	(void)state;
	for (int i = 0; i < 5; i++) {
		assert_int_equal(open_fold(&fold), 0);
		add_all(&fold);
		fold_done(&fold);
		assert_true(count_chunks());
		switch (i) {
		case 0:
			kept->layout++;
			break;
		case 1:
			kept->lists[0][0].n_entries = UINT32_MAX;
			break;
		case 2:
			kept->lists[1][0].chunks[0] = FOLD_CHUNKS_MAX;
			break;
		case 3:
			kept->journal.position = UINT64_MAX;
			kept->journal.generation = GENERATIONS;
			break;
		default:
			shared->is_there[kept->lists[0][1].chunks[0]] = false;
		}
		assert_int_equal(open_fold(&fold), -ESTALE);
		assert_int_equal(fold_count(&fold, 0) + fold_count(&fold, 1), 0);
		assert_int_equal(count_chunks(), 0);
		add_all(&fold);
		fold_reset(&fold, 0);
		fold_reset(&fold, 1);
		fold_done(&fold);
	}
	assert_int_equal(count_chunks(), 0);
}

/* What a process had taken out is not read again, also if it was killed in the middle. */
static void entries_that_were_read_are_gone(void **state)
{
	struct fold fold;
	uint32_t n;

	(void)state;
	assert_int_equal(open_fold(&fold), 0);
	add_all(&fold);
	n = fold_count(&fold, 0);
	assert_true(n > 10);
	fold_release(&fold, 0, 0);
	fold_note_read(&fold, 0, 10);
	fold_done(&fold);
	assert_int_equal(open_fold(&fold), 0);
	assert_int_equal(fold_first(&fold, 0), 10);
	assert_int_equal(fold_count(&fold, 0), n);
	fold_note_read(&fold, 0, n);
	fold_done(&fold);
	assert_int_equal(open_fold(&fold), 0);
	assert_int_equal(fold_first(&fold, 0), 0);
	assert_int_equal(fold_count(&fold, 0), 0);
	assert_true(fold_count(&fold, 1));
	fold_reset(&fold, 1);
	fold_done(&fold);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kills_after_a_time_lose_and_double_nothing),
		cmocka_unit_test(kills_at_any_instruction_lose_and_double_nothing),
		cmocka_unit_test(damage_is_found),
		cmocka_unit_test(entries_that_were_read_are_gone),
	};

	return cmocka_run_group_tests_name("fold_kept", tests, setup, teardown);
}
