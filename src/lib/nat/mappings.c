/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "mappings.h"

#include "base/text.h"
#include "base/util.h"
#include "bpf/parse/headers.h"
#include "host/host.h"
#include "translation_table.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

enum {
	WALK = 4096, /* places that are looked at, at a time */
	FIRST_LOOK_S = 5,
	LOOK_MAX_S = 60, /* from one look at a mapping to the next one */
	/* The kernel keeps an entry without an answer and packets for so long at most (defaults). */
	UNANSWERED_MAX_S = 600,
};

static uint32_t seconds_of(int64_t ns)
{
	return (uint32_t)(ns / NSEC_PER_SEC);
}

/* ---- As a record ------------------------------------------------------------------ */

static bool is_end_same(const struct ip_addr *a, uint16_t a_port,
			const struct ip_addr *b, uint16_t b_port)
{
	return a_port == b_port && !memcmp(a, b, sizeof(*a));
}

static uint8_t find_translated(const struct tuple *before,
			       const struct tuple *after)
{
	uint8_t translated = 0;

	if (!is_end_same(&before->src, before->src_port, &after->src,
			 after->src_port))
		translated |= NETOBS_MAPPING_SOURCE;
	if (!is_end_same(&before->dst, before->dst_port, &after->dst,
			 after->dst_port))
		translated |= NETOBS_MAPPING_DESTINATION;
	return translated;
}

/* RFC 8158, 4.2, and the registry of IANA, which has nothing for sessions between IPv6 addresses. */
static uint8_t nat_event_of(uint8_t event, uint16_t ethertype)
{
	if (event == NETOBS_MAPPING_KNOWN)
		return 0;
	if (ethertype == 0x0800)
		return event == NETOBS_MAPPING_BEGIN ? 4 : 5;
	return event == NETOBS_MAPPING_BEGIN ? 1 : 2;
}

/* Set the members that stay equal as long as the mapping exists. */
static void fill_tuples(const struct translation *translation,
			struct netobs_mapping *mapping)
{
	const struct tuple *before = &translation->before[NAT_ORIGINAL];
	const struct tuple after =
		translation_tuple(translation, SIDES * NAT_ORIGINAL + AFTER);

	memcpy(mapping->src, before->src.bytes, sizeof(mapping->src));
	memcpy(mapping->dst, before->dst.bytes, sizeof(mapping->dst));
	memcpy(mapping->post_src, after.src.bytes, sizeof(mapping->post_src));
	memcpy(mapping->post_dst, after.dst.bytes, sizeof(mapping->post_dst));
	mapping->ethertype = ip_is_v4(before->src.bytes) ? 0x0800 : 0x86dd;
	mapping->protocol = translation->proto;
	mapping->translated = find_translated(before, &after);
	mapping->zone = translation->zone;
	if (!proto_has_ports(translation->proto))
		return;
	mapping->record.has |= NETOBS_MAPPING_HAS_PORTS;
	mapping->src_port = before->src_port;
	mapping->dst_port = before->dst_port;
	mapping->post_src_port = after.src_port;
	mapping->post_dst_port = after.dst_port;
}

static void fill_interface(const struct host *host, uint16_t netns,
			   uint32_t ifindex, uint32_t *ret_ifindex,
			   char (*ret_name)[16])
{
	const struct netif *netif = host ? host_find(host, netns, ifindex) : NULL;

	*ret_ifindex = ifindex;
	if (netif)
		snprintf(*ret_name, sizeof(*ret_name), "%s", netif->name);
}

static void fill_times(const struct mappings *mappings,
		       const struct translation *translation,
		       struct netobs_mapping *mapping)
{
	const struct clock *clock = mappings->clock;

	if (translation->born_ns) {
		mapping->record.has |= NETOBS_MAPPING_HAS_START;
		mapping->start_ns = clock_to_wall(clock, translation->born_ns);
	}
	if (translation->is_seen) {
		mapping->record.has |= NETOBS_MAPPING_HAS_LAST;
		mapping->last_ns = clock_to_wall(
			clock, translation_last(mappings->table, translation));
	}
	if (translation->ended_ns) {
		mapping->record.has |= NETOBS_MAPPING_HAS_END;
		mapping->state = NETOBS_MAPPING_ENDED;
		mapping->end_ns = clock_to_wall(clock, translation->ended_ns);
	}
}

