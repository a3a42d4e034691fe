/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A grace period of the kernel: once it is over, every BPF program that ran when
 * it began has ended, whatever CPU it ran on and however long that CPU was stopped.
 */
#ifndef NETOBS_ENGINE_GRACE_H
#define NETOBS_ENGINE_GRACE_H

#include <stdbool.h>

/*
 * Begin one, in a thread of its own. Returns a descriptor that polls readable
 * when it is over, or -errno. The caller closes it, at any time.
 */
int grace_begin(void);

/* Whether that of @fd is over: > 0; 0: not yet; -ECANCELED: it could not be had. */
int grace_is_over(int fd);

#endif
