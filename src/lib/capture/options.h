/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The options of a capture. */
#ifndef NETOBS_CAPTURE_OPTIONS_H
#define NETOBS_CAPTURE_OPTIONS_H

#include "base/log.h"

#include <netobs/capture.h>

enum { CAPTURE_BUFFER_MIN = 1 << 20 };

/* Copy the options that the caller knows, with defaults in place. */
void capture_options_copy(const struct netobs_capture_opts *opts,
			  struct netobs_capture_opts *ret_opts);

/* @return 0; -EINVAL, which is logged, with the option */
int capture_options_check(const struct netobs_capture_opts *opts,
			  const struct log *log);

#endif
