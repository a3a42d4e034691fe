// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "thread_sums.h"

#include "base/util.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST = 64 };

static uint64_t change_at(const struct thread_times *times, uint32_t i)
{
	return times->changes[(times->first + i) & (times->capacity - 1)];
}

static int64_t time_at(const struct thread_times *times, uint32_t i)
{
	return (int64_t)(change_at(times, i) >> SCHED_STATE_BITS);
}

static enum sched_thread_state state_at(const struct thread_times *times,
					uint32_t i)
{
	return change_at(times, i) & ((1 << SCHED_STATE_BITS) - 1);
}

/* Double the memory, unless a limit is reached. */
static void grow(struct thread_times *times, uint64_t *room)
{
	const uint32_t more = times->capacity ? 2 * times->capacity : FIRST;
	uint64_t *changes;

	if (more > THREAD_TIMES_MAX ||
	    *room + more - times->capacity > THREAD_TIMES_ROOM)
		return;
	changes = calloc(more, sizeof(*changes));
	if (!changes)
		return;
	for (uint32_t i = 0; i < times->n; i++)
		changes[i] = change_at(times, i);
	free(times->changes);
	*room += more - times->capacity;
	times->changes = changes;
	times->capacity = more;
	times->first = 0;
}

static void drop_first(struct thread_times *times)
{
	times->first++;
	times->n--;
}

void thread_times_add(struct thread_times *times, uint64_t *room, int64_t at_ns,
		      enum sched_thread_state state)
{
	if (times->n)
		at_ns = max_i64(at_ns, time_at(times, times->n - 1) + 1);
	if (times->n == times->capacity)
		grow(times, room);
	if (!times->capacity)
		return;
	if (times->n == times->capacity)
		drop_first(times);
	times->changes[(times->first + times->n++) & (times->capacity - 1)] =
		(uint64_t)at_ns << SCHED_STATE_BITS | state;
}

/* @return the index of the last change that is not after @at_ns, of which there is one */
static uint32_t find(const struct thread_times *times, int64_t at_ns)
{
	uint32_t low = 0, high = times->n;

	while (high - low > 1) {
		const uint32_t middle = low + (high - low) / 2;

		if (time_at(times, middle) <= at_ns)
			low = middle;
		else
			high = middle;
	}
	return low;
}

bool thread_times_sum(const struct thread_times *times, int64_t from_ns,
		      int64_t until_ns, uint64_t ret_ns[NETOBS_THREAD_STATES])
{
	memset(ret_ns, 0, NETOBS_THREAD_STATES * sizeof(*ret_ns));
	if (from_ns < thread_times_begin(times) || until_ns < from_ns)
		return false;
	for (uint32_t i = find(times, from_ns);
	     i < times->n && time_at(times, i) < until_ns; i++) {
		const int64_t end_ns =
			i + 1 < times->n ? time_at(times, i + 1) : INT64_MAX;

		if (state_at(times, i) >= (int)NETOBS_THREAD_STATES)
			return false;
		ret_ns[state_at(times, i)] +=
			(uint64_t)(min_i64(end_ns, until_ns) -
				   max_i64(time_at(times, i), from_ns));
	}
	return true;
}

int64_t thread_times_begin(const struct thread_times *times)
{
	return times->n ? time_at(times, 0) : INT64_MAX;
}

enum sched_thread_state thread_times_state(const struct thread_times *times)
{
	return times->n ? state_at(times, times->n - 1) : SCHED_UNKNOWN;
}

void thread_times_cut(struct thread_times *times, int64_t before_ns)
{
	while (times->n > 1 && time_at(times, 1) <= before_ns)
		drop_first(times);
}

void thread_times_clear(struct thread_times *times, uint64_t *room)
{
	*room -= times->capacity;
	free(times->changes);
	*times = (struct thread_times){ 0 };
}
