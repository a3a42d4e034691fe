/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Giving up capabilities(7) that are no longer needed. */
#ifndef NETOBS_CLI_PRIVILEGES_H
#define NETOBS_CLI_PRIVILEGES_H

#include <stdbool.h>

#include "args.h"

/*
 * Drop the privileges that a capture does not need once it has begun. It keeps what it
 * takes to follow @interfaces and, to make @files, to write to any directory. Without
 * privileges to begin with, nothing happens.
 */
void privileges_drop(const struct args_list *interfaces, bool files);

#endif
