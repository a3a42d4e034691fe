/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Processes that are chosen: this one, and threads and names that it has or has not. */
#include "lib_test.h"

#include "trace/trace_state.h"

#include <sys/prctl.h>

static const struct log silent;
static const char any[16] = "a thread", unit[16] = "netobs-unit";

static struct trace_process make(uint32_t pid, const char *command,
				 const char *container)
{
	const struct netobs_trace_opts opts = { .pid = pid,
						.command = command,
						.container = container };
	struct trace_process process = { 0 };

	assert_int_equal(trace_process_read(&process, &opts, &silent), 0);
	return process;
}

static int read_wrong(const char *command, const char *container)
{
	const struct netobs_trace_opts opts = { .command = command,
						.container = container };
	struct trace_process process = { 0 };

	return trace_process_read(&process, &opts, &silent);
}

TEST(without_a_choice_all_are_chosen)
{
	struct trace_process process = make(0, NULL, NULL);

	assert_false(trace_process_is_given(&process));
	assert_true(trace_process_is(&process, 1, any, any));
}

TEST(a_number_is_that_of_one_process)
{
	struct trace_process process = make(7, NULL, NULL);

	assert_true(trace_process_is_given(&process));
	assert_true(trace_process_is(&process, 7, any, any));
	assert_false(trace_process_is(&process, 8, any, any));
}

/* The process's own counts where its thread has another one. */
TEST(a_command_is_of_the_thread_or_its_process)
{
	const uint32_t pid = (uint32_t)getpid();
	struct trace_process process = make(0, "netobs-unit", NULL);

	assert_true(trace_process_is(&process, 1, unit, any));
	assert_true(trace_process_is(&process, 1, any, unit));
	assert_int_equal(prctl(PR_SET_NAME, "netobs-unit"), 0);
	assert_true(trace_process_is(&process, pid, any, any));
	process = make(0, "netobs-uni", NULL);
	assert_false(trace_process_is(&process, pid, any, any));
	assert_false(trace_process_is(&process, pid, unit, any));
	process = make(pid + 1, "netobs-unit", NULL);
	assert_false(trace_process_is(&process, pid, unit, any));
}

/* For a second. */
TEST(what_proc_said_is_kept)
{
	const uint32_t pid = (uint32_t)getpid();
	struct trace_process process = make(0, "netobs-other", NULL);

	assert_int_equal(prctl(PR_SET_NAME, "netobs-unit"), 0);
	assert_false(trace_process_is(&process, pid, any, any));
	assert_int_equal(prctl(PR_SET_NAME, "netobs-other"), 0);
	process.known[pid % TRACE_PROCESSES_KNOWN].until_ns = INT64_MAX;
	assert_false(trace_process_is(&process, pid, any, any));
	process.known[pid % TRACE_PROCESSES_KNOWN].until_ns = 0;
	assert_true(trace_process_is(&process, pid, any, any));
}

TEST(no_process_is_in_a_container_that_is_not)
{
	struct trace_process process = make(0, NULL, "0123456789ab");

	assert_true(trace_process_is_given(&process));
	assert_false(trace_process_is(&process, (uint32_t)getpid(), any, any));
	assert_false(trace_process_is(&process, UINT32_MAX, any, any));
}

TEST(wrong_options_are_refused)
{
	char container[73];

	memset(container, 'a', sizeof(container) - 1);
	container[72] = '\0';
	assert_int_equal(read_wrong("sixteen-letters!", NULL), -EINVAL);
	assert_int_equal(read_wrong("fifteen-letters", NULL), 0);
	assert_int_equal(read_wrong(NULL, "abc"), -EINVAL);
	assert_int_equal(read_wrong(NULL, ""), -EINVAL);
	assert_int_equal(read_wrong(NULL, container), -EINVAL);
	assert_int_equal(read_wrong(NULL, container + 1), 0);
}
