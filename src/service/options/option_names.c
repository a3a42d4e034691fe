/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "args.h"

#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "catalogue/options.h"

#define SELECT_flows OPTION_SELECTED
#define SELECT_capture OPTION_SELECTED
#define SELECT_trace OPTION_SELECTED
#define NAMED(library, letter, name, ...) \
	{ #library ":", letter, name, __VA_ARGS__ },
#define NAMED_BY_same(member) NAMED, member
#define NAMED_BY_items(member) NAMED, member
#define NAMED_BY_flag(bit) OPTION_DROP
#define NAMED_BY_features OPTION_DROP
#define NAMED_BY_none OPTION_DROP
#define KEY_OF_key(section, name, change) #section, #name
#define KEY_OF_none NULL, NULL

static const struct option_name names[] = {
#define OPTION(letter, name, type, member, otherwise, verbs, library, key, help) \
	OPTION_IF(verbs,                                                         \
		  OPTION_CALL(NAMED_BY_##library, letter, name, KEY_OF_##key))
#define KEY(section, name, type, member, otherwise, library, change) \
	OPTION_CALL(NAMED_BY_##library, "", "", #section, #name)
#include "catalogue/options.def"
};

const struct option_name *option_name_of(const char *message,
					 const char **ret_rest)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const size_t len = strlen(names[i].library);

		if (strncmp(message, names[i].library, len) != 0)
			continue;
		*ret_rest = message + len;
		return &names[i];
	}
	return NULL;
}

void option_name_write(const char *message, char *ret_text, size_t size)
{
	const char *rest;
	const struct option_name *option = option_name_of(message, &rest);

	if (option && *option->name)
		snprintf(ret_text, size, "%s:%s",
			 args_label(option->letter, option->name).text, rest);
	else
		snprintf(ret_text, size, "%s", message);
}
