/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Rules of NetObserv's agent as [filter] sections: those of FLOW_FILTER_RULES, an array in JSON, or
 * the one rule of FILTER_IP_CIDR and others, which earlier versions had.
 */
#include "config_import.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "base/json_reader.h"

#define RULES "FLOW_FILTER_RULES"

enum { RULES_MAX = 64, TEXT_MAX = 256, MATCH_MAX = 4096 };

/* Empty: the one rule of FILTER_ variables. */
struct rule {
	struct json_value object;
	unsigned int prefix_len;
};

struct rules {
	struct rule list[RULES_MAX];
	unsigned int n;
};

/* ---- Members --------------------------------------------------------------------- */

/* FILTER_ and the key, as earlier agents called it. */
static const char *get_old_variable(const char *key)
{
	char variable[64] = "FILTER_";
	size_t len = strlen(variable);

	for (; *key && len + 1 < sizeof(variable); key++)
		variable[len++] = (char)toupper((unsigned char)*key);
	variable[len] = '\0';
	return get_variable(variable, "");
}

/* A number as its digits. "": it is not there */
static void put_text(struct json_value value, char buf[TEXT_MAX])
{
	*buf = '\0';
	if (value.at && *value.at == '"')
		json_text(value, buf, TEXT_MAX);
	else if (value.at)
		snprintf(buf, TEXT_MAX, "%.*s", (int)json_length(value),
			 value.at);
}

/* @return @buf: "" if the rule has no such member, or one that could be no part of an expression */
static const char *get_member(const struct rule *rule, const char *key,
			      char buf[TEXT_MAX])
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.:/,-";

	if (rule->object.at)
		put_text(json_get(rule->object, key), buf);
	else
		snprintf(buf, TEXT_MAX, "%s", get_old_variable(key));
	if (buf[strspn(buf, allowed)]) {
		report_variable(RULES, "%s '%s' is left out", key, buf);
		*buf = '\0';
	}
	return buf;
}

static bool has_action(const struct rule *rule, const char *action)
{
	char text[TEXT_MAX];

	return !strcasecmp(get_member(rule, "action", text), action);
}

/* ---- The expression -------------------------------------------------------------- */

static void add_part(char match[MATCH_MAX], const char *part)
{
	const size_t len = strlen(match);

	snprintf(match + len, MATCH_MAX - len, "%s%s", len ? " and " : "", part);
}

/* @names: @n values of the member, each followed by the expression for it. */
static void add_named(const struct rule *rule, const char *member,
		      const char *const *names, size_t n, char match[MATCH_MAX])
{
	char text[TEXT_MAX];

	get_member(rule, member, text);
	for (size_t i = 0; i < n; i += 2)
		if (!strcasecmp(names[i], text)) {
			add_part(match, names[i + 1]);
			return;
		}
	if (*text)
		report_variable(RULES, "%s '%s' has no equal", member, text);
}

static void add_protocol(const struct rule *rule, char match[MATCH_MAX])
{
	static const char *const names[] = { "TCP",    "tcp",  "UDP",  "udp",
					     "SCTP",   "sctp", "ICMP", "icmp",
					     "ICMPv6", "icmp6" };

	add_named(rule, "protocol", names, ARRAY_SIZE(names), match);
}

/* Of "80", "80-90" or "80,443". @way: "src ", "dst " or "" */
static void add_ports(char match[MATCH_MAX], const char *way, char *ports)
{
	char part[MATCH_MAX / 2] = "(", *port;
	const char *separator = "";
	size_t len = 1;

	while ((port = strsep(&ports, ","))) {
		len += (size_t)snprintf(part + len, sizeof(part) - len,
					"%s%sport%s %s", separator, way,
					strchr(port, '-') ? "range" : "", port);
		if (len >= sizeof(part) - 2)
			return;
		separator = " or ";
	}
	add_part(match, strcat(part, ")"));
}

static void add_all_ports(const struct rule *rule, char match[MATCH_MAX])
{
	static const char *const ends[] = { "source_", "src ", "destination_",
					    "dst ",    "",     "" };
	static const char *const forms[] = { "port", "port_range", "ports" };
	char key[32], text[TEXT_MAX];

	for (size_t end = 0; end < ARRAY_SIZE(ends); end += 2)
		for (size_t form = 0; form < ARRAY_SIZE(forms); form++) {
			snprintf(key, sizeof(key), "%s%s", ends[end],
				 forms[form]);
			if (*get_member(rule, key, text) && strcmp(text, "0") != 0)
				add_ports(match, ends[end + 1], text);
		}
}

static void add_icmp(const struct rule *rule, char match[MATCH_MAX])
{
	char protocol[TEXT_MAX], text[TEXT_MAX], part[TEXT_MAX + 32];
	const char *six =
		strcasecmp(get_member(rule, "protocol", protocol), "ICMPv6") ?
			"" :
			"6";

	if (strncasecmp(protocol, "ICMP", 4))
		return;
	if (*get_member(rule, "icmp_type", text)) {
		snprintf(part, sizeof(part), "icmp%s[0] == %s", six, text);
		add_part(match, part);
	}
	if (*get_member(rule, "icmp_code", text)) {
		snprintf(part, sizeof(part), "icmp%s[1] == %s", six, text);
		add_part(match, part);
	}
}

