/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What an option of the library is called on the command line and in the configuration. */
#ifndef NETOBS_SERVICE_OPTIONS_OPTION_NAMES_H
#define NETOBS_SERVICE_OPTIONS_OPTION_NAMES_H

#include <stddef.h>

struct option_name {
	const char *library;	   /* with the colon that follows in messages */
	const char *letter, *name; /* of commands; no name: they have none */
	const char *section, *key; /* of the configuration; NULL: it has none */
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
