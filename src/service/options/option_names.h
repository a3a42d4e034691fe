/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Names of the library's options on the command line and in the configuration. */
#ifndef NETOBS_SERVICE_OPTIONS_OPTION_NAMES_H
#define NETOBS_SERVICE_OPTIONS_OPTION_NAMES_H

#include <stddef.h>

struct option_name {
	const char *library; /* name in the library's messages, with the colon that follows */
	const char *letter, *name; /* option of commands; no name: none */
	const char *section, *key; /* key of the configuration; NULL: none */
};

/**
 * The library's messages about an option begin with its name there.
 *
 * @param ret_rest  the text behind that
 * @return NULL: @message is about no option
 */
const struct option_name *option_name_of(const char *message,
					 const char **ret_rest);

/** Write a message of the library for the command line: about -i, not interfaces. */
void option_name_write(const char *message, char *ret_text, size_t size);

#endif
