/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Options of a command as a table, which drives both the parser and -h.
 */
#ifndef NETOBS_SERVICE_OPTIONS_ARGS_H
#define NETOBS_SERVICE_OPTIONS_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "catalogue/options.h"

/* Exit status of every command. */
enum { EXIT_FINE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* The kind of an option's argument, and the type of the field that stores it. */
enum args_type {
	ARGS_SWITCH, /* none; bool */
	ARGS_REPEAT, /* none, may be repeated; uint32_t */
	ARGS_STRING, /* const char * */
	ARGS_LIST,   /* may be repeated; struct args_list */
	ARGS_SECONDS, /* or with a unit: VALUE_DURATION; uint32_t in milliseconds */
	ARGS_NUMBER,   /* at least 1; uint64_t */
	ARGS_NUMBER32, /* at least 1; uint32_t */
	ARGS_BYTES,    /* with K, M or G; uint64_t */
	ARGS_CHOICE,   /* one of choices; int: its index */
};

/* NULL-terminated; the strings are those of argv. */
struct args_list {
	const char **items;
	size_t n;
};

/* The source of packets that an option is for; the later ones, of packets of live interfaces only. */
enum args_source {
	ARGS_SOURCE_NONE,
	ARGS_SOURCE_PACKETS,
	ARGS_SOURCE_INTERFACES,
};

struct args_option {
	char letter[2]; /* "": none */
	const char *name;
	enum args_type type;
	enum args_source source;
	size_t offset; /* offset of the field in the command's configuration */
	const char *metavar;
	const char *const *choices; /* NULL-terminated */
	const char *otherwise;	    /* the default; "": none */
	const char *help;
};

/* A row of catalogue/options.def as a struct args_option, with the parts that depend on its type. */
#define ARGS_OPTION(a_letter, a_name, a_type, an_offset, a_source, a_default, \
		    a_help)                                                   \
	{                                                                     \
		.letter = a_letter, .name = a_name, ARGS_TYPE_##a_type,       \
		.source = a_source, .offset = an_offset,                      \
		.metavar = OPTION_VALUE_##a_type, .otherwise = a_default,     \
		.help = a_help                                                \
	}
#define ARGS_TYPE_switch .type = ARGS_SWITCH
#define ARGS_TYPE_repeat .type = ARGS_REPEAT
#define ARGS_TYPE_string(value) .type = ARGS_STRING
#define ARGS_TYPE_list(value) .type = ARGS_LIST
#define ARGS_TYPE_seconds .type = ARGS_SECONDS
#define ARGS_TYPE_number(value) .type = ARGS_NUMBER
#define ARGS_TYPE_number32(value) .type = ARGS_NUMBER32
#define ARGS_TYPE_bytes .type = ARGS_BYTES
#define ARGS_TYPE_choice(list) \
	.type = ARGS_CHOICE, .choices = ARGS_WORDS(CHOICES_##list(OPTION_COMMA))
#define ARGS_WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define ARGS_SOURCE_interfaces(member) ARGS_SOURCE_INTERFACES
#define ARGS_SOURCE_packets(member) ARGS_SOURCE_PACKETS
#define ARGS_SOURCE_sessions(member) ARGS_SOURCE_NONE
#define ARGS_SOURCE_traces(member) ARGS_SOURCE_NONE
#define ARGS_SOURCE_own(member) ARGS_SOURCE_NONE

struct args_command {
	const char *name;
	const char *operands; /* for the usage, or NULL */
	const char *summary;
	const struct args_option *options; /* up to one without a name */
	const char *positional;		   /* why an operand is refused */
	size_t operand_list; /* offset of a struct args_list to take them; 0: none */
	size_t given; /* offset of a uint64_t with a bit for each option given; 0: none */
	const char *notes; /* printed after the options, or NULL */
};

/* ARGS_RUN, or the exit status of a command that has nothing to do. */
enum args_result {
	ARGS_RUN = -1,
	ARGS_HELP = EXIT_FINE,	 /* help was asked for and printed */
	ARGS_WRONG = EXIT_USAGE, /* a message was printed */
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

/** @return a description of the argument that @option takes, such as "a whole number, at least 1" */
const char *args_expectation(const struct args_option *option);

/**
 * @param given  what args_parse() stored
 * @return the first option that was given and is about @source or more; NULL: there is none
 */
const struct args_option *args_find_given(const struct args_command *command,
					  uint64_t given,
					  enum args_source source);

/* Print "netobsctl COMMAND: ..." and where to find help, to stderr. */
void args_complain(const struct args_command *command, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* @option was given without @other, and has no effect. */
void args_complain_alone(const struct args_command *command, const char *option,
			 const char *other);

/** @return the least severe level to log, by how often -v was given */
int args_log_level(uint32_t verbose);

/**
 * Print a log line of the library on stderr, if args_log_level(@p verbose) takes it. An option has the
 * name that it has on the command line.
 *
 * @return whether it is an error
 */
bool args_report_log(const char *command, uint32_t verbose, int level,
		     const char *message);

/**
 * Report that a command cannot go on, unless it @is_known why, and what -EPERM takes.
 *
 * @param doing  such as "start"
 */
void args_report_failure(const char *command, bool is_known, const char *doing,
			 int error);

/** @return the exit status of a command whose options the library refuses with @error */
int args_refusal_status(int error);

/* End the process, which has not begun anything: the options are not at fault. */
_Noreturn void args_out_of_memory(const struct args_command *command);

/* ---- Names of options in messages ------------------------------------------------------ */

/* -x, or --name if it has no letter. */
struct args_label {
	char text[32];
};
struct args_label args_label(const char *letter, const char *name);

/* ---- Names of the library's options on the command line and in the configuration ------- */

struct option_name {
	const char *member; /* that has its value; "opts.NAME": it is NAME in the library's messages */
	const char *letter, *name; /* option of commands; no name: none */
	const char *section, *key; /* key of the configuration; NULL: none */
};

/**
 * The library's messages about an option begin with its name there.
 *
 * @param ret_rest  the text behind that
 * @return NULL: @message is about no option
 */
const struct option_name *option_name_of(const char *message,
					 const char **ret_rest);

/** Write a message of the library for the command line: about -i, not interfaces. */
void option_name_write(const char *message, char *ret_text, size_t size);

#endif
