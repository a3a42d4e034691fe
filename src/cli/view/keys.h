/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Keys that are pressed while a screen is shown: read one by one, and not echoed
 * into the picture.
 */
#ifndef NETOBS_CLI_VIEW_KEYS_H
#define NETOBS_CLI_VIEW_KEYS_H

enum { KEY_QUIT = 1, KEY_PAUSE = 2 };

/* Does nothing unless standard input is this process's terminal. */
void keys_start(void);

/* Set the text that keys_end() writes to the terminal; "": none. At most 63 bytes. */
void keys_farewell(const char *text);

/* Put the terminal back. May be called from a signal handler, and more than once. */
void keys_end(void);

/* @return the descriptor to poll for reading; -1: none */
int keys_fd(void);

/* Read the keys that were typed. @return KEY_QUIT and KEY_PAUSE, as far as they are among them */
unsigned int keys_read(void);

#endif
