/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Giving up capabilities(7) that are no longer needed. */
#ifndef NETOBS_SERVICE_OPTIONS_PRIVILEGES_H
#define NETOBS_SERVICE_OPTIONS_PRIVILEGES_H

#include <stdbool.h>

#include "args.h"

/*
 * Drop the privileges that are not needed once programs are attached. Kept is what it
 * takes to follow @interfaces and, if true, to write @files to any directory, or to read those of
 * others, and to name the @programs of others, or processes in other namespaces. Without privileges
 * to begin with, nothing happens.
 */
void privileges_drop(const struct args_list *interfaces, bool files,
		     bool programs);

#endif
