// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "names.h"

#include "base/util.h"

#include <assert.h>
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static const struct name {
	const char *key, *name;
} names[] = {
#define NAME(key, name) { key, name },
#include "catalogue/names.def"
};

/* L2Bytes: l2_bytes. */
static const char *make_name(const char *key, size_t len, char *buf)
{
	static const char prefix[] = "netobs.";
	char *to = buf + strlen(prefix);

	assert(len <= (NAME_MAX_LEN - sizeof(prefix)) / 2);
	memcpy(buf, prefix, strlen(prefix));
	for (size_t i = 0; i < len; i++) {
		bool is_upper = key[i] >= 'A' && key[i] <= 'Z';

		if (is_upper && i && !(key[i - 1] >= 'A' && key[i - 1] <= 'Z'))
			*to++ = '_';
		*to++ = (char)tolower((unsigned char)key[i]);
	}
	*to = '\0';
	return buf;
}

const char *names_find(const char *key, size_t len, char *buf)
{
	size_t from = 0, to = ARRAY_SIZE(names);

	while (from < to) {
		size_t i = (from + to) / 2;
		int order = strncmp(names[i].key, key, len) ?:
				    names[i].key[len] != '\0';

		if (!order)
			return names[i].name;
		if (order < 0)
			from = i + 1;
		else
			to = i;
	}
	return make_name(key, len, buf);
}
