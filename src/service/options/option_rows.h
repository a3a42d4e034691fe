/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Within the initializer of an array of struct args_option: the options of the verbs for which
 * there is "#define SELECT_verb OPTION_SELECTED", and the end of the array.
 *
 * OPTIONS_STRUCT          the configuration of the verb
 * OPTIONS_SHARED(member)  where that has the members of structs that others have, too; the
 *                         default is the member itself
 */
#ifndef OPTIONS_SHARED
#define OPTIONS_SHARED(member) member
#endif
#define OPTION_AT_interfaces(member) \
	offsetof(OPTIONS_STRUCT, OPTIONS_SHARED(member))
#define OPTION_AT_packets(member) OPTION_AT_interfaces(member)
#define OPTION_AT_sessions(member) OPTION_AT_interfaces(member)
#define OPTION_AT_traces(member) offsetof(OPTIONS_STRUCT, budget.member)
#define OPTION_AT_own(member) offsetof(OPTIONS_STRUCT, member)
#define OPTION(letter, name, type, member, otherwise, verbs, library, key, help) \
	OPTION_IF(verbs,                                                         \
		  ARGS_OPTION(letter, name, type, OPTION_AT_##member,            \
			      ARGS_SOURCE_##member, otherwise, help), )
#include "catalogue/options.def"
{
	.name = NULL
}
#undef OPTIONS_STRUCT
#undef OPTIONS_SHARED
