// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The maps and programs of a context. */
#include "lib_test.h"
#include "lib_witness.h"
#include "engine/store.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>

static const struct rate all_packets;

static const struct netobs_opts few_flows = { .max_flows = 1000 };
static const struct store_options small = { .opts = &few_flows };

static void open_quietly(struct store *store, struct log *silent)
{
	*silent = (struct log){ 0 };
	assert_int_equal(store_open(store, &small, silent), 0);
}

TEST(store_is_sized_for_this_machine)
{
	struct store store;
	struct log silent;

	open_quietly(&store, &silent);
	assert_int_equal(store.n_cpus,
			 libbpf_num_possible_cpus() * (int)store.lanes);
	assert_in_range(store.l1_buckets, 64, 320);
	/* Over both generations, whatever the number of CPUs. */
	assert_true(GENERATIONS * store.l1_buckets * sizeof(struct flow_bucket) <
		    3 << 19);
	/* What an idle host has, on one with few CPUs. */
	if (store.n_cpus <= 4)
		assert_in_range(store_bytes(&store), 1 << 20, 16 << 20);
	store_close(&store);
}

/* ---- Memory on machines with more CPUs ------------------------------------------------ */

static int pretended_cpus;

int __real_libbpf_num_possible_cpus(void);
int __wrap_libbpf_num_possible_cpus(void);

int __wrap_libbpf_num_possible_cpus(void)
{
	return pretended_cpus ?: __real_libbpf_num_possible_cpus();
}

static uint64_t read_number(FILE *file, const char *format)
{
	unsigned long long number = 0;
	char line[128];

	rewind(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, format, &number) == 1)
			break;
	return number;
}

/* What the kernel says that a map takes; 0: it is none. */
static uint64_t map_memory(const char *fd)
{
	enum { BUCKET_BYTES = 16 };
	uint64_t type, entries, value, memory;
	char path[300];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%s", fd);
	file = fopen(path, "re");
	if (!file)
		return 0;
	type = read_number(file, "map_type: %llu");
	entries = read_number(file, "max_entries: %llu");
	value = read_number(file, "value_size: %llu");
	memory = read_number(file, "memlock: %llu");
	/* COMPAT(<6.4): of a hash table as if it were full, which these are not. */
	if (type == BPF_MAP_TYPE_HASH && memory >= entries * value)
		memory = entries * BUCKET_BYTES;
	fclose(file);
	return type ? memory : 0;
}

static uint64_t memory_of_maps(void)
{
	DIR *dir = opendir("/proc/self/fdinfo");
	const struct dirent *entry;
	uint64_t sum = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		sum += map_memory(entry->d_name);
	closedir(dir);
	return sum;
}

/* As the table in docs/performance.md says, and as max_memory is compared with. */
TEST(store_takes_what_is_documented)
{
	static const struct {
		int cpus;
		uint64_t kib;
	} documented[] = {
		{ 2, 11162 },  { 8, 26010 },   { 16, 45875 },
		{ 64, 98304 }, { 128, 90112 },
	};
	const struct netobs_opts opts = { .max_flows = 1 << 20 };
	const struct store_options usual = { .opts = &opts };

	for (size_t i = 0; i < ARRAY_SIZE(documented); i++) {
		const uint64_t expected = documented[i].kib << 10;
		const uint64_t before = memory_of_maps();
		const struct log silent = { 0 };
		struct store store;
		uint64_t real;

		pretended_cpus = documented[i].cpus;
		assert_int_equal(store_open(&store, &usual, &silent), 0);
		pretended_cpus = 0;
		real = memory_of_maps() - before;
		assert_in_range(real, expected * 95 / 100, expected * 105 / 100);
		/* Without the kernel's overhead of maps. */
		assert_in_range(store_bytes(&store), expected * 85 / 100,
				expected * 105 / 100);
		store_close(&store);
	}
}

TEST(store_sums_counters_of_all_cpus)
{
	struct counters sum;
	struct store store;
	struct log silent;

	open_quietly(&store, &silent);
	for (uint32_t cpu = 0; cpu < store.n_cpus; cpu++) {
		struct counters *counters = store.cpus[cpu].counters;

		counters[0].seen.packets = cpu + 1;
		counters[0].lost[LOST_MAX - 1].bytes = 10 * (cpu + 1);
		counters[1].unparsed[UNPARSED_ARP].packets = 7;
	}
	store_read_counters(&store, 0, &sum);
	assert_int_equal(sum.seen.packets, store.n_cpus * (store.n_cpus + 1) / 2);
	assert_int_equal(sum.lost[LOST_MAX - 1].bytes, sum.seen.packets * 10);
	assert_int_equal(sum.unparsed[UNPARSED_ARP].packets, 0);
	store_read_counters(&store, 1, &sum);
	assert_int_equal(sum.seen.packets, 0);
	assert_int_equal(sum.unparsed[UNPARSED_ARP].packets, 7 * store.n_cpus);
	store_close(&store);
}

TEST(programs_of_other_directions_are_not_loaded)
{
	const struct {
		enum netobs_direction direction;
		bool has[2];
	} cases[] = {
		{ NETOBS_BOTH, { true, true } },
		{ NETOBS_INGRESS, { true, false } },
		{ NETOBS_EGRESS, { false, true } },
	};
	char error[FILTER_ERROR_MAX];
	struct filter *filters[2] = { NULL };
	struct log silent = { 0 };

	assert_int_equal(filter_new("udp", &filters[1], &error), 0);
	for (size_t i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		const struct filter *filter = filters[i % 2];
		const struct netobs_opts opts = {
			.max_flows = 1000, .direction = cases[i / 2].direction
		};
		const struct store_options options = { .opts = &opts,
						       .filter = filter };
		struct programs programs;
		struct store store;

		assert_int_equal(store_open(&store, &options, &silent), 0);
		assert_int_equal(store_load_programs(&store, filter, &all_packets,
						     0, LINK_ETHERNET, &programs),
				 0);
		for (int d = INGRESS; d <= EGRESS; d++)
			assert_int_equal(programs.fds[d] >= 0,
					 cases[i / 2].has[d]);
		programs_close(&programs);
		store_close(&store);
	}
	filter_free(filters[1]);
}

TEST(store_that_cannot_be_made_says_why)
{
	const struct netobs_opts opts = { .max_flows = 1000,
					  .max_memory = 1 << 20 };
	const struct store_options tight = { .opts = &opts };
	struct witness witness = { 0 };
	struct log log = witness_log(&witness);
	struct store store;

	assert_int_equal(store_open(&store, &tight, &log), -EINVAL);
	assert_int_equal(witness.errors, 1);
	assert_true(witness_read(&witness, "max_memory"));
	store_close(&store);
}

TEST(store_does_not_reuse_its_secret)
{
	struct store a, b;
	struct log silent;

	open_quietly(&a, &silent);
	open_quietly(&b, &silent);
	assert_memory_not_equal(&a.secret, &b.secret, sizeof(a.secret));
	store_close(&a);
	store_close(&b);
}
