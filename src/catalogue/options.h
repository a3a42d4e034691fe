/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Macros to read options.def, and the words that are the choices of options. */
#ifndef NETOBS_CATALOGUE_OPTIONS_H
#define NETOBS_CATALOGUE_OPTIONS_H

/*
 * Choices, in the order of their numbers: the first is 0, which is the default. @_ is what
 * stands between two of them, OPTION_COMMA or a string.
 */
#define OPTION_COMMA ,
#define CHOICES_directions(_) "both" _ "ingress" _ "egress"
#define CHOICES_attachments(_) "auto" _ "tcx" _ "clsact"
#define CHOICES_attach_orders(_) "first" _ "last"
#define CHOICES_conns_sorts(_) \
	"rate" _ "rtt" _ "retransmits" _ "app" _ "bytes" _ "age"
#define CHOICES_actions(_) "accept" _ "reject"
#define CHOICES_log_levels(_) "error" _ "warning" _ "info" _ "debug"
#define CHOICES_capture_formats(_) "pcapng" _ "pcap"
#define CHOICES_outputs(_) "table" _ "json"
#define CHOICES_drop_keys(_) "reason" _ "flow"
#define CHOICES_trace_layers(_) "socket" _ "tcp" _ "qdisc" _ "device" _ "ip"
#define CHOICES_trace_shows(_) "journeys" _ "events" _ "summary" _ "turns"
#define CHOICES_metrics_outputs(_) "prometheus" _ "json"
#define CHOICES_distributions(_) "uniform" _ "zipf"

/* The name of an option's value; choices are listed. "": it has none. */
#define OPTION_VALUE_switch ""
#define OPTION_VALUE_repeat ""
#define OPTION_VALUE_string(value) value
#define OPTION_VALUE_list(value) value
#define OPTION_VALUE_seconds "SECONDS"
#define OPTION_VALUE_number(value) value
#define OPTION_VALUE_number32(value) value
#define OPTION_VALUE_bytes "BYTES"
#define OPTION_VALUE_choice(choices) CHOICES_##choices("|")

/*
 * Expands to the arguments behind @verbs if one of these has been chosen, by
 * "#define SELECT_verb OPTION_SELECTED"; else to nothing.
 */
#define OPTION_SELECTED , OPTION_KEEP,
#define OPTION_IF(verbs, ...) \
	OPTION_SECOND(OPTION_VERBS verbs, OPTION_DROP, )(__VA_ARGS__)
#define OPTION_VERBS(...) OPTION_TEN_VERBS(__VA_ARGS__, , , , , , , , , , )
#define OPTION_TEN_VERBS(a, b, c, d, e, f, g, h, i, j, ...)               \
	SELECT_##a SELECT_##b SELECT_##c SELECT_##d SELECT_##e SELECT_##f \
		SELECT_##g SELECT_##h SELECT_##i SELECT_##j
#define OPTION_SECOND(...) OPTION_TAKE_SECOND(__VA_ARGS__)
#define OPTION_TAKE_SECOND(first, second, ...) second
#define OPTION_KEEP(...) __VA_ARGS__
#define OPTION_DROP(...)

#endif
