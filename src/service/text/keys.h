/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Keys that are pressed while a screen is shown: read one by one, and not echoed
 * into the picture.
 */
#ifndef NETOBS_SERVICE_TEXT_KEYS_H
#define NETOBS_SERVICE_TEXT_KEYS_H

enum { KEY_QUIT = 1, KEY_PAUSE = 2 };

/* Does nothing unless standard input is this process's terminal. */
void keys_start(void);

/* What keys_end() writes to the terminal; "": nothing. At most 63 bytes. */
void keys_farewell(const char *text);

/* Put the terminal back. May be called from a signal handler, and more than once. */
void keys_end(void);

/* What to poll for reading; -1: nothing. */
int keys_fd(void);

/* Read the keys that were typed. @return KEY_QUIT and KEY_PAUSE, as far as they are among them */
unsigned int keys_read(void);

#endif
