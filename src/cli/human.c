/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "human.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <netobs/flow.h>

enum {
	NS_PER_MS = 1000000,
	NS_PER_S = 1000000000,
	SHORTEST_RATE_NS = 100 * NS_PER_MS,
};

/* Three digits and a prefix; 999.6 k becomes 1.00 M, not 1000 k. */
static void scale(char *buf, size_t size, double value, const char *space,
		  const char *unit)
{
	static const char prefixes[] = "\0kMGTPE";
	unsigned int step = 0;
	int decimals;

	while (value >= 999.5 && step < sizeof(prefixes) - 2) {
		value /= 1000;
		step++;
	}
	decimals = step == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
	snprintf(buf, size, "%.*f%s%.*s%s", decimals, value, space, step != 0,
		 &prefixes[step], unit);
}

void human_count(char *buf, size_t size, uint64_t count)
{
	if (count < 100000)
		snprintf(buf, size, "%u", (unsigned int)count);
	else
		scale(buf, size, (double)count, "", "");
}

void human_bytes(char *buf, size_t size, uint64_t bytes)
{
	scale(buf, size, (double)bytes, " ", "B");
}

void human_rate(char *buf, size_t size, uint64_t bytes, int64_t ns)
{
	if (ns < SHORTEST_RATE_NS)
		snprintf(buf, size, "-");
	else
		scale(buf, size, (double)bytes * 8 * NS_PER_S / (double)ns, " ",
		      "b/s");
}

void human_duration(char *buf, size_t size, int64_t ns)
{
	int64_t s = ns / NS_PER_S;

	if (ns <= 0)
		snprintf(buf, size, "-");
	else if (ns < NS_PER_MS)
		snprintf(buf, size, "<1 ms");
	else if (s < 1)
		snprintf(buf, size, "%d ms", (int)(ns / NS_PER_MS));
	else if (s < 60)
		snprintf(buf, size, "%d.%d s", (int)s,
			 (int)(ns % NS_PER_S / (NS_PER_S / 10)));
	else if (s < 3600)
		snprintf(buf, size, "%dm%02ds", (int)(s / 60), (int)(s % 60));
	else
		snprintf(buf, size, "%lldh%02dm", (long long)(s / 3600),
			 (int)(s % 3600 / 60));
}

void human_time(char *buf, size_t size, int64_t ns)
{
	int64_t s = ns / NS_PER_S - (ns % NS_PER_S < 0);
	time_t seconds = (time_t)s;
	struct tm tm = { 0 }, today = { 0 };
	time_t now = time(NULL);

	localtime_r(&seconds, &tm);
	localtime_r(&now, &today);
	if (tm.tm_year != today.tm_year || tm.tm_yday != today.tm_yday) {
		strftime(buf, size, "%Y-%m-%d %H:%M:%S", &tm);
		return;
	}
	snprintf(buf, size, "%02d:%02d:%02d.%03d", tm.tm_hour, tm.tm_min,
		 tm.tm_sec, (int)((ns - s * NS_PER_S) / NS_PER_MS));
}

static void put_endpoint(char *buf, size_t size, const uint8_t ip[16], int port)
{
	char address[NETOBS_ADDR_STR_MAX];

	netobs_addr_str(ip, address, sizeof(address));
	if (port < 0)
		snprintf(buf, size, "%s", address);
	else if (strchr(address, ':'))
		snprintf(buf, size, "[%s]:%d", address, port);
	else
		snprintf(buf, size, "%s:%d", address, port);
}

void human_endpoints(char *buf, size_t size, const struct netobs_flow *flow)
{
	const bool ports = flow->has & NETOBS_HAS_PORTS;
	char src[NETOBS_ADDR_STR_MAX + 8], dst[NETOBS_ADDR_STR_MAX + 8];

	put_endpoint(src, sizeof(src), flow->src, ports ? flow->src_port : -1);
	put_endpoint(dst, sizeof(dst), flow->dst, ports ? flow->dst_port : -1);
	snprintf(buf, size, "%s \u2192 %s", src, dst);
}

void human_clean(char *text)
{
	for (; *text; text++) {
		if (*text < ' ' || *text > '~')
			*text = '?';
	}
}
