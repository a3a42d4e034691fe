/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Commands that show one thing on a screen, or as lines: top and tcp. */
#ifndef NETOBS_CLI_CMD_SCREEN_H
#define NETOBS_CLI_CMD_SCREEN_H

struct args_command;
struct flows_request;

/**
 * Run such a command.
 *
 * @param prepare  sets what the command implies, before the options are put together
 * @return an exit status
 */
int cmd_screen(const struct args_command *command,
	       void (*prepare)(struct flows_request *request), int argc,
	       char **argv);

#endif
