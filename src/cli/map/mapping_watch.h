/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Implements netobsctl map: mappings of a running service, of a context of its own, or of the kernel. */
#ifndef NETOBS_CLI_MAP_MAPPING_WATCH_H
#define NETOBS_CLI_MAP_MAPPING_WATCH_H

#include "cli/annotate/annotate.h"

/** @return an exit status */
int mapping_watch(const struct map_options *options);

#endif
