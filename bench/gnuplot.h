/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A gnuplot process, which may not be installed. */
#ifndef NETOBS_BENCH_GNUPLOT_H
#define NETOBS_BENCH_GNUPLOT_H

#include <stdio.h>
#include <sys/types.h>

struct gnuplot {
	pid_t pid;
	FILE *script; /* what is written here, it does */
};

/* Whether it is there; if not, it says what to install. */
int gnuplot_check(void);

/* Its standard output, where charts go, will be @fd. */
int gnuplot_start(struct gnuplot *gnuplot, int fd);

/* -EIO: it did not like the script. */
int gnuplot_finish(struct gnuplot *gnuplot);

#endif
