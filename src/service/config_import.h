/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What the files of `netobsctl config import-env` share. */
#ifndef NETOBS_SERVICE_CONFIG_IMPORT_H
#define NETOBS_SERVICE_CONFIG_IMPORT_H

/* On stderr. */
void report_variable(const char *variable, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* @return its value without characters that would end a line; @otherwise: it has none */
const char *get_variable(const char *variable, const char *otherwise);

/* @return [capture] default_action for what no rule of the filter matches; NULL: there are no rules */
const char *import_default_action(void);

/* Print a [filter] section for each rule. */
void import_filters(void);

#endif
