/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "session_choice.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

uint64_t session_totals_reported(const struct session_totals *totals)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < NETOBS_SESSION_ENDINGS; i++)
		sum += totals->reported[i];
	return sum;
}

static bool has_name(const struct netobs_session *session, const char *name)
{
	/* The kernel cuts names that are longer. */
	const size_t max = sizeof(session->process) - 1;

	return *session->long_name && strlen(name) > max ?
		       !strcmp(session->long_name, name) :
		       !strncmp(session->process, name, max);
}

bool session_choice_takes(const struct session_choice *choice,
			  const struct netobs_session *session)
{
	const bool is_known = session->record.has & NETOBS_SESSION_HAS_PROCESS;

	if (choice->pid && (!is_known || session->pid != choice->pid))
		return false;
	return !choice->comm || (is_known && has_name(session, choice->comm));
}

void session_choice_fill(const struct session_choice *choice,
			 struct netobs_sessions_opts *opts)
{
	opts->interval_ms = choice->interval_ms;
	opts->buffer_bytes = choice->buffer_bytes;
	opts->flags = choice->container_names ? NETOBS_CONTAINER_NAMES : 0;
	opts->container_root = choice->container_root;
}

static void ignore_session(const struct netobs_record *record, void *user)
{
	(void)record;
	(void)user;
}

bool session_choice_check(const struct session_choice *choice, char *ret_why,
			  size_t size)
{
	char error[NETOBS_ERROR_MAX];
	NETOBS_OPTS(netobs_sessions_opts, opts, .on_record = ignore_session,
		    .error = &error);
	struct netobs *sessions;
	const char *why;
	int r;

	session_choice_fill(choice, &opts);
	r = netobs_sessions_new(&opts, &sessions);
	if (r == 0)
		netobs_free(sessions);
	if (r != -EINVAL) /* other errors, such as too few descriptors, are reported at the start */
		return true;
	/* Skip the name of the library's option. */
	why = strstr(error, ": ");
	snprintf(ret_why, size, "%s", why ? why + 2 : error);
	return false;
}
