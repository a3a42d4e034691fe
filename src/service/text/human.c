/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "human.h"

#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include <netobs/stats.h>

#include "base/text.h"

enum {
	NS_PER_MS = 1000000,
	NS_PER_S = 1000000000,
	SHORTEST_RATE_NS = 100 * NS_PER_MS,
};

/* Three digits and a prefix; 999.6 k becomes 1.00 M, not 1000 k. */
static void scale_number(char *buf, size_t size, double value,
			 const char *space, const char *unit)
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
		scale_number(buf, size, (double)count, "", "");
}

void human_bytes(char *buf, size_t size, uint64_t bytes)
{
	scale_number(buf, size, (double)bytes, " ", "B");
}

void human_rate(char *buf, size_t size, uint64_t bytes, int64_t ns)
{
	if (ns < SHORTEST_RATE_NS)
		snprintf(buf, size, "-");
	else
		scale_number(buf, size, (double)bytes * 8 * NS_PER_S / (double)ns,
			     " ", "b/s");
}

void human_pace(char *buf, size_t size, uint64_t packets, int64_t ns)
{
	if (ns < SHORTEST_RATE_NS)
		snprintf(buf, size, "-");
	else
		human_count(buf, size,
			    (uint64_t)((double)packets * NS_PER_S / (double)ns));
}

void human_latency(char *buf, size_t size, uint64_t ns)
{
	static const char *const units[] = { "us", "ms", "s" };
	double value = (double)ns / 1000;
	unsigned int step = 0;

	if (!ns) {
		snprintf(buf, size, "-");
		return;
	}
	while (value >= 999.5 && step < 2) {
		value /= 1000;
		step++;
	}
	snprintf(buf, size, "%.*f %s",
		 value >= 99.95 ? 0 :
		 value >= 9.995 ? 1 :
				  2,
		 value, units[step]);
}

void human_duration(char *buf, size_t size, int64_t ns)
{
	int64_t s = ns / NS_PER_S;

	if (ns < 0)
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

void human_address(char *buf, size_t size, const uint8_t ip[16], uint16_t port)
{
	char host[NETOBS_ADDR_STR_MAX + TEXT_SPARE], number[8];

	*text_ip(host, ip) = '\0';
	snprintf(number, sizeof(number), "%u", port);
	human_endpoint(buf, size, host, number);
}

/* ---- Flows ----------------------------------------------------------------------- */

struct name {
	uint8_t number;
	const char *text;
};

/* RFC 792, RFC 950, RFC 1256 */
static const struct name icmp_types[] = {
	{ 0, "echo reply" },	   { 3, "unreachable" },
	{ 4, "source quench" },	   { 5, "redirect" },
	{ 8, "echo request" },	   { 9, "router advert" },
	{ 10, "router solicit" },  { 11, "time exceeded" },
	{ 12, "bad parameter" },   { 13, "timestamp" },
	{ 14, "timestamp reply" }, { 0, NULL }
};

/* RFC 4443, RFC 2710, RFC 3810, RFC 4861 */
static const struct name icmp6_types[] = {
	{ 1, "unreachable" },	    { 2, "packet too big" },
	{ 3, "time exceeded" },	    { 4, "bad parameter" },
	{ 128, "echo request" },    { 129, "echo reply" },
	{ 130, "group query" },	    { 131, "group report" },
	{ 132, "group done" },	    { 133, "router solicit" },
	{ 134, "router advert" },   { 135, "neighbor solicit" },
	{ 136, "neighbor advert" }, { 137, "redirect" },
	{ 143, "group report v2" }, { 0, NULL }
};

static const char *find_word(const struct name *names, uint8_t number)
{
	for (; names->text; names++) {
		if (names->number == number)
			return names->text;
	}
	return NULL;
}

/* Bits of RFC 9293, 3.1, in the order of a connection's life. */
static void put_tcp_flags(char *buf, size_t size, uint16_t flags)
{
	static const struct {
		uint16_t bit;
		char letter;
	} letters[] = {
		{ 0x02, 'S' }, { 0x10, 'A' }, { 0x08, 'P' }, { 0x01, 'F' },
		{ 0x04, 'R' }, { 0x20, 'U' }, { 0x40, 'E' }, { 0x80, 'C' },
	};
	size_t n = 0;

	for (size_t i = 0;
	     i < sizeof(letters) / sizeof(letters[0]) && n + 1 < size; i++) {
		if (flags & letters[i].bit)
			buf[n++] = letters[i].letter;
	}
	buf[n] = '\0';
}

void human_info(char *buf, size_t size, const struct netobs_flow *flow)
{
	const char *name;

	buf[0] = '\0';
	if (flow->has & NETOBS_HAS_TCP) {
		put_tcp_flags(buf, size, flow->tcp_flags);
	} else if (flow->has & NETOBS_HAS_ICMP) {
		name = find_word(flow->proto == IPPROTO_ICMPV6 ? icmp6_types :
								 icmp_types,
				 flow->icmp_type);
		if (name)
			snprintf(buf, size, "%s", name);
		else
			snprintf(buf, size, "type %u code %u", flow->icmp_type,
				 flow->icmp_code);
	}
}

/* Append to the text in @buf, after a comma; cut text that does not fit. */
__attribute__((format(printf, 3, 4))) static void
append_words(char *buf, size_t size, const char *format, ...)
{
	size_t used = strlen(buf);
	va_list args;

	if (used && used + 2 < size) {
		memcpy(buf + used, ", ", 3);
		used += 2;
	}
	va_start(args, format);
	vsnprintf(buf + used, size - used, format, args);
	va_end(args);
}

void human_where(char *buf, size_t size, const struct netobs_flow *flow)
{
	buf[0] = '\0';
	for (uint32_t i = 0; i < flow->n_points; i++) {
		const struct netobs_point *point = netobs_flow_point(flow, i);

		append_words(buf, size, "%s %s",
			     point->name ? point->name : "unknown",
			     point->direction == NETOBS_INGRESS ? "in" : "out");
	}
	safe_cell(buf);
	if (flow->has & NETOBS_HAS_OUTER_VLAN)
		append_words(buf, size, "vlan %u.%u", flow->outer_vlan_id,
			     flow->vlan_id);
	else if (flow->has & NETOBS_HAS_VLAN)
		append_words(buf, size, "vlan %u", flow->vlan_id);
	if (flow->has & NETOBS_HAS_VNI)
		append_words(buf, size, "%s %u",
			     human_tunnel_name(flow->tunnel), flow->vni);
	else if (flow->has & NETOBS_HAS_TUNNEL)
		append_words(buf, size, "%s", human_tunnel_name(flow->tunnel));
}

const char *human_sampled(enum netobs_sampling mode)
{
	return mode == NETOBS_SAMPLE_FLOWS ? "flows" : "packets";
}

/* ---- Packets, processes and translations --------------------------------------- */

uint64_t human_lost_packets(const struct netobs_stats *stats)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; netobs_lost_name(i); i++)
		sum += stats->lost[i].packets;
	return sum;
}

