/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "args.h"

#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "catalogue/options.h"

#define SELECT_flows OPTION_SELECTED
#define SELECT_capture OPTION_SELECTED
#define SELECT_trace OPTION_SELECTED
#define MEMBER_interfaces(member) #member
#define MEMBER_packets(member) #member
#define MEMBER_own(member) #member
#define MEMBER_traces(member) "opts." #member

static const char of_library[] = "opts.";

static const struct option_name names[] = {
	{ "opts.interfaces", "i", "interface", "capture", "interface" },
	{ "opts.exclude", "x", "exclude", "capture", "exclude" },
	{ "opts.filter", "", "", "capture", "filter" },
	{ "opts.rtt", "", "rtt", "capture", "rtt" },
#define OPTION(letter, name, type, member, otherwise, verbs, help) \
	OPTION_IF(verbs, { MEMBER_##member, letter, name, NULL, NULL }, )
#define OPTION_KEY(section, key, change, letter, name, type, member, \
		   otherwise, verbs, help)                           \
	OPTION_IF(verbs, { MEMBER_##member, letter, name, #section, #key }, )
#include "catalogue/options.def"
};

struct args_label args_label(const char *letter, const char *name)
{
	struct args_label label;

	snprintf(label.text, sizeof(label.text), "%s%s", *letter ? "-" : "--",
		 *letter ? letter : name);
	return label;
}

const struct option_name *option_name_of(const char *message,
					 const char **ret_rest)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *name = names[i].member;
		size_t len;

		if (strncmp(name, of_library, strlen(of_library)) != 0)
			continue;
		name += strlen(of_library);
		len = strlen(name);
		if (strncmp(message, name, len) != 0 || message[len] != ':')
			continue;
		*ret_rest = message + len + 1;
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
