/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* netobsctl flows --live: the records of a running service. */
#include "flows_request.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netobs/flow_reader.h>
#include <netobs/netobs.h>

#include "base/clock_ms.h"
#include "base/util.h"
#include "cli/client/client.h"
#include "service/signals.h"

struct live {
	struct control_connection connection;
	struct output *output;
	struct stream stream; /* lines that are passed on unchanged */
	bool is_passed_on;
	uint64_t left;	 /* records still to be shown */
	uint64_t missed; /* records missed, as the service reported */
	struct netobs_flow_reader *reader;
};

/* May run in a signal handler: a wait for the service sees the end of the connection. */
static void live_stop(void *arg)
{
	const struct live *live = arg;

	shutdown(live->connection.fd, SHUT_RDWR);
}

static void live_report(const struct live *live, const char *what)
{
	fprintf(stderr,
		"netobsctl flows: %s: %llu records are missing, which came faster than they were read\n",
		what, (unsigned long long)live->missed);
}

/* ---- Records ------------------------------------------------------------------------ */

/* @return the error of the writer to standard output: 0, or why it cannot write */
static int *output_error(struct live *live)
{
	return live->is_passed_on ? &live->stream.error : &live->output->error;
}

/* Without traffic, there is no write to notice that the reader has gone. */
static void check_reader(struct live *live)
{
	struct pollfd fd = { .fd = STDOUT_FILENO };

	if (poll(&fd, 1, 0) > 0 && fd.revents & (POLLERR | POLLHUP) &&
	    !*output_error(live))
		*output_error(live) = -EPIPE;
}

static void take_interval(struct live *live, struct json_value interval)
{
	const uint64_t missed = json_number(json_get(interval, "missed"));

	if (live->is_passed_on)
		stream_flush(&live->stream);
	else
		output_interval(live->output);
	check_reader(live);
	if (missed && !live->missed) {
		live->missed = missed;
		live_report(live, "warning");
	}
	live->missed = missed;
}

static int take_line(struct live *live, const char *line)
{
	struct json_value value = json_parse(line), interval;
	const struct netobs_flow *flow;

	if (!value.at)
		return -EBADMSG;
	interval = json_get(value, "interval");
	if (interval.at) {
		take_interval(live, interval);
	} else if (live->is_passed_on) {
		live->left--;
		stream_print(&live->stream, "%s\n", line);
	} else {
		live->left--;
		flow = netobs_flow_reader_read(live->reader, line);
		if (!flow)
			return -EBADMSG;
		output_record(live->output, &flow->record);
	}
	return *output_error(live);
}

/* @return 0: there are as many records, or the time is over; < 0: why it ended */
static int follow_records(struct live *live, uint32_t duration_ms)
{
	const int64_t end_ms = now_ms() + duration_ms;
	int err = 0;
	char *line;

	while (live->left && !err && (!duration_ms || left_ms(end_ms))) {
		err = control_receive(&live->connection,
				      duration_ms ? left_ms(end_ms) : -1, &line);
		if (err == -EINTR)
			err = 0;
		else if (!err)
			err = take_line(live, line);
	}
	return err == -EAGAIN ? 0 : err;
}

/* ---- All ---------------------------------------------------------------------------- */

static int open_output(struct live *live)
{
	if (!live->is_passed_on)
		return output_open(live->output);
	return stream_open_stdout(&live->stream);
}

static void say_failed(int error)
{
	fprintf(stderr, "netobsctl flows: cannot write to standard output: %s\n",
		strerror(-error));
}

/* @return 0, or why not all was written, which is reported unless it is -EPIPE */
static int close_output(struct live *live)
{
	if (!live->is_passed_on) {
		output_finish_all(live->output, 1, OUTPUT_FINISH_MS);
		output_close(live->output);
		return live->output->error;
	}
	stream_close(&live->stream);
	if (live->stream.error && live->stream.error != -EPIPE)
		say_failed(live->stream.error);
	return live->stream.error;
}

static void on_log(int level, const char *message, void *user)
{
	(void)level;
	(void)user;
	fprintf(stderr, "netobsctl flows: %s\n", message);
}

/* @return an exit status */
static int live_run(struct live *live, const struct flows_request *request)
{
	struct json_value answer;
	int r = control_connect(&live->connection, "flows", request->socket,
				"flows");
	int failed;

	r = r ?: control_answer(&live->connection, &answer);
	if (r < 0)
		return EXIT_FAILED;
	r = open_output(live);
	if (r < 0) {
		say_failed(r);
		return EXIT_FAILED;
	}
	signals_catch(live_stop, live);
	r = follow_records(live, request->duration_ms);
	failed = close_output(live);
	if (failed)
		r = failed;
	else if (r == -EPIPE && !signals_are_stopping() && live->left)
		fprintf(stderr, "netobsctl flows: the service has ended\n");
	else if (r < 0 && r != -EPIPE)
		fprintf(stderr, "netobsctl flows: %s\n", strerror(-r));
	signals_release();
	if (live->missed)
		live_report(live, "in all");
	return live->missed || (r < 0 && r != -EPIPE) ? EXIT_FAILED : EXIT_FINE;
}

int flows_live(const struct flows_request *request)
{
	struct live *live = calloc(1, sizeof(*live));
	int status;

	if (!live || netobs_flow_reader_new(&live->reader)) {
		free(live);
		return EXIT_FAILED;
	}
	live->output = request->outputs.list;
	live->output->on_log = on_log;
	live->is_passed_on = !live->output->kind;
	live->left = request->count ?: UINT64_MAX;
	live->connection.fd = -1;
	status = live_run(live, request);
	control_disconnect(&live->connection);
	netobs_flow_reader_free(live->reader);
	free(live);
	return status;
}