static uint64_t conversation_of(const struct mappings *mappings,
				const struct translation *translation)
{
	const struct translation_table *table = mappings->table;
	const struct flow_entry entry = {
		.key.proto = translation->proto,
		.tally = { .first_ns = (uint64_t)translation->first_ns,
			   .last_ns = (uint64_t)translation_last(table,
								 translation) },
	};
	const uint32_t node = translation_node(table, translation,
					       SIDES * NAT_ORIGINAL + AFTER);
	struct tuple tuple;

	return search_conversation(mappings->host, table, &entry, node, &tuple) ?
		       tuple_conversation(&tuple, translation->proto) :
		       0;
}

static struct netobs_mapping make_mapping(uint8_t event, int64_t wall_ns)
{
	return (struct netobs_mapping){
		.record = { .sz = sizeof(struct netobs_mapping),
			    .type = NETOBS_RECORD_MAPPING,
			    .time_ns = wall_ns },
		.event = event,
	};
}

static struct netobs_mapping mapping_of(const struct mappings *mappings,
					const struct translation *translation,
					uint8_t event, int64_t now_ns)
{
	const uint32_t face = SIDES * NAT_ORIGINAL;
	const uint16_t netns = translation->netns;
	const struct host *host = mappings->host;
	struct netobs_mapping mapping =
		make_mapping(event, clock_to_wall(mappings->clock, now_ns));

	fill_tuples(translation, &mapping);
	mapping.nat_event = nat_event_of(event, mapping.ethertype);
	if (mappings->knows_zones && !translation->of_socket)
		mapping.record.has |= NETOBS_MAPPING_HAS_ZONE;
	if (translation->of_socket)
		mapping.netns_inode = translation->socket.inode;
	else if (host && netns < host->n_netns)
		mapping.netns_inode = host->netns[netns].inode;
	fill_interface(host, netns, translation->ifindex[face + BEFORE],
		       &mapping.in_ifindex, &mapping.in_interface);
	fill_interface(host, netns, translation->ifindex[face + AFTER],
		       &mapping.out_ifindex, &mapping.out_interface);
	fill_times(mappings, translation, &mapping);
	mapping.conversation_id = conversation_of(mappings, translation);
	return mapping;
}

static struct nat_event event_of(const struct conntrack_entry *entry,
				 uint16_t netns, int64_t now_ns)
{
	return (struct nat_event){
		.time_ns = (uint64_t)now_ns,
		.tuples = { entry->tuples[NAT_ORIGINAL],
			    entry->tuples[NAT_REPLY] },
		.netns = netns,
		.zone = entry->zone,
	};
}

bool mapping_of_entry(const struct conntrack_entry *entry, uint32_t netns_inode,
		      int64_t wall_ns, struct netobs_mapping *ret_mapping)
{
	const struct nat_event event = event_of(entry, 0, 0);
	const struct translation translation = translation_of_event(&event);

	if (!translation_changes(&translation))
		return false;
	*ret_mapping = make_mapping(NETOBS_MAPPING_KNOWN, wall_ns);
	fill_tuples(&translation, ret_mapping);
	ret_mapping->netns_inode = netns_inode;
	ret_mapping->start_ns = entry->start_ns;
	if (entry->start_ns)
		ret_mapping->record.has |= NETOBS_MAPPING_HAS_START;
	if (entry->zone)
		ret_mapping->record.has |= NETOBS_MAPPING_HAS_ZONE;
	return true;
}

/* ---- Begin and end ---------------------------------------------------------------- */

static void report(struct mappings *mappings,
		   const struct translation *translation, uint8_t event,
		   bool is_forgotten, int64_t now_ns)
{
	struct netobs_mapping mapping;

	if (!mappings->on_record)
		return;
	mapping = mapping_of(mappings, translation, event, now_ns);
	if (is_forgotten)
		mapping.state = NETOBS_MAPPING_FORGOTTEN;
	mappings->n_reported++;
	mappings->on_record(&mapping.record, mappings->user);
}

