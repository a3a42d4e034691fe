/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The verbs. Each returns the exit status: EXIT_FINE, EXIT_FAILED, EXIT_USAGE. */
#ifndef NETOBS_CLI_CMD_H
#define NETOBS_CLI_CMD_H

int cmd_flows(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_alerts(int argc, char **argv);
int cmd_sessions(int argc, char **argv);
int cmd_capture(int argc, char **argv);
int cmd_config(int argc, char **argv);
int cmd_detach(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_reload(int argc, char **argv);
int cmd_reopen(int argc, char **argv);
int cmd_log(int argc, char **argv);
int cmd_metrics(int argc, char **argv);
int cmd_tcp(int argc, char **argv);
int cmd_top(int argc, char **argv);

#endif
