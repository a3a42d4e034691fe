/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What results depend on and are labelled with. */
#ifndef NETOBS_BENCH_HOST_H
#define NETOBS_BENCH_HOST_H

#include <sys/utsname.h>

struct machine {
	struct utsname kernel;
	char cpu[128];
};

void host_read(struct machine *ret_host);

#endif
