// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "verdict_text.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/util.h"
#include "cli/view/print.h"
#include "service/text/human.h"

enum {
	LABEL = 22, /* columns */
	BAR = 10,
	SMALL = 2,   /* percent: smaller parts share a row */
	ENOUGH = 10, /* turns */
};

#define DAY_NS (86400 * UINT64_C(1000000000))

/* ---- Words ----------------------------------------------------------------------------- */

/* For each cause: the part of a host that is to blame, and what happens there. */
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

/* For each place: its name in the table, or NULL for the name of the host, and the end that it belongs to. */
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
				     "some of many turns" };

/* ---- A page ---------------------------------------------------------------------------- */

struct end {
	char name[64];	  /* of the host, or its address */
	char text[160];	  /* "192.0.2.1:80 (nginx[12], hostb)" */
	char process[40]; /* "nginx[12]"; "the process": not known */
};

struct page {
	FILE *file;
	const struct netobs_verdict *v;
	struct end ends[2];	   /* of client, of server */
	const char *heard, *other; /* hosts, if one end has no records */
	bool is_alone;
	uint64_t now_ns, before_ns; /* the time that parts divide */
	char between[96]; /* "The network", "Something beyond hosta" */
	char text[2048];  /* of the paragraph */
};

#define say(p, ...) text_append((p)->text, sizeof((p)->text), __VA_ARGS__)

/* Print the paragraph, if it has text. */
static void put_paragraph(struct page *p, const char *first)
{
	if (!*p->text)
		return;
	print_words(p->file, first, p->text, VERDICT_COLUMNS);
	fputc('\n', p->file);
	*p->text = '\0';
}

static unsigned int percent(uint64_t part, uint64_t whole)
{
	const double share = whole ? (double)part * 100 / (double)whole : 0;

	return share < 100 ? (unsigned int)(share + .5) : 100;
}

/* In a column of the table. */
static void put_ms(struct page *p, uint64_t ns)
{
	const double ms = (double)min_u64(ns, DAY_NS) / NSEC_PER_MSEC;

	fprintf(p->file, " %8.*f", ms < 99999 ? 2 : 0, ms);
}

/* ---- Places ---------------------------------------------------------------------------- */

static bool is_between(uint8_t place)
{
	return places[place].end < 0;
}

static bool is_process(uint8_t place)
{
	return !is_between(place) && places[place].label;
}

static const char *name_of(const struct page *p, uint8_t place)
{
	return is_between(place) ? p->between : p->ends[places[place].end].name;
}

static bool is_blamed(const struct page *p, const struct netobs_verdict_part *part)
{
	return part->place && part->place == p->v->place &&
	       part->cause == p->v->cause;
}

static void fill_end(struct end *end, const uint8_t ip[16], uint16_t port,
		     const char *host, const char *command, uint32_t pid)
{
	char address[NETOBS_ADDR_STR_MAX + 16];

	*text_ip(address, ip) = '\0';
	snprintf(end->name, sizeof(end->name), "%.63s", *host ? host : address);
	snprintf(end->process, sizeof(end->process), "the process");
	if (pid)
		snprintf(end->process, sizeof(end->process),
			 "%.16s[%" PRIu32 "]", command, pid);
	if (port)
		human_address(address, sizeof(address), ip, port);
	snprintf(end->text, sizeof(end->text),
		 pid || *host ? "%s (%s%s%.63s)" : "%s", address,
		 pid ? end->process : "", pid && *host ? ", " : "", host);
}

/* ---- What is to blame ------------------------------------------------------------------ */

static void put_headline(struct page *p)
{
	const struct netobs_verdict *v = p->v;
	char now[32], before[32];

	human_rate(now, sizeof(now), v->rate, NSEC_PER_SEC);
	human_rate(before, sizeof(before), v->rate_before, NSEC_PER_SEC);
	say(p, "client %s -> %s: ", p->ends[0].text, p->ends[1].text);
	if (v->is_stream)
		say(p, "a stream of %s, before %s", now, before);
	else
		say(p, "%" PRIu32 " turns, %.1f ms each, before %.1f", v->turns,
		    (double)v->turn_ns / 1e6, (double)v->turn_before_ns / 1e6);
	if (*v->alert)
		say(p, "; alert %.64s", v->alert);
	put_paragraph(p, "");
	fputc('\n', p->file);
}

