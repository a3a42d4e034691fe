// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Apart from the rest of the log, which sinks use that have nothing to do with BPF. */
#include "log.h"

#include <bpf/libbpf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Guards what follows and libbpf's callback, for contexts on several threads. */
static pthread_mutex_t libbpf_lock = PTHREAD_MUTEX_INITIALIZER;
static const struct log *libbpf_log;
static libbpf_print_fn_t libbpf_hosts;

/* One message may have many lines: the verifier's log is one. */
static int print_libbpf(enum libbpf_print_level level, const char *format,
			va_list args)
{
	char *text, *rest, *line;

	if (level == LIBBPF_DEBUG || !libbpf_log->write ||
	    vasprintf(&text, format, args) < 0)
		return 0;
	for (line = strtok_r(text, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest))
		log_debug(libbpf_log, "%s", line);
	free(text);
	return 0;
}

void log_borrow_libbpf(const struct log *log)
{
	pthread_mutex_lock(&libbpf_lock);
	libbpf_log = log;
	libbpf_hosts = libbpf_set_print(print_libbpf);
}

void log_return_libbpf(void)
{
	libbpf_set_print(libbpf_hosts);
	libbpf_log = NULL;
	pthread_mutex_unlock(&libbpf_lock);
}
