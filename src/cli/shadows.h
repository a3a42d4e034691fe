/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What runs before netobs on the interfaces here, and may hide packets from it. */
#ifndef NETOBS_CLI_SHADOWS_H
#define NETOBS_CLI_SHADOWS_H

/* A paragraph of `netobsctl check`. */
void shadows_print_table(void);

/* An array of JSON objects. */
void shadows_print_json(void);

#endif
