/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "cmd.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "service/mapping_watch.h"
#include "service/options/args.h"

struct options {
	const char *socket, *netns;
	struct args_list operands;
	uint32_t interval_ms, duration_ms, rows;
	int output;
	bool once;
};

static const struct args_option options[] = {
#define SELECT_map OPTION_SELECTED
#define OPTIONS_STRUCT struct options
#include "service/options/option_rows.h"
};

static const struct args_command command = {
	.name = "map",
	.summary = "Show what NAT of this host translates, live, or look it up",
	.options = options,
	.operands = "[lookup TUPLE]",
	.operand_list = offsetof(struct options, operands),
	.notes = "TUPLE is of either direction, before or after translation, or a part of it:\n"
		 "'10.0.0.2:40000 > 192.0.2.1:80/tcp', '192.0.2.1:80', '[2001:db8::1]:443/udp', 'icmp'.\n"
		 "A running service with 'nat = yes' is asked; it also knows what ended in the last\n"
		 "minute. Without one, lookup and --once list the kernel's table of connections.\n",
};

/* All words behind "lookup" are the tuple. */
static enum args_result read_tuple(const struct args_list *operands, char *text,
				   size_t size)
{
	size_t len = 0;

	if (strcmp(operands->items[0], "lookup") || operands->n < 2) {
		args_complain(&command, "'%s': it is 'lookup TUPLE'",
			      operands->items[0]);
		return ARGS_WRONG;
	}
	for (size_t i = 1; i < operands->n && len < size; i++)
		len += (size_t)snprintf(text + len, size - len, "%s%s",
					len ? " " : "", operands->items[i]);
	return ARGS_RUN;
}

int cmd_map(int argc, char **argv)
{
	struct options wanted = { .interval_ms = 1000 };
	enum args_result result = args_parse(&command, argc, argv, &wanted);
	char tuple[256] = "";

	if (result == ARGS_RUN && wanted.operands.n)
		result = read_tuple(&wanted.operands, tuple, sizeof(tuple));
	args_list_clear(&wanted.operands);
	if (result != ARGS_RUN)
		return result;
	return mapping_watch(&(struct mapping_request){
		.socket = wanted.socket,
		.netns = wanted.netns,
		.tuple = *tuple ? tuple : NULL,
		.once = wanted.once || *tuple,
		.is_json = wanted.output == 1,
		.interval_ms = wanted.interval_ms,
		.duration_ms = wanted.duration_ms,
		.rows = wanted.rows,
	});
}