uint64_t human_unparsed_packets(const struct netobs_stats *stats)
{
	return stats->unparsed[NETOBS_UNPARSED_SHORT].packets +
	       stats->unparsed[NETOBS_UNPARSED_BAD_HEADER].packets +
	       stats->unparsed[NETOBS_UNPARSED_TOO_DEEP].packets;
}

static void put_process(char *buf, size_t size,
			const struct netobs_process *process)
{
	*buf = '\0';
	if (!process)
		return;
	snprintf(buf, size, "%s[%u]", process->command, process->pid);
	safe_cell(buf);
}

void human_processes(char *buf, size_t size, const struct netobs_process *src,
		     const struct netobs_process *dst)
{
	char from[32], to[32];

	put_process(from, sizeof(from), src);
	put_process(to, sizeof(to), dst);
	if (*from || *to)
		snprintf(buf, size, "%s%s\u2192%s%s", from, *from ? " " : "",
			 *to ? " " : "", to);
	else
		*buf = '\0';
}

/* @own: that of the flow; nothing is added if it is the same */
static void add_end(char *buf, size_t size, const char *name,
		    const uint8_t ip[16], uint16_t port, const uint8_t own[16],
		    uint16_t own_port)
{
	const size_t len = strlen(buf);
	char text[NETOBS_ADDR_STR_MAX + TEXT_SPARE];

	if (!memcmp(ip, own, 16) && port == own_port)
		return;
	*text_ip(text, ip) = '\0';
	if (port)
		human_address(text, sizeof(text), ip, port);
	snprintf(buf + len, size - len, "%s%s %s", len ? ", " : "", name, text);
}

void human_translation(char *buf, size_t size, const struct netobs_flow *flow)
{
	*buf = '\0';
	if (flow->has & NETOBS_HAS_XLAT) {
		add_end(buf, size, "src", flow->xlat_src, flow->xlat_src_port,
			flow->src, flow->src_port);
		add_end(buf, size, "dst", flow->xlat_dst, flow->xlat_dst_port,
			flow->dst, flow->dst_port);
	}
	if (flow->has & NETOBS_HAS_ORIG) {
		add_end(buf, size, "was src", flow->orig_src,
			flow->orig_src_port, flow->src, flow->src_port);
		add_end(buf, size, "was dst", flow->orig_dst,
			flow->orig_dst_port, flow->dst, flow->dst_port);
	}
}

void human_drop_cause(char *buf, size_t size, const struct netobs_flow *flow)
{
	char cause[sizeof(flow->drop_cause) + 1];

	*buf = '\0';
	if (!(flow->has & NETOBS_HAS_DROP_REASON))
		return;
	snprintf(cause, sizeof(cause), "%.*s", (int)sizeof(flow->drop_cause),
		 flow->drop_cause);
	snprintf(buf, size, "%s", drop_cause_text(cause));
	safe_cell(buf);
}
