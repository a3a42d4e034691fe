/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "stop.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t requested;

static void on_signal(int number)
{
	(void)number;
	requested = 1;
}

void stop_catch(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	const struct sigaction action = { .sa_handler = on_signal,
					  .sa_flags = SA_RESETHAND };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct sigaction before;

		/* nohup(1) asks for it to be ignored. */
		if (!sigaction(numbers[i], NULL, &before) &&
		    before.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
	}
}

bool stop_requested(void)
{
	return requested;
}
