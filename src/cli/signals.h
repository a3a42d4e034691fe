/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* SIGINT, SIGTERM and SIGHUP stop a context; a second one ends the program. */
#ifndef NETOBS_CLI_SIGNALS_H
#define NETOBS_CLI_SIGNALS_H

#include <stdbool.h>

struct netobs;

void signals_catch(struct netobs *ctx);

/* Back to the default; to be called before the context is freed. */
void signals_release(void);

/* Whether the terminal's size has changed since the last call. */
bool signals_take_resize(void);

#endif
