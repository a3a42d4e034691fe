/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Within the initializer of an array of struct args_option: the options of the verbs for which
 * there is "#define SELECT_verb OPTION_SELECTED", and the end of the array.
 *
 * OPTIONS_STRUCT  the configuration of the verb. Members that others have, too, are in a struct
 *                 flows_config "config", struct session_choice "choice", or struct
 *                 netobs_trace_opts "traced"
 */
#define OPTION_AT_interfaces(member) offsetof(OPTIONS_STRUCT, config.member)
#define OPTION_AT_packets(member) offsetof(OPTIONS_STRUCT, config.member)
#define OPTION_AT_sessions(member) offsetof(OPTIONS_STRUCT, choice.member)
#define OPTION_AT_traces(member) offsetof(OPTIONS_STRUCT, traced.member)
#define OPTION_AT_own(member) offsetof(OPTIONS_STRUCT, member)
#define OPTION(letter, name, type, member, otherwise, verbs, help)    \
	OPTION_IF(verbs,                                              \
		  ARGS_OPTION(letter, name, type, OPTION_AT_##member, \
			      ARGS_SOURCE_##member, otherwise, help), )
#include "catalogue/options.def"
{
	.name = NULL
}
#undef OPTIONS_STRUCT
