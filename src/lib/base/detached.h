/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A thread for a call that may have to wait, so that the caller's event loop does
 * not. It blocks all signals, which are for the caller's threads, and it is never waited
 * for its end.
 */
#ifndef NETOBS_BASE_DETACHED_H
#define NETOBS_BASE_DETACHED_H

#include <stdbool.h>

/* @urgent: ahead of threads of the usual kind, if that is allowed. */
int detached_run(void *(*run)(void *arg), void *arg, bool urgent);

#endif
