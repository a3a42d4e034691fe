// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The live service map, over an observer that delivers what a test wants. */
#include "lib_test.h"

#include <sys/eventfd.h>

#include <netobs/netobs.h>
#include <netobs/session.h>

#include "lib_stdout.h"
#include "base/json_reader.h"
#include "service/options/privileges.h"
#include "cli/services/services_view.h"

enum { DRAINS = 3 };

/* The observer: it delivers a packet of the same conversation in each drain. */
static struct {
	struct netobs_opts opts;
	int fd, drains;
	int sessions_error; /* of netobs_sessions_new() */
} fake;

int __wrap_netobs_new(const struct netobs_opts *opts, struct netobs **ret_ctx);
int __wrap_netobs_start(struct netobs *ctx);
int __wrap_netobs_fd(struct netobs *ctx);
int __wrap_netobs_dispatch(struct netobs *ctx);
void __wrap_netobs_stop(struct netobs *ctx);
void __wrap_netobs_free(struct netobs *ctx);
int __wrap_netobs_sessions_new(const struct netobs_sessions_opts *opts,
			       struct netobs **ret_sessions);
void __wrap_privileges_drop(const struct args_list *interfaces,
			    unsigned int keep);

int __wrap_netobs_new(const struct netobs_opts *opts, struct netobs **ret_ctx)
{
	fake.opts = *opts;
	*ret_ctx = (struct netobs *)&fake;
	return 0;
}

int __wrap_netobs_start(struct netobs *ctx)
{
	(void)ctx;
	return 0;
}

int __wrap_netobs_fd(struct netobs *ctx)
{
	(void)ctx;
	return fake.fd;
}

int __wrap_netobs_dispatch(struct netobs *ctx)
{
	const struct netobs_flow flow = { .sz = sizeof(flow),
					  .src = { [15] = 1 },
					  .dst = { [15] = 2 },
					  .src_port = 40000,
					  .dst_port = 53,
					  .proto = 17,
					  .packets = 1,
					  .bytes = 100,
					  .start_ns = 1000000000,
					  .end_ns = 2000000000 };

	(void)ctx;
	if (fake.drains++ == DRAINS)
		return -ECANCELED;
	fake.opts.on_record(&flow.record, fake.opts.user);
	fake.opts.on_interval(fake.opts.user);
	return 1;
}

void __wrap_netobs_stop(struct netobs *ctx)
{
	(void)ctx;
}

void __wrap_netobs_free(struct netobs *ctx)
{
	(void)ctx;
}

int __wrap_netobs_sessions_new(const struct netobs_sessions_opts *opts,
			       struct netobs **ret_sessions)
{
	(void)ret_sessions;
	if (fake.sessions_error == -EINVAL && opts->error)
		snprintf(*opts->error, sizeof(*opts->error), "no observer");
	return fake.sessions_error;
}

void __wrap_privileges_drop(const struct args_list *interfaces, unsigned int keep)
{
	(void)interfaces;
	(void)keep;
}

/* Standard error goes to @errors. */
static void run(const struct map_options *options, int sessions_error,
		FILE *errors)
{
	const int saved = dup(STDERR_FILENO);
	int status;

	assert_true(saved >= 0);
	memset(&fake, 0, sizeof(fake));
	fake.sessions_error = sessions_error;
	fake.fd = eventfd(1, EFD_CLOEXEC);
	assert_true(fake.fd >= 0);
	assert_true(dup2(fileno(errors), STDERR_FILENO) >= 0);
	status = services_of_host(options);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(fake.fd);
	fflush(stdout);
	assert_int_equal(status, 0);
}

/* Of a map in one object a line. */
static uint64_t number_of_edge(const char *written, const char *name)
{
	const char *line = strstr(written, "{");
	const char *end = line ? strchr(line, '\n') : NULL;
	char text[4096];
	struct json_value edge;

	assert_non_null(end);
	snprintf(text, sizeof(text), "%.*s", (int)(end - line), line);
	edge = json_parse(text);
	assert_non_null(edge.at);
	assert_non_null(json_get(edge, name).at);
	return json_number(json_get(edge, name));
}

TEST_WITH(a_conversation_of_several_drains_counts_once, stdout_make_pipe,
	  stdout_restore)
{
	const struct map_options options = { .output = SERVICES_JSON,
					     .interval_ms = 3600000 };
	FILE *errors = tmpfile();
	const char *written;

	assert_non_null(errors);
	run(&options, -ENOTSUP, errors);
	fclose(errors);
	written = stdout_written(*state);
	assert_int_equal(number_of_edge(written, "Packets"), DRAINS);
	assert_int_equal(number_of_edge(written, "Conversations"), 1);
}

TEST_WITH(sessions_that_cannot_be_observed_are_reported, stdout_make_pipe,
	  stdout_restore)
{
	static const struct {
		int error;
		const char *why;
	} cases[] = {
		{ -EINVAL, "no observer" },
		{ -ENOMEM, "Cannot allocate memory" },
	};
	const struct map_options options = { .output = SERVICES_JSON,
					     .interval_ms = 3600000 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		FILE *errors = tmpfile();
		char text[512] = "", expected[256];

		assert_non_null(errors);
		run(&options, cases[i].error, errors);
		rewind(errors);
		assert_non_null(fgets(text, sizeof(text), errors));
		snprintf(expected, sizeof(expected),
			 "netobsctl map: connections and errors are not known: %s\n",
			 cases[i].why);
		assert_string_equal(text, expected);
		fclose(errors);
	}
}
