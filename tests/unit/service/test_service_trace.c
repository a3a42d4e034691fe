// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The tracer of a service: alerts wait for it, and while it fails it is not begun for each of them. */
#include "lib_clock.h"
#include "lib_test.h"

#include "base/clock_ms.h"
#include "service/service_trace.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>

enum { MINUTE_MS = 60000 };

/* The library, whose tracers are their options, and do nothing. */
static struct {
	int start_error;
	bool is_slow; /* to start takes a while */
	int ends[2];  /* of a pipe that nothing is written to */
} fake;

int __wrap_netobs_trace_new(const struct netobs_trace_opts *opts,
			    struct netobs **ret_trace);
int __wrap_netobs_start(struct netobs *trace);
int __wrap_netobs_trace_arm(struct netobs *trace,
			    const struct netobs_trace_target *target);
int __wrap_netobs_fd(const struct netobs *trace);
int __wrap_netobs_dispatch(struct netobs *trace);
int __wrap_netobs_trace_stats_get(const struct netobs *trace,
				  struct netobs_trace_stats *ret_stats);
void __wrap_netobs_stop(struct netobs *trace);
void __wrap_netobs_free(struct netobs *trace);

int __wrap_netobs_trace_new(const struct netobs_trace_opts *opts,
			    struct netobs **ret_trace)
{
	struct netobs_trace_opts *copy = malloc(sizeof(*copy));

	assert_non_null(copy);
	*copy = *opts;
	*ret_trace = (struct netobs *)copy;
	return 0;
}

int __wrap_netobs_start(struct netobs *trace)
{
	const struct netobs_trace_opts *opts = (const void *)trace;

	if (fake.is_slow)
		poll(NULL, 0, 1);
	opts->on_log(NETOBS_LOG_WARNING, "it starts", opts->user);
	return fake.start_error;
}

int __wrap_netobs_trace_arm(struct netobs *trace,
			    const struct netobs_trace_target *target)
{
	(void)trace;
	(void)target;
	return 0;
}

int __wrap_netobs_fd(const struct netobs *trace)
{
	(void)trace;
	return fake.ends[0];
}

int __wrap_netobs_dispatch(struct netobs *trace)
{
	(void)trace;
	return 0;
}

int __wrap_netobs_trace_stats_get(const struct netobs *trace,
				  struct netobs_trace_stats *ret_stats)
{
	(void)trace;
	(void)ret_stats;
	return 0;
}

void __wrap_netobs_stop(struct netobs *trace)
{
	(void)trace;
}

void __wrap_netobs_free(struct netobs *trace)
{
	free(trace);
}

/* ---- The service ------------------------------------------------------------------------- */

static pthread_t own_thread;
static uint32_t n_warnings;

static void count_error(int level, const char *message, void *user)
{
	(void)message;
	assert_true(pthread_equal(own_thread, pthread_self()));
	n_warnings += level == NETOBS_LOG_WARNING;
	*(uint32_t *)user += level == NETOBS_LOG_ERROR;
}

static struct service_trace *begin(uint32_t *errors)
{
	struct service_config *config = calloc(1, sizeof(*config));
	struct service_trace *trace = calloc(1, sizeof(*trace));

	assert_non_null(config);
	assert_non_null(trace);
	assert_int_equal(pipe(fake.ends), 0);
	own_thread = pthread_self();
	n_warnings = 0;
	trace->on_log = count_error;
	trace->user = errors;
	config->n_alerts = 1;
	config->alerts[0].name = "slow";
	config->alert_trace_ms[0] = 1000;
	service_trace_commit(trace, config);
	free(config);
	return trace;
}

static void end(struct service_trace *trace)
{
	service_trace_stop(trace);
	service_trace_done(trace);
	free(trace);
	close(fake.ends[0]);
	close(fake.ends[1]);
}

static void alert(struct service_trace *trace)
{
	const struct netobs_alert alert = { .protocol = IPPROTO_TCP,
					    .name = "slow" };

	service_trace_alert(trace, &alert);
}

/* As the service's loop does. */
static void wait_and_dispatch(struct service_trace *trace)
{
	struct pollfd fd = { .fd = service_trace_fd(trace), .events = POLLIN };

	assert_true(fd.fd >= 0);
	assert_int_equal(poll(&fd, 1, -1), 1);
	service_trace_dispatch(trace);
}

TEST(one_that_failed_is_begun_again_after_a_while)
{
	uint32_t errors = 0;
	struct service_trace *trace;
	int64_t most_ms = MINUTE_MS;

	fake.start_error = -EIO;
	trace = begin(&errors);
	for (uint32_t failures = 1; failures <= 3; failures++, most_ms *= 2) {
		alert(trace);
		wait_and_dispatch(trace);
		assert_int_equal(errors, failures);
		alert(trace);
		assert_int_equal(service_trace_fd(trace), -1);
		assert_int_equal(service_trace_totals(trace).refused,
				 2 * failures);
		clock_skip(most_ms);
	}
	fake.start_error = 0;
	alert(trace);
	wait_and_dispatch(trace);
	assert_non_null(trace->tracer);
	assert_int_equal(service_trace_totals(trace).armed, 1);
	end(trace);
}

TEST(alerts_wait_until_it_is_loaded)
{
	uint32_t errors = 0;
	struct service_trace *trace;

	fake.start_error = 0;
	trace = begin(&errors);
	for (int i = 0; i < 3; i++)
		alert(trace);
	assert_int_equal(trace->n_waiting, 3);
	assert_int_equal(n_warnings, 0);
	wait_and_dispatch(trace);
	assert_int_equal(errors, 0);
	assert_int_equal(n_warnings, 1);
	assert_int_equal(trace->n_waiting, 0);
	assert_int_equal(service_trace_totals(trace).armed, 3);
	assert_int_equal(service_trace_fd(trace), fake.ends[0]);
	end(trace);
}

TEST(a_load_that_is_under_way_is_not_waited_for)
{
	uint32_t errors = 0;

	fake.start_error = 0;
	fake.is_slow = true;
	for (int i = 0; i < 100; i++) {
		struct service_trace *trace = begin(&errors);

		alert(trace);
		service_trace_stop(trace);
		assert_int_equal(service_trace_totals(trace).refused, 1);
		end(trace);
		assert_int_equal(n_warnings, 0);
	}
	fake.is_slow = false;
}
