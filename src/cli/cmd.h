/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The verbs. Each returns the exit status: EXIT_FINE, EXIT_FAILED, EXIT_USAGE. */
#ifndef NETOBS_CLI_CMD_H
#define NETOBS_CLI_CMD_H

#define VERB(name, summary) int cmd_##name(int argc, char **argv);
#include "catalogue/verbs.def"

#endif
