/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Connections of the loopback device, of which the tracer traces one, as `netobsctl diagnose` does. */
#ifndef NETOBS_BENCH_ARMED_H
#define NETOBS_BENCH_ARMED_H

#include <stdint.h>

struct netobs;

enum { ARMED_OTHERS = 1000 }; /* idle connections */

struct armed {
	int listener;
	int ends[ARMED_OTHERS][2];
	uint32_t n;
	uint16_t port; /* of the client that is traced */
	struct netobs *tracer;
};

/* @return 0; -errno. armed_close() undoes it in any case */
int armed_open(struct armed *armed);

/* Make one more connection. @ret_ends: of the client and the server. */
int armed_connect(const struct armed *armed, int ret_ends[2]);

int armed_start(struct armed *armed);
void armed_stop(struct armed *armed);
void armed_close(struct armed *armed);

#endif