/* "hosta's queue is to blame: bytes wait in the qdisc of up0, 42 % of the time, before 0." */
static void say_blame(struct page *p, const struct netobs_verdict_part *part)
{
	const struct netobs_verdict *v = p->v;
	const bool between = is_between(v->place);
	char lost[32];

	human_bytes(lost, sizeof(lost), v->lost_bytes);
	say(p, "%s%s is to blame: ", name_of(p, v->place),
	    between ? "" : words[v->cause][0]);
	if (is_process(v->place) || (v->cause == NETOBS_CAUSE_CPU && !between))
		say(p, "%s ", p->ends[places[v->place].end].process);
	say(p, "%s",
	    p->is_alone && between && v->cause == NETOBS_CAUSE_DELAY ?
		    "answers come later" :
		    words[v->cause][1]);
	if (*v->interface)
		say(p, " of %.16s", v->interface);
	if (v->dropped && !between)
		say(p, " (%" PRIu64 " dropped, %.64s%s%.64s)", v->dropped,
		    drop_cause_text(v->drop_cause),
		    *v->drop_function ? " in " : "", v->drop_function);
	if (v->lost_bytes && between)
		say(p, " (%s)", lost);
	say(p, ", %u %% of the time, before %u.",
	    percent(part->now_ns, p->now_ns),
	    percent(part->before_ns, p->before_ns));
}

static void put_sentence(struct page *p)
{
	const struct netobs_verdict *v = p->v;
	const char *certainty = netobs_certainty_name(v->certainty);
	struct netobs_verdict_part part = { 0 };
	int column;

	for (unsigned int i = 0; i < v->n_parts; i++)
		if (is_blamed(p, &v->parts[i]))
			part = v->parts[i];
	if (v->place)
		say_blame(p, &part);
	else
		say(p, "Nothing takes longer than before.");
	column = print_words(p->file, "  ", p->text, VERDICT_COLUMNS);
	*p->text = '\0';
	if (column + 2 + (int)strlen(certainty) > VERDICT_COLUMNS)
		column = fputc('\n', p->file) - '\n';
	fprintf(p->file, "%*s\n", VERDICT_COLUMNS - column, certainty);
}

/* ---- The parts ------------------------------------------------------------------------- */

/* "client: thinks", "hosta: qdisc", "network: delay" */
static void put_row(struct page *p, const struct netobs_verdict_part *part,
		    const char *label)
{
	const char *place = places[part->place].label ?: name_of(p, part->place);
	const int room = LABEL - 2 - (int)strlen(label);
	const int bar = (int)percent(part->now_ns, p->now_ns) / BAR;
	char name[128];

	snprintf(name, sizeof(name), "%.*s%s%s", room,
		 p->is_alone && part->place == NETOBS_PLACE_NETWORK ? "beyond" :
								      place,
		 *place ? ": " : "", label);
	safe_cell(name);
	fprintf(p->file, "  %-*s", LABEL, name);
	put_ms(p, part->now_ns);
	put_ms(p, part->before_ns);
	if (bar || is_blamed(p, part))
		fprintf(p->file, "  %.*s", bar, "##########");
	if (is_blamed(p, part))
		fprintf(p->file, "%*s <-- %u %% of the increase", BAR - bar, "",
			percent(p->v->blamed_ns, p->v->all_blamed_ns));
	fputc('\n', p->file);
}

static void put_table(struct page *p)
{
	const struct netobs_verdict *v = p->v;
	struct netobs_verdict_part rest = { 0 };

	fprintf(p->file, "  %-*s %8s %8s\n", LABEL,
		v->is_stream ? "ms of a second" : "ms of a turn", "now",
		"before");
	for (unsigned int i = 0; i < v->n_parts; i++) {
		const struct netobs_verdict_part *part = &v->parts[i];

		if (is_blamed(p, part) ||
		    percent(part->now_ns, p->now_ns) >= SMALL ||
		    percent(part->before_ns, p->before_ns) >= SMALL) {
			put_row(p, part, netobs_verdict_cause_name(part->cause));
		} else {
			rest.now_ns += part->now_ns;
			rest.before_ns += part->before_ns;
		}
	}
	if (rest.now_ns || rest.before_ns)
		put_row(p, &rest, "all else");
}

