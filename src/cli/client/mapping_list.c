/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <netobs/mapping.h>

#include "base/util.h"
#include "base/text.h"
#include "cli/view/row.h"
#include "service/text/human.h"

enum { FIRST_LINES = 64 };

/* ---- Collecting ------------------------------------------------------------------- */

static struct json_value value_of(const struct mapping_row *row, const char *name)
{
	return json_get((struct json_value){ row->line }, name);
}

static void add_text(struct mapping_list *list, const char *text, size_t len)
{
	static const char *const names[] = { "EndedMs", "TimeFlowEndMs",
					     "TimeFlowStartMs" };
	struct mapping_row row = { .line = strndup(text, len) };

	if (!row.line || !array_reserve(&list->rows, list->n, &list->capacity,
					sizeof(*list->rows), FIRST_LINES)) {
		free(row.line);
		list->is_out_of_memory = true;
		return;
	}
	json_text(value_of(&row, "State"), row.state, sizeof(row.state));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		row.times[i] = json_number(value_of(&row, names[i]));
	list->rows[list->n++] = row;
}

void mapping_list_add(const struct netobs_mapping *mapping, void *arg)
{
	struct mapping_list *list = arg;
	char text[NETOBS_MAPPING_JSON_MAX];
	int len;

	if (list->query && !netobs_mapping_matches(mapping, list->query))
		return;
	len = netobs_record_json(&mapping->record, text, sizeof(text));
	if (len > 0)
		add_text(list, text, (size_t)len);
}

/* @next: cursor of the next page; 0: there are no more. */
static int ask_part(struct mapping_list *list, const char *socket,
		    const char *tuple, uint64_t *next)
{
	struct control_connection connection;
	struct json_value answer = { NULL }, mappings;
	struct json_item item = { 0 };
	char request[512];
	int r;

	snprintf(request, sizeof(request), "mappings %" PRIu64 "%s%s", *next,
		 tuple ? "," : "", tuple ?: "");
	r = control_connect(&connection, "map", socket, request);
	connection.may_lack = !socket;
	r = r ?: control_answer(&connection, &answer);
	mappings = json_get(answer, "mappings"); /* reads the whole answer */
	while (!r && json_next(mappings, &item))
		add_text(list, item.value.at, json_length(item.value));
	*next = r ? 0 : json_number(json_get(answer, "next"));
	control_disconnect(&connection);
	return r;
}

/* A request is words, and a tuple one of them. */
static void remove_spaces(char *text)
{
	char *to = text;

	for (; *text; text++)
		if (*text != ' ' && *text != '\t')
			*to++ = *text;
	*to = '\0';
}

int mapping_list_kernel(struct mapping_list *list, const char *netns)
{
	const int r = netobs_mappings_list(netns, mapping_list_add, list);

	if (r >= 0)
		return 0;
	if (netns && r == -ENOTTY) {
		fprintf(stderr,
			"netobsctl map: --netns: '%s' is no network namespace: use a name that 'ip netns' lists, or a file such as /proc/PID/ns/net\n",
			netns);
		return r;
	}
	fprintf(stderr, "netobsctl map: %s%s%s: %s%s\n",
		r == -EAGAIN ? "the kernel's table changes too fast to be listed" :
			       "cannot list the kernel's table of connections",
		netns ? " of " : "", netns ?: "", strerror(-r),
		r != -EPERM ? "" :
		netns	    ? " (it needs CAP_SYS_ADMIN)" :
			      " (it needs CAP_NET_ADMIN)");
	return r;
}

static int ask_service(struct mapping_list *list, const char *socket,
		       const char *tuple)
{
	cleanup_free char *word = tuple ? strdup(tuple) : NULL;
	uint64_t next = 0;
	int r;

	if (word)
		remove_spaces(word);
	do
		r = ask_part(list, socket, word, &next);
	while (!r && next);
	return r;
}

int mapping_list_ask(struct mapping_list *list, const char *socket,
		     const char *tuple, bool *has_service)
{
	int r = *has_service ? ask_service(list, socket, tuple) : -ENOTSUP;

	if (r != -ENOTSUP || socket)
		return r;
	if (*has_service)
		fputs("netobsctl map: the service keeps no mappings, as it has no "
		      "'nat = yes' in [capture]: these are those of the kernel\n",
		      stderr);
	*has_service = false;
	return mapping_list_kernel(list, NULL);
}

/* "active" comes before "ended", and a later time before an earlier one. */
static int compare_rows(const void *a, const void *b)
{
	const struct mapping_row *one = a, *two = b;
	int order = strcmp(one->state, two->state);

	for (size_t i = 0; !order && i < ARRAY_SIZE(one->times); i++)
		order = (one->times[i] < two->times[i]) -
			(one->times[i] > two->times[i]);
	return order;
}

void mapping_list_sort(struct mapping_list *list)
{
	if (list->n)
		qsort(list->rows, list->n, sizeof(*list->rows), compare_rows);
}

void mapping_list_clear(struct mapping_list *list)
{
	for (uint32_t i = 0; i < list->n; i++)
		free(list->rows[i].line);
	free(list->rows);
	*list = (struct mapping_list){ .query = list->query };
}

