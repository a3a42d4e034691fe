// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "fault.h"

#include <string.h>

void fault_note(struct fault *fault, const struct log *log, const char *name,
		int err)
{
	if (err && !fault->err)
		log_warning(log, "cannot write to %s: %s; trying again", name,
			    strerror(-err));
	if (!err && fault->err)
		log_warning(log, "%s can be written to again", name);
	fault->err = err ? fault->err ?: err : 0;
}
