/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * One epoll descriptor for all that can happen to an object: descriptors and timers,
 * each with a function that is called when it is ready.
 */
#ifndef NETOBS_BASE_LOOP_H
#define NETOBS_BASE_LOOP_H

#include <stdint.h>
#include <sys/epoll.h>
#include <stddef.h>
#include <time.h>

/* @return 0, or -errno, which ends loop_dispatch() */
typedef int loop_fn(void *ctx, int fd);

struct loop {
	int fd; /* for the owner to wait for */
	struct loop_source *sources;
	size_t n_sources;
};

int loop_open(struct loop *loop);

/* Closes the timers, not the descriptors that were added. @loop may be zeroed. */
void loop_close(struct loop *loop);

/*
 * Call @fn when @fd has @events, of epoll, or change @fn and @events of @fd. A descriptor
 * that is closed is removed by itself.
 * @param events  0: remove it
 * @param fn      NULL: it only makes the loop's descriptor readable
 * @return 0, -EPERM for a file that cannot be waited for, or -errno
 */
int loop_watch(struct loop *loop, int fd, uint32_t events, loop_fn *fn,
	       void *ctx);

/* Add a timer, not armed at first; it belongs to the loop. */
int loop_add_timer(struct loop *loop, clockid_t clock, loop_fn *fn, void *ctx,
		   int *ret_timer);

/* Have it expire at @at_ns, of its clock; 0: not at all. */
void loop_set_timer(int timer, int64_t at_ns);

/* Have it expire each @period_ms from now on. */
void loop_repeat_timer(int timer, uint32_t period_ms);

/* Call the functions of ready descriptors, without waiting. They may add others. */
int loop_dispatch(struct loop *loop);

#endif
