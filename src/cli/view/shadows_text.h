/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Prints programs that run before netobs on the interfaces of this host: netobs_shadows(). */
#ifndef NETOBS_CLI_VIEW_SHADOWS_TEXT_H
#define NETOBS_CLI_VIEW_SHADOWS_TEXT_H

#include <stdint.h>

void shadows_print_table(uint64_t disable);

/* An array. */
void shadows_print_json(uint64_t disable);

#endif
