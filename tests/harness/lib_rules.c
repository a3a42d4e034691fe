/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "lib_rules.h"

#include "lib_test.h"

#include <poll.h>
#include <sys/socket.h>

enum { PATIENCE_MS = 30000, BURST = 16 /* to each port */ };

static int sinks[RULES_PORTS];

int rules_setup(void **state)
{
	context_setup(state);
	for (uint32_t i = 0; i < RULES_PORTS; i++)
		sinks[i] = lab_bind(SOCK_DGRAM, &(uint16_t){ RULES_PORT + i });
	return 0;
}

int rules_teardown(void **state)
{
	for (uint32_t i = 0; i < RULES_PORTS; i++)
		close(sinks[i]);
	return context_teardown(state);
}

void rules_send_through(uint16_t port, uint32_t n)
{
	struct pollfd ready = { .fd = sinks[port - RULES_PORT], .events = POLLIN };
	char byte;

	lab_send(port, n);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
		assert_int_equal(recv(ready.fd, &byte, 1, 0), 1);
	}
}

static void send_one(struct rules_flood *flood, int from, uint32_t port)
{
	const struct sockaddr_in to = lab_address(RULES_PORT + port);
	const char payload[LAB_BYTES - 28] = { 0 };

	flood->sent[port] += sendto(from, payload, sizeof(payload), 0,
				    (const struct sockaddr *)&to, sizeof(to)) > 0;
}

static void *flood_run(void *arg)
{
	struct rules_flood *flood = arg;
	int from = socket(AF_INET, SOCK_DGRAM, 0);

	while (!__atomic_load_n(&flood->is_over, __ATOMIC_RELAXED)) {
		for (uint32_t i = 0; i < BURST * flood->n_ports; i++)
			send_one(flood, from,
				 flood->first_port + i % flood->n_ports);
		usleep(1000);
	}
	close(from);
	return NULL;
}

void rules_begin_flood(struct rules_flood *flood, uint32_t first_port,
		       uint32_t n_ports)
{
	*flood = (struct rules_flood){ .first_port = first_port,
				       .n_ports = n_ports };
	assert_int_equal(pthread_create(&flood->thread, NULL, flood_run, flood),
			 0);
}

void rules_end_flood(struct rules_flood *flood)
{
	__atomic_store_n(&flood->is_over, true, __ATOMIC_RELAXED);
	pthread_join(flood->thread, NULL);
}

uint32_t rules_count_replacements(uint32_t usual)
{
	const char *given = getenv("NETOBS_TEST_RULES");
	const uint32_t few = usual / lab_shrink();

	return given ? (uint32_t)atoi(given) : few > 2 ? few : 2;
}
