/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Words for the user: to the callback in the options, and the last error kept. */
#ifndef NETOBS_BASE_LOG_H
#define NETOBS_BASE_LOG_H

#include <netobs/netobs.h>
#include <stdbool.h>

/* The last error in words. */
struct log_error {
	char text[NETOBS_ERROR_MAX];
	bool is_new; /* since log_expect_error() */
};

struct log {
	void (*write)(int level, const char *message, void *user);
	void *user;
	struct log_error *error; /* or NULL */
};

__attribute__((format(printf, 3, 4))) void
log_write(const struct log *log, int level, const char *format, ...);

/* Forget whether an error is kept, at the beginning of a public call. */
void log_expect_error(const struct log *log);

/*
 * Keep an error that a public call returns, unless it was logged and is kept
 * already. Returns @ret, a negated errno value or a result.
 */
int log_keep_error(const struct log *log, const char *doing, int ret);

/* Copy the kept error for a caller that gets no object to ask; @to may be NULL. */
void log_copy_error(const struct log *log, char (*to)[NETOBS_ERROR_MAX]);

#define log_error(log, ...) log_write(log, NETOBS_LOG_ERROR, __VA_ARGS__)
#define log_warning(log, ...) log_write(log, NETOBS_LOG_WARNING, __VA_ARGS__)
#define log_info(log, ...) log_write(log, NETOBS_LOG_INFO, __VA_ARGS__)
#define log_debug(log, ...) log_write(log, NETOBS_LOG_DEBUG, __VA_ARGS__)

/*
 * Lines that a thread logs, for the caller's log: its callback runs on the caller's thread. All
 * zero: no lines.
 */
struct log_lines {
	struct log_line *first, **end;
};

/* @return a log that keeps its lines in @lines */
struct log log_lines_log(struct log_lines *lines);

/* Write all lines to @log, in their order, and forget them. */
void log_lines_pass_on(struct log_lines *lines, const struct log *log);

/* Forget all lines. */
void log_lines_done(struct log_lines *lines);

/*
 * libbpf has one print function per process, which is the host program's. It is borrowed around the calls of a thread
 * that may print: their lines become debug lines of its log. Threads do not wait for one another, and what others print
 * goes to the host program. Borrow once at a time.
 */
void log_borrow_libbpf(const struct log *log);
void log_return_libbpf(void);

enum { LOG_REFUSED_MAX = 192 };

/*
 * Keep why the kernel refused a program, for log_refused_program(); all lines of the verifier's log, in @text, become debug
 * lines. What libbpf prints while it is borrowed is kept without this.
 *
 * @text  is changed
 */
void log_verifier(const struct log *log, const char *program, char *text);

/*
 * @return "PROGRAM: the last line of the verifier's log" of the last program that the kernel refused to this thread since
 *         libbpf was borrowed; without such a line "PROGRAM", and "" if there is no such program
 */
const char *log_refused_program(void);

#endif
