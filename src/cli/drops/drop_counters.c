// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "drop_rows.h"

#include <ifaddrs.h>
#include <inttypes.h>
#include <linux/if_packet.h>
#include <linux/if_link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/text.h"
#include "base/util.h"

/* include/uapi/linux/if_link.h explains each. They wrap, so differences are what counts; a driver may reset them. */
#define COUNTER(name)                                         \
	{                                                     \
#name, offsetof(struct rtnl_link_stats, name) \
	}
static const struct {
	const char *name;
	size_t offset;
} shown[] = {
	COUNTER(rx_dropped),	    COUNTER(rx_missed_errors),
	COUNTER(rx_over_errors),    COUNTER(rx_fifo_errors),
	COUNTER(rx_crc_errors),	    COUNTER(rx_length_errors),
	COUNTER(tx_dropped),	    COUNTER(tx_fifo_errors),
	COUNTER(tx_carrier_errors), COUNTER(tx_aborted_errors),
};
#undef COUNTER

static bool has_stats(const struct ifaddrs *interface)
{
	return interface->ifa_addr &&
	       interface->ifa_addr->sa_family == AF_PACKET &&
	       interface->ifa_data;
}

bool is_selected(const struct args_list *names, const char *name)
{
	for (size_t i = 0; i < names->n; i++)
		if (!strcmp(names->items[i], name))
			return true;
	return !names->n;
}

static unsigned int find_index(const struct ifaddrs *interface)
{
	return (unsigned int)((const struct sockaddr_ll *)(const void *)
				      interface->ifa_addr)
		->sll_ifindex;
}

/* Find an interface by its index: its name may belong to another one now. */
static const struct ifaddrs *find_before(const struct drop_counters *counters,
					 const struct ifaddrs *now)
{
	const struct ifaddrs *one = counters->before;

	while (one && (!has_stats(one) || find_index(one) != find_index(now)))
		one = one->ifa_next;
	return one;
}

static uint32_t read_counter(const struct ifaddrs *interface, size_t i)
{
	uint32_t value;

	memcpy(&value, (const char *)interface->ifa_data + shown[i].offset,
	       sizeof(value));
	return value;
}

/* A counter that is lower by much was reset, not wrapped. */
static uint32_t find_growth(uint32_t before, uint32_t now)
{
	return now < before && now - before > INT32_MAX ? now : now - before;
}

static void print_growth(const struct ifaddrs *before, const struct ifaddrs *now)
{
	char name[32];
	bool is_first = true;

	snprintf(name, sizeof(name), "%s", now->ifa_name);
	safe_cell(name);
	for (size_t i = 0; i < ARRAY_SIZE(shown); i++) {
		const uint32_t growth = find_growth(read_counter(before, i),
						    read_counter(now, i));

		if (!growth)
			continue;
		if (is_first)
			printf("counters of %s: ", name);
		printf("%s%s %" PRIu32, is_first ? "" : ", ", shown[i].name,
		       growth);
		is_first = false;
	}
	if (!is_first)
		putchar('\n');
}

void drop_counters_print(struct drop_counters *counters,
			 const struct args_list *names)
{
	struct ifaddrs *now;

	if (getifaddrs(&now))
		return;
	for (const struct ifaddrs *one = now; one; one = one->ifa_next) {
		const struct ifaddrs *before =
			has_stats(one) && is_selected(names, one->ifa_name) ?
				find_before(counters, one) :
				NULL;

		if (before)
			print_growth(before, one);
	}
	drop_counters_clear(counters);
	counters->before = now;
}

void drop_counters_clear(struct drop_counters *counters)
{
	if (counters->before)
		freeifaddrs(counters->before);
	counters->before = NULL;
}
