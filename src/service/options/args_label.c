/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "args.h"

#include <stdio.h>

struct args_label args_label(const char *letter, const char *name)
{
	struct args_label label;

	snprintf(label.text, sizeof(label.text), "%s%s", *letter ? "-" : "--",
		 *letter ? letter : name);
	return label;
}
