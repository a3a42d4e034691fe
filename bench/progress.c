/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "progress.h"

#include "base/clock.h"
#include "base/util.h"

#include <stdio.h>

enum { BAR = 30 };

void progress_begin(struct progress *progress, double total)
{
	*progress = (struct progress){
		.is_shown = isatty(STDERR_FILENO),
		.total = total,
		.start_ns = clock_boot_ns(),
	};
}

void progress_show(const struct progress *progress, const char *text)
{
	static const char full[] = "##############################";
	double share = progress->done / progress->total;
	double passed = (clock_boot_ns() - progress->start_ns) / 1e9;

	if (!progress->is_shown)
		return;
	if (share > 1)
		share = 1;
	fprintf(stderr, "\r\033[K[%-*.*s] %3.0f %%  %s", BAR,
		(int)(share * BAR), full, share * 100, text);
	if (share > 0.02)
		fprintf(stderr, ", %.0f s left", passed / share - passed);
	fflush(stderr);
}

void progress_clear(const struct progress *progress)
{
	if (progress->is_shown)
		fputs("\r\033[K", stderr);
}
