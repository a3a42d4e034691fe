// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "trace_state.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/util.h"
#include "engine/control_group.h"

#include <errno.h>
#include <string.h>

enum { CONTAINER_ID_MIN = 4 }; /* a shorter prefix may match many containers */

int trace_process_read(struct trace_process *process,
		       const struct netobs_trace_opts *opts,
		       const struct log *log)
{
	const char *command = opts->command ?: "";
	const char *container = opts->container ?: "";

	if (strlen(command) >= sizeof(process->command)) {
		log_error(log,
			  "command: the kernel's names have 15 bytes at most");
		return -EINVAL;
	}
	if ((opts->container && strlen(container) < CONTAINER_ID_MIN) ||
	    strlen(container) >= sizeof(process->container)) {
		log_error(log,
			  "container: '%s' is no ID, or no beginning of one with %d letters at least",
			  container, CONTAINER_ID_MIN);
		return -EINVAL;
	}
	process->pid = opts->pid;
	strcpy(process->command, command);
	strcpy(process->container, container);
	return 0;
}

bool trace_process_is_given(const struct trace_process *process)
{
	return process->pid || *process->command || *process->container;
}

/* ---- What /proc says ------------------------------------------------------------------- */

/* Compare the command of the process: its threads may have other names. */
static bool has_command(uint32_t pid, const char *command)
{
	char line[32];

	io_read_proc(pid, "comm", line, sizeof(line));
	return !strcmp(line, command);
}

struct cgroup_names trace_process_names(uint32_t pid)
{
	char text[4 * CGROUP_PATH_MAX], *rest = text, *line, *path;
	struct cgroup_names names = { 0 };
	const char *controllers;

	io_read_proc(pid, "cgroup", text, sizeof(text));
	while (!*names.container_id && (line = strsep(&rest, "\n")) && *line)
		names = cgroup_names_of(
			cgroup_parse_line(line, &controllers, &path) ? path : "");
	return names;
}

static bool has_container(uint32_t pid, const char *container)
{
	return !strncmp(trace_process_names(pid).container_id, container,
			strlen(container));
}

/* ---- The choice ------------------------------------------------------------------------ */

static bool is_chosen_now(const struct trace_process *process, uint32_t pid)
{
	if (*process->command && !has_command(pid, process->command))
		return false;
	return !*process->container || has_container(pid, process->container);
}

/* Answers expire: a process may change its name, and its number may be reused. */
static bool ask_known(struct trace_process *process, uint32_t pid)
{
	struct trace_known_process *known =
		&process->known[pid % TRACE_PROCESSES_KNOWN];
	const int64_t now_ns = clock_boot_ns();

	if (known->pid == pid && now_ns < known->until_ns)
		return known->is_chosen;
	*known = (struct trace_known_process){
		.pid = pid,
		.is_chosen = is_chosen_now(process, pid),
		.until_ns = now_ns + NSEC_PER_SEC,
	};
	return known->is_chosen;
}

bool trace_process_is(struct trace_process *process, uint32_t pid,
		      const char command[16], const char thread[16])
{
	const size_t size = sizeof(process->command);

	if (process->pid && process->pid != pid)
		return false;
	if (!*process->command && !*process->container)
		return true;
	if (!*process->container && (!strncmp(process->command, command, size) ||
				     !strncmp(process->command, thread, size)))
		return true;
	return ask_known(process, pid);
}
