// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib_module.h"

#include "lib_wait.h"
#include "base/clock_ms.h"

#include <sys/socket.h>

int module_set_up(void **state)
{
	struct module_fixture *f = calloc(1, sizeof(*f));
	struct collector *c = &f->collector;

	test_host_open(&f->host);
	f->host.make = test_flow;
	c->fd = -1;
	c->listener = test_listen(SOCK_STREAM | SOCK_NONBLOCK, &c->port);
	*state = f;
	return 0;
}

int module_tear_down(void **state)
{
	struct module_fixture *f = *state;

	if (f->module)
		sink_module_close(&netobs_sink_module, f->module);
	collector_hang_up(&f->collector);
	close_fd(&f->collector.listener);
	test_host_close(&f->host);
	free(f);
	return 0;
}

void module_open(struct module_fixture *f, const char *options)
{
	char text[256];

	snprintf(text, sizeof(text), "%s://127.0.0.1:%u%s%s", f->kind ?: "grpc",
		 f->collector.port, *options ? "?" : "", options);
	f->module = test_host_module(&f->host, &netobs_sink_module, text);
}

void module_turn(struct module_fixture *f, bool flush)
{
	assert_int_equal(netobs_sink_module.work(f->module, flush), 0);
	collector_serve(&f->collector);
	test_host_wait(&f->host, 1);
}

/* Until all records have been settled. */
void module_work_until_done(struct module_fixture *f)
{
	for (int64_t end = now_ms() + WAIT_MS;
	     f->host.acked < f->host.n_records;) {
		module_turn(f, true);
		if (now_ms() > end)
			fail_msg("%llu of %llu: %s",
				 (unsigned long long)f->host.acked,
				 (unsigned long long)f->host.n_records,
				 f->host.logged);
	}
}

void module_work_until_logged(struct module_fixture *f, const char *text)
{
	for (int64_t end = now_ms() + WAIT_MS; !strstr(f->host.logged, text);) {
		module_turn(f, true);
		if (now_ms() > end)
			fail_msg("no '%s': %s", text, f->host.logged);
	}
}

void module_work_until_calls(struct module_fixture *f, uint32_t calls)
{
	await_by(f->collector.n_rpcs >= calls, module_turn(f, true));
}

uint64_t module_counter(const struct module_fixture *f, const char *name)
{
	return test_counter(&netobs_sink_module, f->module, name);
}

void module_turns(struct module_fixture *f, int n)
{
	while (n-- > 0)
		module_turn(f, true);
}

void module_fail_then_recover(struct module_fixture *f,
			      const struct failure *failure)
{
	struct collector *c = &f->collector;

	c->answer = failure->answer;
	c->status = failure->status;
	c->message = failure->message;
	c->error = failure->error;
	c->is_early = failure->window;
	c->window = failure->window;
	module_open(f, "");
	f->host.n_records = 100;
	module_work_until_logged(f, failure->logged);
	assert_int_equal(f->host.acked, 0);
	c->answer = ANSWER_OK;
	c->is_early = false;
	c->is_unordered = true;
	module_work_until_done(f);
	assert_int_equal(c->n_taken, 100);
	assert_int_equal(test_host_lines(&f->host), 2);
	assert_non_null(strstr(f->host.logged, "accepts records again"));
	assert_true(module_counter(f, "failed_calls") > 0);
	assert_int_equal(f->host.refused, 0);
}
