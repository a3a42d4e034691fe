/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The words of verdict_text.c for causes, places and what is missing. */
#ifndef NETOBS_CLI_DIAGNOSE_VERDICT_WORDS_H
#define NETOBS_CLI_DIAGNOSE_VERDICT_WORDS_H

#include <stddef.h>

#include <netobs/diagnosis.h>

/* By cause: what of a host is to blame, and what happens. */
static const char *const words[NETOBS_CAUSES][2] = {
	{ "", "it takes longer" },
	{ "'s process", "thinks before it writes" },
	{ "'s process", "leaves bytes unread" },
	{ "'s process", "is stopped" },
	{ "'s process", "does not accept connections" },
	{ "'s CPU", "waits for one" },
	{ "'s kernel", "TCP, IP or drivers take longer" },
	{ "'s send buffer", "it is full" },
	{ "'s receive buffer", "it is full" },
	{ "'s queue", "bytes wait in the qdisc" },
	{ "'s kernel", "it drops packets" },
	{ "'s conntrack", "the table of connections is full" },
	{ "", "the way takes longer" },
	{ "", "other flows fill the last link" },
	{ "", "bytes are lost" },
	{ "", "packets overtake each other" },
	{ "", "only large packets are lost" },
	{ "", "the link goes down" },
};

/* By place: its name in the table, NULL: that of the host; and the end that it belongs to. */
static const struct {
	const char *label;
	int end; /* -1: it is between both */
} places[NETOBS_PLACES] = {
	{ "", -1 },  { "client", 0 }, { NULL, 0 },	{ "network", -1 },
	{ NULL, 1 }, { "server", 1 }, { "beyond", -1 },
};

/* In the order of enum netobs_verdict_missing. */
static const char *const kinds[] = { "records of the other host",
				     "turns before",
				     "turns",
				     "what threads did",
				     "what kept TCP from sending",
				     "counters of hosts",
				     "who filled queues",
				     "tracepoints",
				     "a bound of the clocks",
				     "some of many turns",
				     "the first bytes of turns" };

#endif
