// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The memory of the table of connections follows the connections, and what is beyond it is counted. */
#include "lib_context.h"
#include "lib_test.h"

#include "base/clock_ms.h"

#include <netobs/connection.h>
#include <netobs/netobs.h>

#include <bpf/bpf.h>
#include <sys/socket.h>

enum {
	INTERVAL_MS = 200,
	LONG_MS = 600000, /* no interval ends in a test */
	PATIENCE_MS = 60000,
	SLOW_MS = 100,
	PORT = 20000,
	CONNECTIONS = 3000,
	AT_ONCE = 128,
	ENDED = 5 * AT_ONCE,
	PART = 1024, /* bodies */
	BODY = 896,  /* bytes */
	FDS_MAX = 256,
	MAPS_MAX = 128,
	MIB = 1 << 20,
};

/* ---- What the kernel has ---------------------------------------------------------------- */

static uint64_t memlock_of(int fd)
{
	char path[64], line[128];
	unsigned long long bytes = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "memlock: %llu", &bytes);
	if (file)
		fclose(file);
	return bytes;
}

/* Each map counts once: threads have descriptors of their own. */
struct seen {
	uint32_t ids[MAPS_MAX];
	uint32_t n;
	uint64_t bytes;
};

static bool is_seen(const struct seen *seen, uint32_t id)
{
	for (uint32_t i = 0; i < seen->n; i++)
		if (seen->ids[i] == id)
			return true;
	return false;
}

/* A map of the table, but for counters of each CPU, and the maps in it. */
static void see_map(struct seen *seen, int fd)
{
	static const char *const names[] = { "conn_buckets", "conn_heads",
					     "conn_rates",   "conn_bodies",
					     "conn_free",    "alert_states" };
	struct bpf_map_info info = { 0 };
	uint32_t len = sizeof(info), id;
	bool is_ours = false;

	if (bpf_obj_get_info_by_fd(fd, &info, &len))
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		is_ours |= !strcmp(info.name, names[i]);
	if (!is_ours || is_seen(seen, info.id))
		return;
	assert_true(seen->n < MAPS_MAX);
	seen->ids[seen->n++] = info.id;
	seen->bytes += memlock_of(fd);
	for (uint32_t i = 0;
	     info.type == BPF_MAP_TYPE_ARRAY_OF_MAPS && i < info.max_entries;
	     i++) {
		int inner = bpf_map_lookup_elem(fd, &i, &id) ?
				    -1 :
				    bpf_map_get_fd_by_id(id);

		if (inner < 0)
			continue;
		see_map(seen, inner);
		close(inner);
	}
}

/* COMPAT(<6.4): some kernels say a fifth more, because they add keys that arrays do not have. */
static uint64_t kernel_bytes(void)
{
	struct seen seen = { 0 };

	for (int fd = 0; fd < FDS_MAX; fd++)
		see_map(&seen, fd);
	return seen.bytes;
}

/* ---- What the kernel does ---------------------------------------------------------------- */

static bool is_refusing, is_slow;

int __real_bpf_map_create(enum bpf_map_type type, const char *name,
			  uint32_t key_size, uint32_t value_size, uint32_t n,
			  const struct bpf_map_create_opts *opts);
int __wrap_bpf_map_create(enum bpf_map_type type, const char *name,
			  uint32_t key_size, uint32_t value_size, uint32_t n,
			  const struct bpf_map_create_opts *opts);

int __wrap_bpf_map_create(enum bpf_map_type type, const char *name,
			  uint32_t key_size, uint32_t value_size, uint32_t n,
			  const struct bpf_map_create_opts *opts)
{
	return is_refusing ? -ENOMEM :
			     __real_bpf_map_create(type, name, key_size,
						   value_size, n, opts);
}

int __real_bpf_map_update_elem(int fd, const void *key, const void *value,
			       uint64_t flags);
int __wrap_bpf_map_update_elem(int fd, const void *key, const void *value,
			       uint64_t flags);

