// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "options.h"

#include "util.h"

#include <errno.h>
#include <string.h>

int sized_check(const void *opts, size_t known, const struct log *log)
{
	const char *bytes = opts;
	const size_t sz = *(const size_t *)opts;

	if (sz < sizeof(sz)) {
		log_error(log, "sz: %zu is not the size of the options", sz);
		return -EINVAL;
	}
	for (size_t i = known; i < sz; i++) {
		if (!bytes[i])
			continue;
		log_error(log,
			  "sz: options are set that libnetobs %s does not know",
			  NETOBS_VERSION);
		return -EINVAL;
	}
	return 0;
}

int option_check(const struct option_check *checks, size_t n,
		 const struct log *log)
{
	for (size_t i = 0; i < n; i++) {
		if (!checks[i].is_wrong)
			continue;
		log_error(log, "%s: %s", checks[i].name, checks[i].why);
		return -EINVAL;
	}
	return 0;
}

int sized_fill(void *to, const void *from, size_t known)
{
	size_t sz = *(const size_t *)to;

	if (sz < sizeof(sz))
		return -EINVAL;
	sz = min_u64(sz, known);
	memcpy(to, from, sz);
	*(size_t *)to = sz;
	return 0;
}