static void put_culprits(struct page *p)
{
	const struct netobs_verdict *v = p->v;
	const bool is_cpu = v->cause == NETOBS_CAUSE_CPU;
	const char *first = is_cpu ? "  used by    " : "  filled by  ";
	char src[NETOBS_ADDR_STR_MAX + 16], dst[sizeof(src)], protocol[16];

	if (v->throttled)
		say(p,
		    "Its control group %.128s used up its quota of CPU time: it was stopped %" PRIu64
		    " times.",
		    v->cgroup, v->throttled);
	put_paragraph(p, "  ");
	for (unsigned int i = 0; i < v->n_shares; i++) {
		const struct netobs_queue_share *share = &v->shares[i];

		if (i && percent(share->amount, v->filled) < SMALL)
			continue;
		human_address(src, sizeof(src), share->src, share->src_port);
		human_address(dst, sizeof(dst), share->dst, share->dst_port);
		human_protocol(protocol, sizeof(protocol), share->protocol);
		say(p, "%3u %% ", percent(share->amount, v->filled));
		if (share->pid)
			say(p, " %.16s[%" PRIu32 "]", share->command, share->pid);
		if (*share->container_id)
			say(p, " %.12s", share->container_id);
		if (share->protocol)
			say(p, " %s %s > %s", protocol, src, dst);
		say(p, "%s", share->is_traced ? " (itself)" : "");
		put_paragraph(p, first);
		first = "             ";
	}
}

/* ---- What is not known ----------------------------------------------------------------- */

static void put_missing(struct page *p)
{
	const struct netobs_verdict *v = p->v;

	if (v->clock_bound_ns)
		say(p, "clocks: %s is %.2f ms %s, +- %.2f", p->ends[1].name,
		    (double)llabs(v->clock_ns) / 1e6,
		    v->clock_ns < 0 ? "behind" : "ahead",
		    (double)v->clock_bound_ns / 1e6);
	put_paragraph(p, "  ");
	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++)
		if (v->missing >> i & 1)
			say(p, "%s%s", *p->text ? ", " : "", kinds[i]);
	for (unsigned int i = 0; i < NETOBS_TRACE_POINTS; i++)
		if (v->missing_points >> i & 1)
			say(p, " %s", netobs_trace_point_name(i));
	put_paragraph(p, "  missing: ");
}

/* Why it is not sure or says "beyond", one of five sentences, and which command would tell more. */
static void put_doubt(struct page *p, const char *filter)
{
	const struct netobs_verdict *v = p->v;
	const bool is_short = v->turns < ENOUGH || v->turns_before < ENOUGH;

	if (p->is_alone)
		say(p,
		    "%s has no records: %s alone cannot tell what is there from what is on the way.",
		    p->other, p->heard);
	else if (is_short)
		say(p, "There are too few turns: %u now and %u before, of %d.",
		    v->turns, v->turns_before, ENOUGH);
	else if (!v->place)
		say(p, "It may have been as slow before.");
	else if (v->second_place)
		say(p,
		    "There are two causes: this one has %u %% of the increase, and %s (%s) most of the rest.",
		    percent(v->blamed_ns, v->all_blamed_ns),
		    name_of(p, v->second_place),
		    netobs_verdict_cause_name(v->second_cause));
	else
		say(p, "Evidence is missing: only a difference of times tells.");
	put_paragraph(p, "  ");
	if (p->is_alone && filter)
		say(p, "netobsctl diagnose --with %s %s", p->other, filter);
	else if (p->is_alone)
		say(p,
		    "netobsctl diagnose --collect on %s, and -r for both files",
		    p->other);
	else if (filter && is_short)
		say(p, "netobsctl diagnose --before 60 --for 60 %s", filter);
	put_paragraph(p, "  To know more: ");
}

void verdict_text_print(FILE *file, const struct netobs_verdict *v,
			const char *filter)
{
	const bool is_server = *v->server_host && !*v->client_host;
	struct page page = {
		.file = file,
		.v = v,
		.heard = page.ends[is_server].name,
		.other = page.ends[!is_server].name,
		.is_alone = v->missing & NETOBS_MISSING_HOST,
		.now_ns = v->is_stream ? NSEC_PER_SEC : v->turn_ns,
		.before_ns = v->is_stream ? NSEC_PER_SEC : v->turn_before_ns,
	};

	fill_end(&page.ends[0], v->client, 0, v->client_host, v->client_command,
		 v->client_pid);
	fill_end(&page.ends[1], v->server, v->server_port, v->server_host,
		 v->server_command, v->server_pid);
	snprintf(page.between, sizeof(page.between),
		 page.is_alone ? "Something beyond %s" : "The network",
		 page.heard);
	put_headline(&page);
	put_sentence(&page);
	put_table(&page);
	put_culprits(&page);
	put_missing(&page);
	if (v->certainty == NETOBS_NOT_SURE || page.is_alone)
		put_doubt(&page, filter);
	fputc('\n', file);
}
