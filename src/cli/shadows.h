/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What runs before netobs on the interfaces here, and may hide packets from it. */
#ifndef NETOBS_CLI_SHADOWS_H
#define NETOBS_CLI_SHADOWS_H

#include <stdint.h>

/* A paragraph of `netobsctl check`; @disable: as netobs_shadows() takes it. */
void shadows_print_table(uint64_t disable);

/* An array of JSON objects. */
void shadows_print_json(uint64_t disable);

#endif
