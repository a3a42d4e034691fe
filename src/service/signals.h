/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * SIGINT, SIGTERM and SIGHUP stop what runs; a second one ends the program, as SIGQUIT and errors
 * do, and the terminal is put back before. SIGHUP can be for files to be read again.
 */
#ifndef NETOBS_SERVICE_SIGNALS_H
#define NETOBS_SERVICE_SIGNALS_H

#include <poll.h>
#include <stdbool.h>

/* Call @stop, which is safe in a signal handler, with @object. */
void signals_catch(void (*stop)(void *object), void *object);

/* Call @restore_by, in a signal handler, before a signal ends the program; NULL: nothing. */
void signals_restore_by(void (*restore_by)(void));

/* @return whether a signal has called @stop */
bool signals_are_stopping(void);

/* From now on, SIGHUP does not stop, even where nohup(1) was asked for. */
void signals_catch_hangup(void);

/* @return whether SIGHUP has come since the last call */
bool signals_take_hangup(void);

/*
 * From now on, @number is delivered during signals_poll() only: a signal that comes after the
 * caller has checked for it interrupts the next wait.
 */
void signals_hold(int number);

/* poll(2), in which signals that are held arrive. */
int signals_poll(struct pollfd *fds, nfds_t n, int timeout_ms);

/* Hold none, and have those arrive that came meanwhile. */
void signals_release_held(void);

/* Back to the default, and hold none; to be called before the object is freed. */
void signals_release(void);

/* @return whether the terminal's size has changed since the last call */
bool signals_take_resize(void);

#endif