/* As where the thread that puts a part into its map has to wait for a CPU. */
int __wrap_bpf_map_update_elem(int fd, const void *key, const void *value,
			       uint64_t flags)
{
	if (__atomic_load_n(&is_slow, __ATOMIC_RELAXED) && key)
		usleep(SLOW_MS * 1000);
	return __real_bpf_map_update_elem(fd, key, value, flags);
}

/* ---- Connections ------------------------------------------------------------------------ */

static uint64_t places_bytes;

static struct netobs_connection_stats stats_of(const struct context_fixture *f)
{
	struct netobs_connection_stats stats = { .sz = sizeof(stats) };

	assert_int_equal(netobs_connection_stats_get(f->ctx, &stats), 0);
	return stats;
}

static void start_table(struct context_fixture *f, struct netobs_opts opts)
{
	is_refusing = false;
	is_slow = false;
	opts.max_flows = 4 * CONNECTIONS;
	opts.rtt = 1;
	context_start_with(f, &opts);
	places_bytes = stats_of(f).memory - PART * BODY;
}

static uint64_t count_bodies(const struct netobs_connection_stats *stats)
{
	return (stats->memory - places_bytes) / BODY;
}

/* What the library adds bodies for: it will not add more. */
static bool has_reserve(const struct netobs_connection_stats *stats)
{
	const uint64_t reserve = max_u64(PART / 2, stats->used / 4);

	return stats->used + reserve <= count_bodies(stats);
}

/* It will not take bodies from connections that have ended. */
static bool is_swept(const struct netobs_connection_stats *stats)
{
	return 4 * stats->used <= count_bodies(stats);
}

static struct netobs_connection_stats
poll_until(struct context_fixture *f,
	   bool (*is_done)(const struct netobs_connection_stats *stats))
{
	const int64_t end_ms = now_ms() + PATIENCE_MS;
	struct netobs_connection_stats stats = stats_of(f);

	while (!is_done(&stats)) {
		if (!left_ms(end_ms))
			fail_msg("%llu of %llu bodies are used",
				 (unsigned long long)stats.used,
				 (unsigned long long)count_bodies(&stats));
		assert_true(netobs_poll(f->ctx, left_ms(end_ms)) >= 0);
		stats = stats_of(f);
	}
	return stats;
}

/* No two have the same port: on loopback, the kernel would use one again after a second. */
static void connect_once(int server)
{
	static uint16_t port = PORT;
	const struct sockaddr_in address = lab_address(PORT);
	const int client = lab_bind(SOCK_STREAM, &(uint16_t){ ++port });

	assert_int_equal(connect(client, (const struct sockaddr *)&address,
				 sizeof(address)),
			 0);
	close(client);
	close(accept(server, NULL, NULL));
}

static void connect_all(uint32_t n)
{
	const int server = lab_listen(&(uint16_t){ PORT }, AT_ONCE);

	for (uint32_t i = 0; i < n; i++)
		connect_once(server);
	close(server);
}

/* @return what there is then */
static struct netobs_connection_stats connect_slowly(struct context_fixture *f,
						     uint32_t n)
{
	for (uint32_t i = 0; i < n; i += AT_ONCE) {
		connect_all(AT_ONCE);
		poll_until(f, has_reserve);
	}
	return stats_of(f);
}

CONTEXT_TEST(memory_follows_the_connections)
{
	struct netobs_opts opts = context_options(&f->witness, INTERVAL_MS);
	struct netobs_connection_stats stats;
	uint64_t at_rest;

	opts.active_timeout_ms = LONG_MS; /* all are kept for as long */
	start_table(f, opts);
	stats = stats_of(f);
	at_rest = stats.memory;
	assert_int_equal(stats.capacity, 65536);
	assert_true(at_rest < 8 * MIB);
	assert_in_range(kernel_bytes(), at_rest, at_rest * 5 / 4);
	stats = connect_slowly(f, CONNECTIONS);
	assert_int_equal(stats.refused_packets, 0);
	assert_in_range(stats.used, CONNECTIONS, CONNECTIONS + AT_ONCE - 1);
	/* A quarter of them is free, and the rest of a part. */
	assert_in_range(count_bodies(&stats), stats.used * 5 / 4,
			stats.used * 5 / 4 + PART);
	assert_in_range(kernel_bytes(), stats.memory, stats.memory * 5 / 4);
}

