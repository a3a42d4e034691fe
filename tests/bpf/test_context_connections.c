// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The memory of the table of connections follows the connections. */
#include "lib_context.h"
#include "lib_test.h"

#include <netobs/connection.h>
#include <netobs/netobs.h>

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	INTERVAL_MS = 200,
	PATIENCE_MS = 30000,
	PORT = 40000,
	CONNECTIONS = 3000,
	AT_ONCE = 128,
	ENDED = 5 * AT_ONCE,
	PART = 1024, /* bodies */
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

static uint64_t kernel_bytes(void)
{
	struct seen seen = { 0 };

	for (int fd = 0; fd < FDS_MAX; fd++)
		see_map(&seen, fd);
	return seen.bytes;
}

/* ---- Connections ------------------------------------------------------------------------ */

static void poll_for(struct context_fixture *f)
{
	assert_true(netobs_poll(f->ctx, PATIENCE_MS) >= 0);
}

static struct netobs_connection_stats stats_of(const struct context_fixture *f)
{
	struct netobs_connection_stats stats = { .sz = sizeof(stats) };

	assert_int_equal(netobs_connection_stats_get(f->ctx, &stats), 0);
	return stats;
}

static int listen_here(struct sockaddr_in *ret_address)
{
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*ret_address = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(PORT),
	};
	assert_int_equal(bind(fd, (struct sockaddr *)ret_address,
			      sizeof(*ret_address)),
			 0);
	assert_int_equal(listen(fd, AT_ONCE), 0);
	return fd;
}

/* The client's end waits for its port to be free, so the next connection has another. */
static void connect_once(int server, const struct sockaddr_in *address)
{
	const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(client, (const struct sockaddr *)address,
				 sizeof(*address)),
			 0);
	close(client);
	close(accept(server, NULL, NULL));
}

/* Bodies that are free. */
static uint64_t count_free(const struct netobs_connection_stats *stats,
			   uint64_t places_bytes)
{
	return (stats->memory - places_bytes) / 896 - stats->used;
}

static void connect_many(struct context_fixture *f, uint32_t n, uint64_t places)
{
	struct netobs_connection_stats stats;
	struct sockaddr_in address;
	const int server = listen_here(&address);

	for (uint32_t i = 0; i < n; i += AT_ONCE) {
		for (uint32_t j = 0; j < AT_ONCE; j++)
			connect_once(server, &address);
		do {
			poll_for(f);
			stats = stats_of(f);
		} while (count_free(&stats, places) < 2 * AT_ONCE);
	}
	close(server);
}

static void memory_follows_the_connections(void **state)
{
	struct context_fixture *f = *state;
	struct netobs_opts opts = context_options(&f->witness, INTERVAL_MS);
	struct netobs_connection_stats stats;
	uint64_t at_rest, places;

	opts.max_flows = 4 * CONNECTIONS;
	opts.rtt = NETOBS_RTT_RING;
	context_start_with(f, &opts);
	stats = stats_of(f);
	at_rest = stats.memory;
	places = at_rest - PART * 896;
	assert_int_equal(stats.capacity, 65536);
	assert_true(at_rest < 8 * MIB);
	assert_in_range(kernel_bytes(), at_rest, at_rest + MIB / 4);
	connect_many(f, CONNECTIONS, places);
	stats = stats_of(f);
	print_message("%llu connections take %llu KiB, after %llu\n",
		      (unsigned long long)stats.used,
		      (unsigned long long)stats.memory >> 10,
		      (unsigned long long)at_rest >> 10);
	assert_int_equal(stats.refused_packets, 0);
	assert_in_range(stats.used, CONNECTIONS, CONNECTIONS + AT_ONCE);
	/* A quarter of them is free, and one more part is on its way. */
	assert_in_range(stats.memory, places + CONNECTIONS * 896,
			places + (CONNECTIONS * 5 / 4 + 2 * PART) * 896);
	assert_in_range(kernel_bytes(), stats.memory, stats.memory + MIB / 4);
}

/* Ten seconds after they have ended; however many come, it is the same memory. */
static void memory_of_ended_connections_is_used_again(void **state)
{
	struct context_fixture *f = *state;
	struct netobs_opts opts = context_options(&f->witness, INTERVAL_MS);
	struct netobs_connection_stats stats;
	uint64_t before, places;

	opts.rtt = NETOBS_RTT_RING;
	context_start_with(f, &opts);
	places = stats_of(f).memory - PART * 896;
	connect_many(f, ENDED, places);
	do {
		poll_for(f);
		stats = stats_of(f);
	} while (stats.used > ENDED / 2);
	before = stats.memory;
	assert_in_range(stats.evicted_closed, ENDED / 2, stats.created);
	connect_many(f, ENDED, places);
	stats = stats_of(f);
	assert_int_equal(stats.memory, before);
	assert_int_equal(stats.refused_packets, 0);
	assert_true(stats.created >= 2 * ENDED);
}

int main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, context_setup, context_teardown)
	const struct CMUnitTest tests[] = {
		TEST(memory_follows_the_connections),
		TEST(memory_of_ended_connections_is_used_again),
	};

	return cmocka_run_group_tests_name("context_connections", tests, NULL,
					   NULL);
}
