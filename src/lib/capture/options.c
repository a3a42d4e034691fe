// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "capture.h"

#include "base/options.h"
#include "base/util.h"
#include "bpf/capture.h"

#include <errno.h>
#include <string.h>

enum {
	BUFFER_DEFAULT = 16 << 20,
	BUFFER_MAX = 1 << 30,
};

void capture_options_copy(const struct netobs_capture_opts *opts,
			  struct netobs_capture_opts *ret_opts)
{
	struct netobs_capture_opts copy = { 0 };

	memcpy(&copy, opts, min_u64(opts->sz, sizeof(copy)));
	copy.sz = sizeof(copy);
	copy.snap_length = copy.snap_length ?: CAPTURE_SNAP_MAX;
	copy.buffer_bytes = copy.buffer_bytes ?: BUFFER_DEFAULT;
	*ret_opts = copy;
}

int capture_options_check(const struct netobs_capture_opts *opts,
			  const struct log *log)
{
	const struct option_check checks[] = {
		{ "on_packet", "it is not set", !opts->on_packet },
		{ "direction", "it is none of enum netobs_direction",
		  (unsigned int)opts->direction >= NETOBS_DIRECTIONS },
		{ "attach_order", "it is none of enum netobs_attach_order",
		  opts->attach_order > NETOBS_ATTACH_LAST },
		{ "flags", "one is not in enum netobs_capture_flag",
		  opts->flags & ~(uint64_t)NETOBS_CAPTURE_PROCESSES },
		{ "snap_length", "it is more than 262144",
		  opts->snap_length > CAPTURE_SNAP_MAX },
		{ "buffer_bytes", "it is not from 1 MiB to 1 GiB",
		  opts->buffer_bytes < CAPTURE_BUFFER_MIN ||
			  opts->buffer_bytes > BUFFER_MAX },
	};

	return option_check(checks, ARRAY_SIZE(checks), log);
}
