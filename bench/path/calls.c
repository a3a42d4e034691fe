// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Preloaded into a program that was compiled with -finstrument-functions: counts the calls
 * of each function between one SIGUSR2 and the next, and lists them in $NETOBS_CALLS at the
 * end: count, object, offset in it.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 1 << 16 };

#define UNCOUNTED __attribute__((no_instrument_function))

void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);

static struct {
	_Atomic(void *) function;
	atomic_uint calls;
} slots[SLOTS];
static atomic_bool is_on;

UNCOUNTED static void on_calls_signal(int number)
{
	(void)number;
	is_on = !is_on;
}

UNCOUNTED static void list_calls(void)
{
	FILE *file = fopen(getenv("NETOBS_CALLS"), "w");

	is_on = false;
	for (int i = 0; file && i < SLOTS; i++) {
		char *function = slots[i].function;
		Dl_info info;

		if (function && dladdr(function, &info))
			fprintf(file, "%u %s %lx\n", slots[i].calls,
				info.dli_fname,
				(unsigned long)(function -
						(char *)info.dli_fbase));
	}
	if (file)
		fclose(file);
}

UNCOUNTED __attribute__((constructor)) static void start_counting(void)
{
	signal(SIGUSR2, on_calls_signal);
	atexit(list_calls);
}

UNCOUNTED void __cyg_profile_func_enter(void *function, void *site)
{
	uint32_t i = (uint32_t)((uintptr_t)function >> 2) * 2654435761U >> 16;
	void *empty = NULL;

	(void)site;
	if (!is_on)
		return;
	while (!atomic_compare_exchange_strong(&slots[i].function, &empty,
					       function) &&
	       empty != function) {
		i = (i + 1) % SLOTS;
		empty = NULL;
	}
	slots[i].calls++;
}

UNCOUNTED void __cyg_profile_func_exit(void *function, void *site)
{
	(void)function;
	(void)site;
}