/* Once their flows have been reported; however many come, it is the same memory. */
CONTEXT_TEST(memory_of_ended_connections_is_used_again)
{
	struct netobs_connection_stats stats;
	uint64_t before;

	start_table(f, context_options(&f->witness, INTERVAL_MS));
	before = connect_slowly(f, ENDED).memory;
	stats = poll_until(f, is_swept);
	assert_int_equal(stats.memory, before);
	assert_true(stats.evicted_closed > 0);
	assert_int_equal(stats.evicted_closed, stats.created - stats.used);
	stats = connect_slowly(f, ENDED);
	assert_int_equal(stats.memory, before);
	assert_int_equal(stats.refused_packets, 0);
	assert_int_equal(stats.created, 2 * ENDED);
}

/* The notice of the programs suffices, also if it takes long until these see a part. */
CONTEXT_TEST(memory_comes_without_a_drain)
{
	start_table(f, context_options(&f->witness, LONG_MS));
	is_slow = true;
	connect_all(PART * 3 / 4);
	assert_int_equal(count_bodies(&(struct netobs_connection_stats){
				 .memory = stats_of(f).memory }),
			 PART);
	poll_until(f, has_reserve);
	assert_int_equal(f->witness.n_intervals, 0);
}

/* Nothing depends on the notice: each drain looks at what is free. */
CONTEXT_TEST(memory_comes_with_drains_alone)
{
	struct netobs_connection_stats stats;

	start_table(f, context_options(&f->witness, LONG_MS));
	connect_all(PART * 3 / 4);
	for (int i = 0; i < 100; i++) {
		assert_true(netobs_drain(f->ctx) >= 0);
		stats = stats_of(f);
		if (has_reserve(&stats))
			break;
	}
	assert_true(has_reserve(&stats));
}

/* @return what there is then: all bodies of the first part are used */
static struct netobs_connection_stats overrun(struct context_fixture *f)
{
	struct netobs_connection_stats stats;

	connect_all(PART + AT_ONCE);
	stats = stats_of(f);
	assert_int_equal(count_bodies(&stats), PART);
	assert_int_equal(stats.used, PART);
	assert_int_equal(stats.created, PART);
	/* Each of the others has a SYN, a SYN+ACK and an ACK, in and out. */
	assert_in_range(stats.refused_packets, 6 * AT_ONCE, 20 * AT_ONCE);
	return stats;
}

/* Others than those before are measured. */
static void assert_recovered(struct context_fixture *f,
			     const struct netobs_connection_stats *before)
{
	struct netobs_connection_stats stats = poll_until(f, has_reserve);

	assert_true(stats.memory > before->memory);
	assert_int_equal(stats.refused_packets, before->refused_packets);
	connect_all(AT_ONCE);
	stats = stats_of(f);
	assert_int_equal(stats.created, before->created + AT_ONCE);
	assert_int_equal(stats.refused_packets, before->refused_packets);
}

CONTEXT_TEST(connections_that_outpace_memory_are_counted)
{
	struct netobs_connection_stats stats;

	start_table(f, context_options(&f->witness, LONG_MS));
	stats = overrun(f);
	assert_recovered(f, &stats);
	assert_int_equal(f->witness.warnings, 0);
}

CONTEXT_TEST(connections_beyond_memory_are_counted)
{
	struct netobs_connection_stats stats;

	start_table(f, context_options(&f->witness, INTERVAL_MS));
	is_refusing = true;
	stats = overrun(f);
	for (int i = 0; i < 100 && f->witness.n_intervals < 3; i++)
		assert_true(netobs_poll(f->ctx, PATIENCE_MS) >= 0);
	assert_int_equal(stats_of(f).memory, stats.memory);
	assert_int_equal(f->witness.warnings, 1);
	assert_true(witness_read(&f->witness,
				 "cannot make BPF maps for more connections: "
				 "Cannot allocate memory; those beyond 1024"));
	is_refusing = false;
	assert_recovered(f, &stats);
	assert_int_equal(f->witness.warnings, 1);
}
