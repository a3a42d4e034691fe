/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Options of a command as a table, which drives both the parser and -h.
 */
#ifndef NETOBS_SERVICE_OPTIONS_ARGS_H
#define NETOBS_SERVICE_OPTIONS_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit status of every command. */
enum { EXIT_FINE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* What an option's argument is, and the type of the field it is stored in. */
enum args_type {
	ARGS_SWITCH, /* none; bool */
	ARGS_REPEAT, /* none, may be repeated; uint32_t */
	ARGS_STRING, /* const char * */
	ARGS_LIST,   /* may be repeated; struct args_list */
	ARGS_SECONDS, /* or with a unit: VALUE_DURATION; uint32_t in milliseconds */
	ARGS_NUMBER,   /* at least 1; uint64_t */
	ARGS_NUMBER32, /* at least 1; uint32_t */
	ARGS_BYTES,    /* with K, M or G; uint64_t */
	ARGS_CHOICE,   /* one of choices; int, its index */
	ARGS_MODE, /* none, or =one of choices from 1 on; int: 1, or its index */
};

/* NULL-terminated; the strings are those of argv. */
struct args_list {
	const char **items;
	size_t n;
};

struct args_option {
	char letter; /* 0: none */
	const char *name;
	enum args_type type;
	size_t offset; /* of the field in the command's configuration */
	const char *metavar;
	const char *const *choices; /* NULL-terminated */
	const char *help;
};

struct args_command {
	const char *name;
	const char *operands; /* for the usage, or NULL */
	const char *summary;
	const struct args_option *options; /* up to one without a name */
	const char *positional;		   /* why an operand is refused */
	size_t operand_list; /* offset of a struct args_list to take them; 0: none */
	const char *notes; /* printed after the options, or NULL */
};

enum args_result {
	ARGS_RUN,   /* go on */
	ARGS_HELP,  /* help was asked for and printed */
	ARGS_WRONG, /* a message was printed */
};

/* -h and --help are understood without being in the table. */
enum args_result args_parse(const struct args_command *command, int argc,
			    char **argv, void *config);

void args_list_clear(struct args_list *list);

/**
 * Store a value as on the command line.
 *
 * @return 0; -ENOMEM; < 0: it is not args_expectation()
 */
int args_store(const struct args_option *option, const char *text, void *config);

/** @return what the argument of @option must be, such as "a whole number, at least 1" */
const char *args_expectation(const struct args_option *option);

/* Print "netobsctl COMMAND: ..." and where to find help, to stderr. */
void args_complain(const struct args_command *command, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* End the process, which has not begun anything: the options are not at fault. */
_Noreturn void args_out_of_memory(const struct args_command *command);

#endif
