/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Contexts with rules that are replaced, and datagrams to ports that these distinguish. */
#ifndef HARNESS_LIB_RULES_H
#define HARNESS_LIB_RULES_H

#include "lib_context.h"

#include <pthread.h>

enum { RULES_PORT = 40000, RULES_PORTS = 4 /* from this one on */ };

/* For cmocka, as context_setup(): sockets receive on all ports, so that no ICMP answers. */
int rules_setup(void **state);
int rules_teardown(void **state);

/* Datagrams to @port that have crossed both points: a slow kernel may defer the second. */
void rules_send_through(uint16_t port, uint32_t n);

/* Datagrams of LAB_BYTES to @n_ports ports in turn, from a thread, until it is ended. */
struct rules_flood {
	pthread_t thread;
	uint32_t first_port, n_ports; /* numbers from 0 on */
	bool is_over;
	uint64_t sent[RULES_PORTS];
};

void rules_begin_flood(struct rules_flood *flood, uint32_t first_port,
		       uint32_t n_ports);
void rules_end_flood(struct rules_flood *flood);

/* How often to replace rules: @usual, fewer in a slow guest, or NETOBS_TEST_RULES. */
uint32_t rules_count_replacements(uint32_t usual);

#endif
