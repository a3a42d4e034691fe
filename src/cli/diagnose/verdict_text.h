/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A verdict for people: whose fault it is, how sure that is, and where the time goes. */
#ifndef NETOBS_CLI_DIAGNOSE_VERDICT_TEXT_H
#define NETOBS_CLI_DIAGNOSE_VERDICT_TEXT_H

#include <stdio.h>

#include <netobs/diagnosis.h>

enum { VERDICT_COLUMNS = 80 };

/**
 * Print a verdict, in printable ASCII and at most VERDICT_COLUMNS wide, whatever hosts have sent.
 *
 * @param filter  expression that chose the connections, for a command that would tell more; NULL: records
 *                of files are judged
 */
void verdict_text_print(FILE *file, const struct netobs_verdict *verdict,
			const char *filter);

#endif
