// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Apart from the rest of the log, which sinks use that have nothing to do with BPF. */
#include "log.h"

#include "util.h"

#include <bpf/libbpf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The log of this thread's calls; NULL: libbpf prints to the host program. It is in the block that
 * threads begin with: otherwise the library would need the dynamic loader for its address.
 */
static _Thread_local const struct log *libbpf_log
	__attribute__((tls_model("initial-exec")));

/* The kernel's last refusal of a program of this thread, see log_refused_program(). */
static _Thread_local char refused[LOG_REFUSED_MAX]
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

/* @return whether a line of the verifier's log is none of its figures, nor of libbpf's frame */
static bool is_reason(const char *line)
{
	static const char *const others[] = { "--", "processed ",
					      "verification time ",
					      "stack depth ", "libbpf: " };

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (!strncmp(line, others[i], strlen(others[i])))
			return false;
	return *line;
}

/* Split @text into lines, which become debug lines of @log. @return the last one that is a reason, or NULL */
static const char *write_lines(const struct log *log, char *text)
{
	const char *reason = NULL;
	char *rest;

	for (char *line = strtok_r(text, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		log_debug(log, "%s", line);
		if (is_reason(line))
			reason = line;
	}
	return reason;
}

void log_verifier(const struct log *log, const char *program, char *text)
{
	const char *reason = write_lines(log, text);

	snprintf(refused, sizeof(refused), "%s%s%s", program,
		 reason ? ": " : "", reason ?: "");
}

/* libbpf has the verifier's log in one message, which begins with the name of the program. */
static int print_libbpf(enum libbpf_print_level level, const char *format,
			va_list args)
{
	char *text, *name, *begin;

	if (!libbpf_log)
		return print_for_host(level, format, args);
	if (level == LIBBPF_DEBUG || vasprintf(&text, format, args) < 0)
		return 0;
	name = strchr(text, '\'');
	begin = strstr(text, "-- BEGIN PROG LOAD LOG --");
	if (name && begin) {
		name = strndup(name + 1, strcspn(name + 1, "'"));
		log_verifier(libbpf_log, name ?: "a program", text);
		free(name);
	} else {
		write_lines(libbpf_log, text);
	}
	free(text);
	return 0;
}

const char *log_refused_program(void)
{
	return refused;
}

void log_borrow_libbpf(const struct log *log)
{
	pthread_mutex_lock(&libbpf_lock);
	if (!n_borrowers++)
		__atomic_store_n(&libbpf_hosts, libbpf_set_print(print_libbpf),
				 __ATOMIC_RELEASE);
	pthread_mutex_unlock(&libbpf_lock);
	libbpf_log = log;
	*refused = '\0';
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
