/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What became of the packets, for people. */
#ifndef NETOBS_CLI_STATS_TEXT_H
#define NETOBS_CLI_STATS_TEXT_H

#include <stdint.h>
#include <stdio.h>

struct netobs_stats;

/* A line for each term of the sum that is not zero. */
void stats_text_print(FILE *file, const struct netobs_stats *stats);

uint64_t stats_lost_packets(const struct netobs_stats *stats);

/* Of IP: there is nothing wrong with ARP and other protocols. */
uint64_t stats_unparsed_packets(const struct netobs_stats *stats);

#endif
