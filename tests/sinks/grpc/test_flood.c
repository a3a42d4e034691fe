// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Peers that send as fast as they can, and a large backlog: one call of the module
 * takes a bounded time all the same. What is measured is the thread's own CPU time, so
 * that a busy machine makes no difference.
 */
#include "lib_sink_host.h"

#include "base/clock_ms.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <time.h>

/* The library promises 20 ms; sanitizers make it several times slower. */
#ifdef __SANITIZE_ADDRESS__
enum { MOST_MS = 60 };
#else
enum { MOST_MS = 20 };
#endif

/* Interrupts of others count as the thread's own time, though seldom twice. */
enum { FLOOD_MS = 700, CHUNK = 64 << 10, TRIES = 3 };

/* What a peer sends again and again, behind its SETTINGS. */
struct flood {
	const char *name;
	uint8_t frame[32];
	size_t len; /* 0: it only reads */
};

struct peer {
	const struct flood *flood;
	int listener;
	atomic_bool is_over;
};

static void *read_all(void *arg)
{
	char buf[CHUNK];

	while (recv(*(int *)arg, buf, sizeof(buf), 0) > 0)
		;
	return NULL;
}

static size_t make_chunk(const struct flood *flood, uint8_t *chunk)
{
	size_t len = 0;

	for (; flood->len && len + flood->len <= CHUNK; len += flood->len)
		memcpy(chunk + len, flood->frame, flood->len);
	return len;
}

static void serve(const struct peer *peer, int fd)
{
	static const uint8_t settings[9] = { [3] = 4 };
	static uint8_t chunk[CHUNK];
	size_t len = make_chunk(peer->flood, chunk);
	pthread_t reader;

	pthread_create(&reader, NULL, read_all, &fd);
	send(fd, settings, sizeof(settings), MSG_NOSIGNAL);
	while (!peer->is_over && len)
		if (send(fd, chunk, len, MSG_NOSIGNAL) < 0)
			break;
	while (!peer->is_over && !len)
		usleep(1000);
	shutdown(fd, SHUT_RDWR);
	pthread_join(reader, NULL);
}

static void *run_peer(void *arg)
{
	struct peer *peer = arg;

	while (!peer->is_over) {
		cleanup_fd int fd = accept(peer->listener, NULL, NULL);

		if (fd >= 0)
			serve(peer, fd);
	}
	return NULL;
}

static int64_t cpu_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

/* The longest call of all. */
static int64_t work_for_a_while(struct test_host *host, void *module)
{
	int64_t longest = 0;

	for (int64_t end = now_ms() + FLOOD_MS; now_ms() < end;) {
		int64_t begin = cpu_us();

		assert_int_equal(netobs_sink_module.work(module, true), 0);
		longest = max_i64(longest, cpu_us() - begin);
		test_host_wait(host, 1);
	}
	return longest;
}

static int64_t measure_flood(const struct flood *flood)
{
	struct peer peer = { .flood = flood };
	struct test_host host;
	pthread_t thread;
	char text[128];
	void *module;
	int64_t longest;
	uint16_t port = 0;

	peer.listener = test_listen(SOCK_STREAM, &port);
	pthread_create(&thread, NULL, run_peer, &peer);
	test_host_open(&host);
	host.make = test_flow;
	host.n_records = 3000000;
	snprintf(text, sizeof(text), "grpc://127.0.0.1:%u?batch_bytes=4M", port);
	module = test_host_module(&host, &netobs_sink_module, text);
	longest = work_for_a_while(&host, module);
	sink_module_close(&netobs_sink_module, module);
	peer.is_over = true;
	shutdown(peer.listener, SHUT_RDWR);
	pthread_join(thread, NULL);
	close_fd(&peer.listener);
	test_host_close(&host);
	printf("%s: %.1f ms\n", flood->name, (double)longest / 1000);
	return longest;
}

static void check_flood(const struct flood *flood)
{
	int64_t longest = measure_flood(flood);

	for (int i = 1; i < TRIES && longest > MOST_MS * 1000; i++)
		longest = measure_flood(flood);
	assert_in_range(longest, 0, MOST_MS * 1000);
}

TEST(one_call_takes_a_bounded_time)
{
	/* Length, kind, flags and stream; then the payload. */
	static const struct flood floods[] = {
		{ "backlog", { 0 }, 0 },
		{ "zeros", { 0 }, 32 },
		{ "priority", { 0, 0, 5, 2, 0, 0, 0, 3, 0xe9, 0, 0, 0, 0, 1 }, 14 },
		{ "window", { 0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1 }, 13 },
		{ "ping", { 0, 0, 8, 6 }, 17 },
		{ "settings", { 0, 0, 0, 4 }, 9 },
		{ "ping answers", { 0, 0, 8, 6, 1 }, 17 },
		{ "unknown", { 0, 0, 0, 0xbb }, 9 },
		{ "reset", { 0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 8 }, 13 },
		{ "data", { 0, 0, 0, 0, 0, 0, 0, 0, 1 }, 9 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(floods); i++)
		check_flood(&floods[i]);
}