static void report_begun(struct mappings *mappings,
			 const struct translation *translation, int64_t now_ns)
{
	mappings->active++;
	mappings->n_begun++;
	report(mappings, translation, NETOBS_MAPPING_BEGIN, false, now_ns);
}

/*
 * @return whether the table may have lost it before; an unanswered mapping would have expired by
 * now
 */
static bool may_have_been_lost(const struct translation_table *table,
			       const struct translation *translation)
{
	const int64_t least_ns = UNANSWERED_MAX_S * NSEC_PER_SEC;

	return table->lost_ns &&
	       (translation->signs & SIGN_ANSWERED ||
		translation->born_ns - table->lost_ns < least_ns);
}

/*
 * @return whether the mapping may be older than its first report: not all existing entries were
 * listed before
 */
static bool may_be_older(const struct mappings *mappings,
			 const struct translation *translation)
{
	const struct mapping_space *space;

	if (translation->netns >= mappings->n_spaces)
		return true;
	space = &mappings->spaces[translation->netns];
	return !space->complete_ns ||
	       translation->born_ns <= space->complete_ns ||
	       may_have_been_lost(mappings->table, translation);
}

static void on_begun(void *ctx, struct translation *translation)
{
	const int64_t now_ns = translation->born_ns;

	if (!translation_changes(translation))
		return;
	if (!translation->of_socket && may_be_older(ctx, translation))
		translation->born_ns = 0;
	report_begun(ctx, translation, now_ns);
}

static void on_removed(void *ctx, const struct translation *translation,
		       int64_t now_ns)
{
	struct mappings *mappings = ctx;

	if (translation->ended_ns || !translation_changes(translation))
		return;
	mappings->active--;
	mappings->n_forgotten++;
	report(mappings, translation, NETOBS_MAPPING_END, true, now_ns);
}

static void report_ended(struct mappings *mappings,
			 const struct translation *translation, int64_t now_ns)
{
	mappings->active--;
	mappings->n_ended++;
	report(mappings, translation, NETOBS_MAPPING_END, false, now_ns);
}

static void on_ended(void *ctx, struct translation *translation, int64_t now_ns)
{
	if (translation_changes(translation))
		report_ended(ctx, translation, now_ns);
}

void mappings_init(struct mappings *mappings, struct translation_table *table,
		   const struct clock *clock, const struct host *host,
		   bool knows_zones,
		   void (*on_record)(const struct netobs_record *record,
				     void *user),
		   void *user)
{
	*mappings = (struct mappings){
		.table = table,
		.clock = clock,
		.host = host,
		.knows_zones = knows_zones,
		.on_record = on_record,
		.user = user,
		.watch = { .begun = on_begun,
			   .ended = on_ended,
			   .removed = on_removed,
			   .ctx = mappings },
	};
	table->watch = &mappings->watch;
}

void mappings_done(struct mappings *mappings)
{
	free(mappings->spaces);
	*mappings = (struct mappings){ 0 };
}

struct mapping_space *mappings_space(struct mappings *mappings, uint32_t netns)
{
	return array_extend(&mappings->spaces, &mappings->n_spaces, netns + 1,
			    sizeof(*mappings->spaces)) ?
		       &mappings->spaces[netns] :
		       NULL;
}

struct translation *mappings_find_entry(const struct mappings *mappings,
					uint16_t netns,
					const struct conntrack_entry *entry)
{
	const struct nat_event event = event_of(entry, netns, 0);

	return translation_table_find(mappings->table, &event);
}

/*
 * Take status and start from the kernel's entry. If it began after the first report, whose time
 * is that of the last tick, an earlier entry was replaced, so this is not the start of the mapping.
 */
static void take_entry(struct mappings *mappings, struct translation *translation,
		       const struct conntrack_entry *entry)
{
	const int64_t start_ns = entry->start_ns - mappings->clock->wall_offset;
	uint8_t signs = entry->is_answered ? SIGN_ANSWERED : 0;

	if (entry->is_assured)
		signs |= SIGN_LASTS;
	translation_table_sign(mappings->table, translation, signs);
	if (entry->start_ns && !translation->born_ns &&
	    start_ns <= translation->first_ns + TICK_NS)
		translation->born_ns = start_ns;
}