/* ---- Printing --------------------------------------------------------------------- */

/* @otherwise: where there is no such text */
static void put_text(const struct mapping_row *row, const char *name,
		     const char *otherwise, char *buf, size_t size)
{
	json_text(value_of(row, name), buf, size);
	if (!*buf)
		snprintf(buf, size, "%s", otherwise);
	safe_cell(buf);
}

static void put_end(const char *addr, const char *port,
		    const struct mapping_row *row, char *buf, size_t size)
{
	const struct json_value number = value_of(row, port);
	char host[64], service[8] = "";

	put_text(row, addr, "", host, sizeof(host));
	if (!number.at) {
		snprintf(buf, size, "%s", host);
		return;
	}
	snprintf(service, sizeof(service), "%u",
		 (unsigned int)(uint16_t)json_number(number));
	human_endpoint(buf, size, host, service);
}

/* @prefix: of the names of its members: "", "Xlat" */
static void put_tuple(const struct mapping_row *row, const char *prefix,
		      char *buf, size_t size)
{
	char names[4][16], src[80], dst[80];
	static const char *const parts[] = { "SrcAddr", "SrcPort", "DstAddr",
					     "DstPort" };

	for (int i = 0; i < 4; i++)
		snprintf(names[i], sizeof(names[i]), "%s%s", prefix, parts[i]);
	put_end(names[0], names[1], row, src, sizeof(src));
	put_end(names[2], names[3], row, dst, sizeof(dst));
	snprintf(buf, size, "%s > %s", src, dst);
}

static void put_proto(const struct mapping_row *row, char *buf, size_t size)
{
	static const struct {
		uint8_t number;
		const char *name;
	} names[] = { { 1, "icmp" },  { 6, "tcp" },	{ 17, "udp" },
		      { 33, "dccp" }, { 58, "icmpv6" }, { 132, "sctp" } };
	const uint64_t number = json_number(value_of(row, "Proto"));

	snprintf(buf, size, "%" PRIu64, number);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].number == number)
			snprintf(buf, size, "%s", names[i].name);
}

/* Format "eth0 > eth1"; unknown interfaces are "-". */
static void put_via(const struct mapping_row *row, char *buf, size_t size)
{
	char in[32], out[32];

	put_text(row, "InInterface", "-", in, sizeof(in));
	put_text(row, "OutInterface", "-", out, sizeof(out));
	if (strcmp(in, "-") || strcmp(out, "-"))
		snprintf(buf, size, "%s > %s", in, out);
	else
		snprintf(buf, size, "-");
}

static void put_number(struct json_value number, char *buf, size_t size)
{
	if (number.at)
		snprintf(buf, size, "%" PRIu64, json_number(number));
	else
		snprintf(buf, size, "-");
}

static void put_time(struct json_value ms, char *buf, size_t size)
{
	if (ms.at)
		human_time(buf, size, json_signed(ms) * NSEC_PER_MSEC);
	else
		snprintf(buf, size, "-");
}

/* Columns, in the form of row.h. */
#define MAPPING_COLUMNS(_, type)                                          \
	_(type, STATE, "STATE", left, 0, 0, 1,                            \
	  put_text(row, "State", "", buf, size))                          \
	_(type, PROTO, "PROTO", left, 0, 0, 1, put_proto(row, buf, size)) \
	_(type, BEFORE, "BEFORE NAT", left, 0, 0, 1,                      \
	  put_tuple(row, "", buf, size))                                  \
	_(type, AFTER, "AFTER NAT", left, 0, 0, 1,                        \
	  put_tuple(row, "Xlat", buf, size))                              \
	_(type, VIA, "VIA", left, 0, 0, 1, put_via(row, buf, size))       \
	_(type, ZONE, "ZONE", right, 0, 0, 1,                             \
	  put_number(value_of(row, "ZoneId"), buf, size))                 \
	_(type, NETNS, "NETNS", right, 0, 0, 1,                           \
	  put_number(value_of(row, "NetnsInode"), buf, size))             \
	_(type, BEGAN, "BEGAN", left, 0, 0, 1,                            \
	  put_time(value_of(row, "TimeFlowStartMs"), buf, size))          \
	_(type, LAST, "LAST PACKET", left, 0, 0, 1,                       \
	  put_time(value_of(row, "TimeFlowEndMs"), buf, size))

TABLE(mapping_columns, MAPPING_COLUMNS, struct mapping_row);

void mapping_list_print_table(const struct mapping_list *list, uint32_t most,
			      uint32_t width)
{
	table_print(mapping_columns, ARRAY_SIZE(mapping_columns), list->rows,
		    sizeof(*list->rows), list->n, most, width);
}

static uint32_t limit_rows(const struct mapping_list *list, uint32_t most)
{
	return most && most < list->n ? most : list->n;
}

void mapping_list_print_json(const struct mapping_list *list, uint32_t most)
{
	for (uint32_t i = 0; i < limit_rows(list, most); i++)
		puts(list->rows[i].line);
}
