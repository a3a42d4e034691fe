/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef NETOBS_SERVICE_TEXT_DROP_TEXT_H
#define NETOBS_SERVICE_TEXT_DROP_TEXT_H

#include <string.h>

#include <netobs/drop.h>

/* Without the prefix that nearly all names have. */
static inline const char *drop_cause_text(const char *cause)
{
	static const char prefix[] = "SKB_DROP_REASON_";
	const size_t len = sizeof(prefix) - 1;

	return strncmp(cause, prefix, len) ? cause : cause + len;
}

/* "NO_SOCKET"; "": the kernel states none */
static inline const char *drop_reason_text(const struct netobs_drop *drop)
{
	return drop_cause_text(drop->cause);
}

#endif
