// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Apart from the rest of the log, which sinks use that have nothing to do with BPF. */
#include "log.h"

#include <bpf/libbpf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Of the calls of this thread; NULL: it prints to the host program. In the block that threads begin with:
 * otherwise the library would need the dynamic loader for its address.
 */
static _Thread_local const struct log *libbpf_log
	__attribute__((tls_model("initial-exec")));

/* Guards what follows and libbpf's callback, which all threads share. */
static pthread_mutex_t libbpf_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int n_borrowers; /* threads with a log */
static libbpf_print_fn_t libbpf_hosts;

static int print_for_host(enum libbpf_print_level level, const char *format,
			  va_list args)
{
	const libbpf_print_fn_t print =
		__atomic_load_n(&libbpf_hosts, __ATOMIC_ACQUIRE);

	return print ? print(level, format, args) : 0;
}

/* One message may have many lines: the verifier's log is one. */
static int print_libbpf(enum libbpf_print_level level, const char *format,
			va_list args)
{
	char *text, *rest, *line;

	if (!libbpf_log)
		return print_for_host(level, format, args);
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
	if (!n_borrowers++)
		__atomic_store_n(&libbpf_hosts, libbpf_set_print(print_libbpf),
				 __ATOMIC_RELEASE);
	pthread_mutex_unlock(&libbpf_lock);
	libbpf_log = log;
}

/* The host program may have set another callback meanwhile. */
static void restore_hosts(void)
{
	const libbpf_print_fn_t present = libbpf_set_print(libbpf_hosts);

	if (present != print_libbpf)
		libbpf_set_print(present);
}

void log_return_libbpf(void)
{
	libbpf_log = NULL;
	pthread_mutex_lock(&libbpf_lock);
	if (!--n_borrowers)
		restore_hosts();
	pthread_mutex_unlock(&libbpf_lock);
}
