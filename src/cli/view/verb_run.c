// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "verb_run.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <netobs/netobs.h>

#include "base/clock_ms.h"
#include "base/util.h"
#include "keys.h"
#include "service/signals.h"
#include "print.h"
#include "screen.h"

enum { FD_KEYS, FD_STDOUT, FD_OBSERVER, FD_OTHERS };

static void stop_observers(struct verb *verb)
{
	if (verb->ops->stop)
		verb->ops->stop(verb);
	else
		netobs_stop(verb->observer);
}

void verb_stop(void *object)
{
	struct verb *verb = object;

	if (!verb->is_stopping)
		stop_observers(verb);
	verb->is_stopping = true;
}

int verb_fail(const struct verb *verb, const char *doing, int error)
{
	args_report_failure(verb->name, verb->error_logged, doing, error);
	return error;
}

void verb_log(int level, const char *message, void *object)
{
	struct verb *verb = object;

	verb->error_logged |=
		args_report_log(verb->name, verb->verbose, level, message);
}

int verb_flush(struct verb *verb)
{
	verb->write_error = verb->write_error ?: text_flush(verb->name);
	if (verb->write_error)
		verb_stop(verb);
	return verb->write_error;
}

/* ---- The loop -------------------------------------------------------------------------- */

static size_t count_outputs(const struct verb *verb)
{
	return verb->outputs ? verb->outputs->n : 0;
}

static bool watches_stdout(const struct verb *verb)
{
	return !verb->is_reader_gone &&
	       (verb->watches_stdout ||
		(verb->outputs && output_list_has_stdout(verb->outputs)));
}

/* Without records, no write fails when the reader of standard output has gone. */
static nfds_t fill_fds(const struct verb *verb, struct pollfd *fds)
{
	nfds_t n = FD_OTHERS;

	fds[FD_KEYS] = (struct pollfd){ .fd = keys_fd(), .events = POLLIN };
	fds[FD_STDOUT] = (struct pollfd){
		.fd = watches_stdout(verb) ? STDOUT_FILENO : -1,
	};
	fds[FD_OBSERVER] = (struct pollfd){
		.fd = verb->observer ? netobs_fd(verb->observer) : -1,
		.events = POLLIN,
	};
	for (size_t i = 0; i < count_outputs(verb); i++)
		fds[n++] = (struct pollfd){
			.fd = output_fd(&verb->outputs->list[i]),
			.events = POLLIN,
		};
	for (size_t i = 0; i < verb->n_fds; i++)
		fds[n++] =
			(struct pollfd){ .fd = verb->fds[i], .events = POLLIN };
	return n;
}

/* @return false: the user wants to quit */
static bool take_keys(struct verb *verb)
{
	unsigned int keys;

	for (size_t i = 0; i < count_outputs(verb); i++) {
		struct output *output = &verb->outputs->list[i];

		if (output_takes_keys(output))
			return screen_follow_keys(output);
	}
	keys = keys_read();
	if (keys & KEY_QUIT)
		return false;
	if (keys & KEY_PAUSE) {
		live_pause(&verb->live);
		if (verb->outputs)
			output_list_pause(verb->outputs);
	}
	return true;
}

static void look_at_fds(struct verb *verb, const struct pollfd *fds)
{
	if (fds[FD_KEYS].revents && !take_keys(verb))
		verb_stop(verb);
	verb->is_reader_gone |= fds[FD_STDOUT].revents & (POLLERR | POLLHUP);
	for (size_t i = 0; i < count_outputs(verb); i++) {
		struct output *output = &verb->outputs->list[i];

		if (output->is_stdout && verb->is_reader_gone)
			output->error = output->error ?: -EPIPE;
		if (fds[FD_OTHERS + i].revents)
			output_ready(output);
	}
}

static int find_wait_ms(struct verb *verb)
{
	const int ms = verb->ops->prepare ? verb->ops->prepare(verb) : -1;

	return verb->is_stopping ? ms :
				   sooner_ms(ms, until_ms(verb->deadline_ms));
}

/* @return 0; < 0: it failed */
static int loop(struct verb *verb)
{
	cleanup_free struct pollfd *fds = calloc(
		FD_OTHERS + count_outputs(verb) + verb->n_fds, sizeof(*fds));
	int r = fds ? 0 : -ENOMEM;

	verb->deadline_ms = verb->duration_ms ? now_ms() + verb->duration_ms : 0;
	if (verb->is_stopping) /* a signal came before there was an observer */
		stop_observers(verb);
	while (r >= 0 || r == -EINTR) {
		const int wait_ms = find_wait_ms(verb);

		if (signals_poll(fds, fill_fds(verb, fds), wait_ms) > 0)
			look_at_fds(verb, fds);
		r = verb->ops->dispatch ? verb->ops->dispatch(verb) :
					  netobs_dispatch(verb->observer);
		if ((verb->outputs && output_list_has_failed(verb->outputs)) ||
		    (verb->deadline_ms && now_ms() >= verb->deadline_ms))
			verb_stop(verb);
	}
	return r == -ECANCELED ? 0 : r;
}

int verb_run(struct verb *verb)
{
	int r;

	signals_catch(verb_stop, verb);
	r = verb->ops->start(verb);
	if (!r) {
		r = loop(verb);
		if (r < 0)
			verb_fail(verb, "continue", r);
	}
	live_end(&verb->live);
	if (verb->ops->finish)
		r = verb->ops->finish(verb, r);
	signals_release();
	netobs_free(TAKE_PTR(verb->observer));
	if (verb->write_error && verb->write_error != -EPIPE)
		r = verb->write_error;
	return verb->status ?: r < 0 ? EXIT_FAILED : EXIT_FINE;
}
