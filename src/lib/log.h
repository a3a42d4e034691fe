/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Words for the user: to the callback in the options, or nowhere. */
#ifndef NETOBS_LIB_LOG_H
#define NETOBS_LIB_LOG_H

#include <netobs/netobs.h>

struct log {
	void (*write)(int level, const char *message, void *user);
	void *user;
};

__attribute__((format(printf, 3, 4))) void
log_write(const struct log *log, int level, const char *format, ...);

#define log_error(log, ...) log_write(log, NETOBS_LOG_ERROR, __VA_ARGS__)
#define log_warning(log, ...) log_write(log, NETOBS_LOG_WARNING, __VA_ARGS__)
#define log_info(log, ...) log_write(log, NETOBS_LOG_INFO, __VA_ARGS__)
#define log_debug(log, ...) log_write(log, NETOBS_LOG_DEBUG, __VA_ARGS__)

/*
 * libbpf has one print function per process, which is the host program's. It
 * is borrowed around the calls that may print; its lines become debug lines.
 */
void log_borrow_libbpf(const struct log *log);
void log_return_libbpf(void);

#endif