bool mappings_list(struct mappings *mappings, uint16_t netns,
		   const struct conntrack_entry *entry, int64_t now_ns)
{
	const struct nat_event event = event_of(entry, netns, now_ns);
	const struct translation wanted = translation_of_event(&event);
	struct translation *known, *translation;

	if (!translation_changes(&wanted))
		return true;
	known = translation_table_find(mappings->table, &event);
	translation = known ?: translation_table_list(mappings->table, &event);
	if (!translation)
		return false;
	take_entry(mappings, translation, entry);
	if (!known)
		report_begun(mappings, translation, now_ns);
	return true;
}

/* ---- Looking whether they go on --------------------------------------------------- */

static bool is_followed(const struct mappings *mappings, uint16_t netns)
{
	const struct host *host = mappings->host;

	return !host ||
	       (netns < host->n_netns && host->netns[netns].rtnl_fd >= 0);
}

static bool cannot_ask(const struct mappings *mappings, uint16_t netns)
{
	return netns < mappings->n_spaces && mappings->spaces[netns].cannot_ask;
}

/*
 * @return whether it has ended, or its end will not be reported, and no packet was seen since
 * @least_ns
 */
static bool is_over(const struct mappings *mappings,
		    const struct translation *translation, int64_t least_ns)
{
	if (translation_last(mappings->table, translation) >= least_ns)
		return false;
	if (translation->ended_ns)
		return translation->ended_ns < least_ns;
	if (translation->is_partial ||
	    (translation->of_socket && translation_changes(translation)))
		return false;
	return cannot_ask(mappings, translation->netns) ||
	       !translation_changes(translation);
}

static bool is_to_be_removed(const struct mappings *mappings,
			     const struct translation *translation,
			     int64_t now_ns)
{
	const int64_t least_ns = now_ns - TRANSLATION_KEEP_S * NSEC_PER_SEC;

	if (!translation_is_read(mappings->table, translation))
		return false;
	if (!translation->of_socket && !is_followed(mappings, translation->netns))
		return true;
	return is_over(mappings, translation, least_ns);
}

static bool is_due(struct translation *translation, uint32_t now_s)
{
	if (translation->of_socket || translation->ended_ns ||
	    !translation_changes(translation))
		return false;
	if (!translation->look_s)
		translation->look_s = now_s + FIRST_LOOK_S;
	return translation->look_s <= now_s;
}

uint32_t mappings_due(struct mappings *mappings, int64_t now_ns,
		      struct translation **ret_due, uint32_t max)
{
	struct translation_table *table = mappings->table;
	const uint32_t now_s = seconds_of(now_ns);
	uint32_t n = 0;

	for (uint32_t i = 0; i < WALK && i < table->n && n < max; i++) {
		struct translation *translation;

		if (mappings->hand >= table->n)
			mappings->hand = 0;
		translation = &table->list[mappings->hand++];
		if (!translation_is_there(translation))
			continue;
		if (is_to_be_removed(mappings, translation, now_ns))
			translation_table_remove(table, translation, now_ns);
		else if (is_due(translation, now_s))
			ret_due[n++] = translation;
	}
	return n;
}

void mappings_go_on(struct translation *translation, int64_t now_ns,
		    uint32_t timeout_s)
{
	const uint32_t after_s = timeout_s < LOOK_MAX_S ? timeout_s + 1 :
							  (uint32_t)LOOK_MAX_S;

	translation->look_s = seconds_of(now_ns) + after_s;
}

void mappings_answer(struct mappings *mappings, struct translation *translation,
		     const struct conntrack_entry *entry, int64_t now_ns)
{
	take_entry(mappings, translation, entry);
	mappings_go_on(translation, now_ns, entry->timeout_s);
}

void mappings_end(struct mappings *mappings, struct translation *translation,
		  int64_t now_ns)
{
	translation_table_end(mappings->table, translation, now_ns);
	report_ended(mappings, translation, now_ns);
}

static void unread_address(const struct ip_addr *addr, uint32_t words[4])
{
	if (ip_is_v4(addr->bytes))
		words[0] = addr->words[3];
	else
		memcpy(words, addr->words, sizeof(addr->words));
}

