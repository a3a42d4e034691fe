/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "lib_clock.h"

#include "lib_test.h"

#include <sys/timerfd.h>
#include <time.h>

int __real_clock_gettime(clockid_t clock, struct timespec *ret_now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_now);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *at,
			   struct itimerspec *ret_before);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at,
			   struct itimerspec *ret_before);

static int64_t skipped_ns;
static int last_timer; /* the highest descriptor that is one */

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

void clock_skip(int64_t ms)
{
	skipped_ns += ms * NSEC_PER_MSEC;
	for (int fd = 0; fd <= last_timer; fd++) {
		struct itimerspec left;
		int64_t ns;

		if (timerfd_gettime(fd, &left) || !ns_of(&left.it_value))
			continue; /* it is none, or off */
		ns = ns_of(&left.it_value) - ms * NSEC_PER_MSEC;
		left.it_value = time_of(ns > 0 ? ns : 1);
		assert_int_equal(__real_timerfd_settime(fd, 0, &left, NULL), 0);
	}
}
