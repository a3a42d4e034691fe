/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A reader of IPFIX files (RFC 5655), in the shared object of the sinks, so that netobsctl needs
 * libfixbuf only for that.
 */
#ifndef NETOBS_SINKS_IPFIX_FILE_MODULE_H
#define NETOBS_SINKS_IPFIX_FILE_MODULE_H

#include "base/shared_object.h"

#include <stddef.h>
#include <stdio.h>

#define IPFIX_FILE_SYMBOL "netobs_ipfix_file"
extern const struct ipfix_file_module netobs_ipfix_file;

struct ipfix_file;

struct ipfix_file_module {
	struct loaded loaded;

	/**
	 * Read messages from @stream, one file at a time.
	 *
	 * @param stream      at a message; stays the caller's, until close()
	 * @param on_warning  of what does not end the file, such as messages that are missing
	 * @param ret_file    yours: close()
	 * @return 0; -ENOMEM
	 */
	int (*open)(FILE *stream,
		    void (*on_warning)(const char *message, void *user),
		    void *user, struct ipfix_file **ret_file);

	/**
	 * Read a data record, as a JSON object whose members have the names of information elements;
	 * elements without a name have that of their numbers. Lists are left out, and so
	 * are records of options.
	 *
	 * @param ret_json  valid until the next call
	 * @return 1; 0: there are no more; -EBADMSG: the file is damaged, and @why says how
	 */
	int (*next)(struct ipfix_file *file, const char **ret_json, char *why,
		    size_t why_size);

	void (*close)(struct ipfix_file *file); /* NULL is fine */
};

#endif