struct conntrack_entry mapping_question(const struct translation *translation)
{
	const struct tuple *before = &translation->before[NAT_ORIGINAL];
	struct conntrack_entry entry = { .zone = translation->zone };
	struct nat_tuple *tuple = &entry.tuples[NAT_ORIGINAL];

	*tuple = (struct nat_tuple){
		.src_port = translation->src_port,
		.dst_port = translation->dst_port,
		.family = ip_is_v4(before->src.bytes) ? AF_INET : AF_INET6,
		.proto = translation->proto,
	};
	unread_address(&before->src, tuple->src);
	unread_address(&before->dst, tuple->dst);
	return entry;
}

/* ---- Reading the table ------------------------------------------------------------ */

uint32_t mappings_next(const struct mappings *mappings, uint32_t at,
		       int64_t now_ns, mapping_fn *take, void *user)
{
	const struct translation_table *table = mappings->table;

	for (; at < table->n; at++) {
		const struct translation *translation = &table->list[at];
		struct netobs_mapping mapping;

		if (!translation_is_there(translation) ||
		    !translation_changes(translation))
			continue;
		mapping = mapping_of(mappings, translation,
				     NETOBS_MAPPING_KNOWN, now_ns);
		take(&mapping, user);
		return at + 1;
	}
	return 0;
}

/* One pass over the mappings that match. */
struct search {
	const struct mappings *mappings;
	const struct netobs_mapping_query *query;
	int64_t now_ns;
	mapping_fn *take;
	void *user;
	bool has_ended; /* pass on mappings that have ended, or else active ones */
	uint32_t n;
};

static void pass_match(const struct netobs_mapping *mapping, void *user)
{
	struct search *search = user;

	if ((mapping->state != NETOBS_MAPPING_ACTIVE) != search->has_ended ||
	    !netobs_mapping_matches(mapping, search->query))
		return;
	search->n++;
	search->take(mapping, search->user);
}

static bool is_whole(const struct netobs_mapping_query *query)
{
	return proto_has_ports(query->protocol) && query->src_port &&
	       query->dst_port && !ip_is_any(query->src) &&
	       !ip_is_any(query->dst);
}

/* Pass on the mappings that have this face. */
static void search_faces(struct search *search, const struct face_key *key)
{
	const struct translation_table *table = search->mappings->table;

	for (uint32_t node = translation_table_first(table, key); node;
	     node = translation_table_next(table, node, key)) {
		const struct translation *translation =
			translation_of(table, node);
		struct netobs_mapping mapping;

		if (!translation_changes(translation))
			continue;
		mapping = mapping_of(search->mappings, translation,
				     NETOBS_MAPPING_KNOWN, search->now_ns);
		pass_match(&mapping, search);
	}
}

/* A tuple may be one before translation or after it; for one mapping it is never both. */
static void search_tuple(struct search *search)
{
	const struct netobs_mapping_query *query = search->query;
	struct face_key key = { .proto = query->protocol };

	memcpy(key.tuple.src.bytes, query->src, sizeof(query->src));
	memcpy(key.tuple.dst.bytes, query->dst, sizeof(query->dst));
	key.tuple.src_port = query->src_port;
	key.tuple.dst_port = query->dst_port;
	for (int i = 0; i < 2 * SIDES; i++) {
		key.of_socket = i / SIDES;
		key.side = (uint8_t)(i % SIDES);
		search_faces(search, &key);
	}
}

static void search_all(struct search *search)
{
	uint32_t at = 0;

	do
		at = mappings_next(search->mappings, at, search->now_ns,
				   pass_match, search);
	while (at);
}

uint32_t mappings_find(const struct mappings *mappings,
		       const struct netobs_mapping_query *query, int64_t now_ns,
		       mapping_fn *take, void *user)
{
	struct search search = { .mappings = mappings,
				 .query = query,
				 .now_ns = now_ns,
				 .take = take,
				 .user = user };

	for (int pass = 0; pass < 2; pass++) {
		search.has_ended = pass;
		if (is_whole(query))
			search_tuple(&search);
		else
			search_all(&search);
	}
	return search.n;
}
