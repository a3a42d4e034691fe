/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "stats_text.h"

#include <netobs/stats.h>

#include "human.h"

static void print_count(FILE *file, const char *name, const char *reason,
			const struct netobs_count *count)
{
	char bytes[16], what[40];

	human_bytes(bytes, sizeof(bytes), count->bytes);
	snprintf(what, sizeof(what), "%s%s%s", name, *reason ? ": " : "", reason);
	fprintf(file, "%-22s %12llu packets %10s\n", what,
		(unsigned long long)count->packets, bytes);
}

static void print_some(FILE *file, const char *name, const char *reason,
		       const struct netobs_count *count)
{
	if (count->packets)
		print_count(file, name, reason, count);
}

void stats_text_print(FILE *file, const struct netobs_stats *stats)
{
	print_count(file, "seen", "", &stats->seen);
	print_count(file, "exported", "", &stats->exported);
	print_some(file, "pending", "", &stats->pending);
	print_some(file, "filtered", "", &stats->filtered);
	print_some(file, "sampled out", "", &stats->sampled_out);
	for (unsigned int i = 0; netobs_unparsed_name(i); i++)
		print_some(file, "unparsed", netobs_unparsed_name(i),
			   &stats->unparsed[i]);
	for (unsigned int i = 0; netobs_lost_name(i); i++)
		print_some(file, "lost", netobs_lost_name(i), &stats->lost[i]);
}

uint64_t stats_lost_packets(const struct netobs_stats *stats)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; netobs_lost_name(i); i++)
		sum += stats->lost[i].packets;
	return sum;
}

uint64_t stats_unparsed_packets(const struct netobs_stats *stats)
{
	return stats->unparsed[NETOBS_UNPARSED_SHORT].packets +
	       stats->unparsed[NETOBS_UNPARSED_BAD_HEADER].packets +
	       stats->unparsed[NETOBS_UNPARSED_TOO_DEEP].packets;
}
