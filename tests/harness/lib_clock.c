/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "lib_clock.h"

#include "lib_test.h"

#include <poll.h>
#include <sys/timerfd.h>
#include <time.h>

int __real_clock_gettime(clockid_t clock, struct timespec *ret_now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_now);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *at,
			   struct itimerspec *ret_before);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at,
			   struct itimerspec *ret_before);
int __real_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms);

enum { TIMER_MS = 1000 };

static int64_t skipped_ns;
static int last_timer; /* the highest descriptor that is one */
static bool skips_waits;

static int64_t ns_of(const struct timespec *time)
{
	return time->tv_sec * NSEC_PER_SEC + time->tv_nsec;
}

static struct timespec time_of(int64_t ns)
{
	return (struct timespec){ ns / NSEC_PER_SEC, ns % NSEC_PER_SEC };
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_now)
{
	const int ret = __real_clock_gettime(clock, ret_now);

	if (!ret && clock != CLOCK_PROCESS_CPUTIME_ID &&
	    clock != CLOCK_THREAD_CPUTIME_ID)
		*ret_now = time_of(ns_of(ret_now) + skipped_ns);
	return ret;
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at,
			   struct itimerspec *ret_before)
{
	const int64_t ns = ns_of(&at->it_value);
	struct itimerspec real = *at;

	if (fd > last_timer)
		last_timer = fd;
	if (ns && flags & TFD_TIMER_ABSTIME)
		real.it_value = time_of(ns > skipped_ns ? ns - skipped_ns : 1);
	return __real_timerfd_settime(fd, flags, &real, ret_before);
}

/* @return whether @fd is a timer that is set, of which @ret_left is left */
static bool is_set(int fd, struct itimerspec *ret_left)
{
	return !timerfd_gettime(fd, ret_left) && ns_of(&ret_left->it_value);
}

static void skip_ns(int64_t skip)
{
	struct itimerspec left;

	skipped_ns += skip;
	for (int fd = 0; fd <= last_timer; fd++) {
		if (!is_set(fd, &left))
			continue;
		left.it_value = time_of(max_i64(ns_of(&left.it_value) - skip, 1));
		assert_int_equal(__real_timerfd_settime(fd, 0, &left, NULL), 0);
	}
}

void clock_skip(int64_t ms)
{
	skip_ns(ms * NSEC_PER_MSEC);
}

void clock_skip_waits(void)
{
	skips_waits = true;
}

/* The interrupt of a timer that is over comes at once, but on a busy machine not yet. */
static void await_timer(int fd)
{
	struct pollfd timer = { .fd = fd, .events = POLLIN };
	struct itimerspec left;

	for (int i = 0; i < TIMER_MS && is_set(fd, &left) &&
			ns_of(&left.it_value) < NSEC_PER_MSEC;
	     i++)
		if (__real_poll(&timer, 1, 1))
			break;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	int64_t next = timeout_ms < 0 ? INT64_MAX : timeout_ms * NSEC_PER_MSEC;
	int timer = -1;
	int ready = __real_poll(fds, n, skips_waits ? 0 : timeout_ms);
	struct itimerspec left;

	if (ready || !timeout_ms || !skips_waits)
		return ready;
	for (int fd = 0; fd <= last_timer; fd++)
		if (is_set(fd, &left) && ns_of(&left.it_value) <= next) {
			next = ns_of(&left.it_value);
			timer = fd;
		}
	if (next == INT64_MAX)
		fail_msg("nothing would ever end a poll()");
	skip_ns(next);
	await_timer(timer);
	return __real_poll(fds, n, 0);
}
