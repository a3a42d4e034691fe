/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* SIGINT, SIGTERM and SIGHUP end a benchmark early; a second one at once. */
#ifndef NETOBS_BENCH_STOP_H
#define NETOBS_BENCH_STOP_H

#include <stdbool.h>

void stop_catch(void);
bool stop_requested(void);

#endif