/* The agent takes a packet for the first of these that it is. */
static void add_flags(const struct rule *rule, char match[MATCH_MAX])
{
	static const char *const flags[] = { "SYN-ACK", "tcp[13] & 18 == 18",
					     "FIN-ACK", "tcp[13] & 17 == 17",
					     "RST-ACK", "tcp[13] & 20 == 20",
					     "SYN",	"tcp[13] & 18 == 2",
					     "FIN",	"tcp[13] & 17 == 1",
					     "RST",	"tcp[13] & 20 == 4",
					     "PSH",	"tcp[13] & 8 != 0",
					     "URG",	"tcp[13] & 32 != 0",
					     "ECE",	"tcp[13] & 64 != 0",
					     "CWR",	"tcp[13] & 128 != 0",
					     "ACK",	"tcp[13] & 23 == 16" };

	add_named(rule, "tcp_flags", flags, ARRAY_SIZE(flags), match);
}

static void add_address(const struct rule *rule, const char *key,
			const char *word, char match[MATCH_MAX])
{
	char text[TEXT_MAX], part[TEXT_MAX + 8];
	const char *slash = strchr(get_member(rule, key, text), '/');

	if (!*text || (slash && !atoi(slash + 1)))
		return;
	snprintf(part, sizeof(part), "%s %s", word, text);
	add_part(match, part);
}

static void make_match(const struct rule *rule, char match[MATCH_MAX])
{
	*match = '\0';
	add_address(rule, "ip_cidr", "net", match);
	add_protocol(rule, match);
	add_all_ports(rule, match);
	add_icmp(rule, match);
	add_flags(rule, match);
	add_address(rule, "peer_ip", "host", match);
	add_address(rule, "peer_cidr", "net", match);
	if (!*match)
		add_part(match, "ip or ip6");
}

/* ---- Rules ------------------------------------------------------------------------ */

static void add_rule(struct rules *rules, struct json_value object)
{
	struct rule *rule = &rules->list[rules->n];
	char text[TEXT_MAX];
	const char *slash;

	if (rules->n == RULES_MAX) {
		report_variable(RULES, "it has more than %d rules", RULES_MAX);
		return;
	}
	*rule = (struct rule){ .object = object };
	slash = strchr(get_member(rule, "ip_cidr", text), '/');
	rule->prefix_len = slash ? (unsigned int)atoi(slash + 1) : 0;
	rules->n++;
}

/* The agent looks at the rule with the longest prefix alone. */
static int compare_prefixes(const void *a, const void *b)
{
	const struct rule *left = a, *right = b;

	return left->prefix_len > right->prefix_len ? -1 :
	       left->prefix_len < right->prefix_len ? 1 :
	       left->object.at > right->object.at   ? 1 :
						      -1;
}

static void read_rules(struct rules *rules)
{
	const char *text = get_variable(RULES, NULL);
	struct json_item item = { 0 };

	*rules = (struct rules){ 0 };
	if (text) {
		const struct json_value all = json_parse(text);

		if (!all.at || *all.at != '[')
			report_variable(RULES, "it is no array in JSON");
		while (all.at && json_next(all, &item))
			add_rule(rules, item.value);
	} else if (get_variable("FILTER_IP_CIDR", NULL)) {
		add_rule(rules, (struct json_value){ NULL });
	}
	qsort(rules->list, rules->n, sizeof(*rules->list), compare_prefixes);
}

static bool accepts_any(const struct rules *rules)
{
	for (unsigned int i = 0; i < rules->n; i++)
		if (has_action(&rules->list[i], "accept"))
			return true;
	return false;
}

static void print_rule(const struct rule *rule, unsigned int number)
{
	char match[MATCH_MAX], text[TEXT_MAX];

	make_match(rule, match);
	printf("\n[filter \"rule%u\"]\nmatch = %s\naction = %s\n", number,
	       match, has_action(rule, "reject") ? "reject" : "accept");
	if (*get_member(rule, "sample", text) && strcmp(text, "0") != 0)
		printf("sample = 1:%s\n", text);
	if (*get_member(rule, "direction", text))
		report_variable(
			RULES,
			"direction '%s' of a rule has no equal: [capture] direction is for all",
			text);
	if (!strcmp(get_member(rule, "drops", text), "true"))
		report_variable(
			RULES,
			"drops has no equal: filters see packets before they are dropped");
}

const char *import_default_action(void)
{
	struct rules rules;

	read_rules(&rules);
	return !rules.n ? NULL : accepts_any(&rules) ? "reject" : "accept";
}

void import_filters(void)
{
	struct rules rules;

	read_rules(&rules);
	for (unsigned int i = 0; i < rules.n; i++)
		print_rule(&rules.list[i], i + 1);
	if (rules.n > 1)
		report_variable(
			RULES,
			"check the order of the filters: here the first that matches decides, there only the one with the longest prefix was asked");
}
