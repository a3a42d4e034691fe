/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Within a function with *config and *opts: gives the library the options in catalogue/options.def
 * of the verbs for which there is "#define SELECT_verb OPTION_SELECTED". OPTIONS_SHARED(member):
 * where @config has the members of structs that others have, too; the default is the member itself.
 */
#ifndef OPTIONS_SHARED
#define OPTIONS_SHARED(member) member
#endif
#define FILL_SAME(to, from) opts->to = (__typeof__(opts->to))config->from;
#define FILL_ITEMS(to, from) opts->to = config->from.items;
#define FILL_FLAG(bit, from) opts->flags |= config->from ? bit : 0;
#define FILL_FEATURES(from) \
	opts->disable_features = flows_attachment_disables(config->from);
#define FILL_NONE(from)
#define FILL_FROM_interfaces(member) OPTIONS_SHARED(member)
#define FILL_FROM_packets(member) OPTIONS_SHARED(member)
#define FILL_FROM_own(member) member
#define FILL_BY_same(to) FILL_SAME, to
#define FILL_BY_items(to) FILL_ITEMS, to
#define FILL_BY_flag(bit) FILL_FLAG, bit
#define FILL_BY_features FILL_FEATURES
#define FILL_BY_none FILL_NONE
#define OPTION(letter, name, type, member, otherwise, verbs, library, key, help) \
	OPTION_IF(verbs, OPTION_CALL(FILL_BY_##library, FILL_FROM_##member))
#include "catalogue/options.def"
