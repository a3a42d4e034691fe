/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>

#include "base/util.h"

static void (*volatile stop_object)(void *object);
static void *volatile stoppable;
static void (*volatile restore_terminal)(void);
static volatile sig_atomic_t stopping, resized, hung_up;
static sigset_t held; /* empty at first */

static void restore_signals(void)
{
	if (restore_terminal)
		restore_terminal();
}

static void on_stop(int number)
{
	int saved = errno;

	if (stopping) {
		restore_signals();
		signal(number, SIG_DFL);
		raise(number); /* delivered when this handler returns */
	} else {
		stopping = 1;
		stop_object(stoppable);
	}
	errno = saved;
}

/* The terminal is as before, whatever the program does not live to do. */
static void on_abort(int number)
{
	restore_signals();
	signal(number, SIG_DFL);
	raise(number); /* delivered when this handler returns */
}

static void on_resize(int number)
{
	(void)number;
	resized = 1;
}

static void on_hangup(int number)
{
	(void)number;
	hung_up = 1;
}

static void set_handler(int number, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler };

	sigemptyset(&action.sa_mask);
	sigaction(number, &action, NULL);
}

static bool is_handled_by(int number, void (*handler)(int))
{
	struct sigaction action;

	return sigaction(number, NULL, &action) == 0 &&
	       action.sa_handler == handler;
}

/* nohup(1) asks for it. */
static bool is_ignored(int number)
{
	return is_handled_by(number, SIG_IGN);
}

static const int aborting[] = { SIGQUIT, SIGABRT, SIGSEGV, SIGBUS };

void signals_catch(void (*stop)(void *object), void *object)
{
	stop_object = stop;
	stoppable = object;
	stopping = 0;
	set_handler(SIGINT, on_stop);
	set_handler(SIGTERM, on_stop);
	if (!is_ignored(SIGHUP))
		set_handler(SIGHUP, on_stop);
	set_handler(SIGWINCH, on_resize);
	for (size_t i = 0; i < ARRAY_SIZE(aborting); i++)
		if (is_handled_by(aborting[i], SIG_DFL))
			set_handler(aborting[i], on_abort);
}

void signals_restore_by(void (*restore_by)(void))
{
	restore_terminal = restore_by;
}

bool signals_are_stopping(void)
{
	return stopping;
}

void signals_catch_hangup(void)
{
	set_handler(SIGHUP, on_hangup);
}

bool signals_take_hangup(void)
{
	if (!hung_up)
		return false;
	hung_up = 0; /* a signal that comes now is served with this one */
	return true;
}

void signals_hold(int number)
{
	sigaddset(&held, number);
	sigprocmask(SIG_BLOCK, &held, NULL);
}

int signals_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	const struct timespec timeout = {
		.tv_sec = timeout_ms / 1000,
		.tv_nsec = timeout_ms % 1000 * NSEC_PER_MSEC,
	};
	sigset_t arriving;

	sigprocmask(SIG_BLOCK, NULL, &arriving);
	for (int number = 1; number < NSIG; number++)
		if (sigismember(&held, number) == 1)
			sigdelset(&arriving, number);
	return ppoll(fds, n, timeout_ms < 0 ? NULL : &timeout, &arriving);
}

void signals_release_held(void)
{
	sigprocmask(SIG_UNBLOCK, &held, NULL);
	sigemptyset(&held);
}

void signals_release(void)
{
	signals_release_held();
	set_handler(SIGINT, SIG_DFL);
	set_handler(SIGTERM, SIG_DFL);
	if (!is_ignored(SIGHUP))
		set_handler(SIGHUP, SIG_DFL);
	set_handler(SIGWINCH, SIG_DFL);
	for (size_t i = 0; i < ARRAY_SIZE(aborting); i++)
		if (is_handled_by(aborting[i], on_abort))
			set_handler(aborting[i], SIG_DFL);
	stoppable = NULL;
}

bool signals_take_resize(void)
{
	bool taken = resized;

	resized = 0;
	return taken;
}
