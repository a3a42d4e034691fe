/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * How processes without CAP_SYS_ADMIN, which cannot read the name of a program, recognise those of
 * another process of netobs: by an abstract socket with the program's ID in its name.
 */
#ifndef NETOBS_ATTACH_PROGRAM_SIGN_H
#define NETOBS_ATTACH_PROGRAM_SIGN_H

#include <stdbool.h>
#include <stdint.h>

/* @return the socket, which is open as long as the program may be attached; or -errno */
int program_sign_open(int program_fd);

/* Accept and close the connections of processes that looked: the socket has room for some only. */
void program_sign_answer(int sign);

/* Whether root, or this user, has such a socket in this network namespace. */
bool program_sign_is_there(uint32_t program_id);

#endif
