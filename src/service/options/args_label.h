/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Names of options in messages. */
#ifndef NETOBS_SERVICE_OPTIONS_ARGS_LABEL_H
#define NETOBS_SERVICE_OPTIONS_ARGS_LABEL_H

/* -x, or --name if it has no letter. */
struct args_label {
	char text[32];
};
struct args_label args_label(const char *letter, const char *name);

#endif
