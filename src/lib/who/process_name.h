/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Names of processes that are longer than the kernel keeps them. */
#ifndef NETOBS_WHO_PROCESS_NAME_H
#define NETOBS_WHO_PROCESS_NAME_H

#include "bpf/session.h"

enum { PROCESS_NAME_SIZE = 64 };

/**
 * Find the whole name of a process in what the programs read.
 *
 * @param comm      the beginning of the name; it may fill the array
 * @param ret_name  "": the name is not longer, is not known, or does not fit
 */
void process_name_of(const struct session_name *name,
		     const char comm[SESSION_COMM_LEN],
		     char ret_name[PROCESS_NAME_SIZE]);

/** As process_name_of(), of the process that has a socket. @param names_fd  the map session_names */
void process_name_find(int names_fd, const struct session_owner *owner,
		       char ret_name[PROCESS_NAME_SIZE]);

#endif
