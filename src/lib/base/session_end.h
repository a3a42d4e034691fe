/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* How connections fail, for all that counts them. */
#ifndef NETOBS_BASE_SESSION_END_H
#define NETOBS_BASE_SESSION_END_H

#include <stdint.h>

#include <netobs/session.h>

enum session_failure {
	SESSION_FINE,
	SESSION_REFUSED,
	SESSION_RESET, /* by either end */
	SESSION_TIMED_OUT,
	SESSION_BROKEN, /* another error */
};

/* @ended: enum netobs_session_ended */
static inline enum session_failure session_failure(unsigned int ended)
{
	switch (ended) {
	case NETOBS_SESSION_REFUSED:
		return SESSION_REFUSED;
	case NETOBS_SESSION_RESET:
	case NETOBS_SESSION_ABORTED:
		return SESSION_RESET;
	case NETOBS_SESSION_TIMEOUT:
		return SESSION_TIMED_OUT;
	case NETOBS_SESSION_FAILED:
		return SESSION_BROKEN;
	default:
		return SESSION_FINE;
	}
}

#endif
