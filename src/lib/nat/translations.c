/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "translations.h"

#include "base/util.h"
#include "bpf/parse/headers.h"
#include "bpf/store/hash.h"
#include "host/host.h"

#include <errno.h>
#include <linux/icmp.h>
#include <netobs/flow.h>
#include <stdlib.h>
#include <string.h>

enum {
	LATER_MAX = 1 << 17
}; /* reports during a drain: 13 MiB, which are freed then */

/* A face that entries have found. */
struct end {
	uint32_t node; /* of the table; 0: none */
	uint32_t serial;
	uint32_t hops; /* translations from the flow's own tuple to it */
	bool is_ambiguous;
};

/* Per-flow state: translations found by its entries since the last record. */
struct ends {
	struct end first; /* the face nearest to the flow's own tuple; no node: the own tuple was seen */
	struct end last;     /* the last tuple that its packets get */
	struct end original; /* the tuple of its packets before they were seen */
	struct end asked;    /* the tuple that the sending process asked for */
	uint64_t conversation;
	int64_t first_ns, last_ns; /* of packets; not while !is_seen */
	bool is_seen;
	bool is_unclear[SIDES]; /* packets had, or will have, one of several translations */
	bool has_several; /* entries found several conversations */
};

/* @return whether the packets are in a tunnel that does not end on this host */
static bool passes_in_tunnel(const struct translations *translations,
			     const struct flow_key *key)
{
	const struct host *host = translations->host;

	return key->tunnel && !(host && overlays_find(host, key));
}

/* In a tunnel that ends on this host, packets are translated before or after it. */
static bool has_tuple(const struct translations *translations,
		      const struct flow_key *key)
{
	return !(key->flags & KEY_NO_TRANSPORT) &&
	       !passes_in_tunnel(translations, key);
}

/* ---- As which flow an entry counts --------------------------------------------------- */

/* ICMP errors, by the types of conntrack, which translates them with the packet that they quote. */
static bool is_icmp_error(const struct flow_key *key)
{
	const uint8_t type = (uint8_t)(key->dst_port >> 8);

	if (key->flags & KEY_NO_TRANSPORT)
		return false;
	if (key->proto == IP_PROTO_ICMPV6)
		return type < 128;
	return key->proto == IP_PROTO_ICMP &&
	       (type == ICMP_DEST_UNREACH || type == ICMP_SOURCE_QUENCH ||
		type == ICMP_REDIRECT || type == ICMP_TIME_EXCEEDED ||
		type == ICMP_PARAMETERPROB);
}

/*
 * The origin of the outer packet of a tunnel that passes this host. No hops: it is not translated,
 * or the kernel has forgotten the tunnel's addresses.
 */
static struct origin search_outer(struct translations *translations,
				  const struct flow_entry *entry)
{
	/* Protocols of the outer packet; 0: no further one. */
	static const uint8_t protos[TUNNEL_MAX][2] = {
		[TUNNEL_VXLAN] = { IP_PROTO_UDP },
		[TUNNEL_GENEVE] = { IP_PROTO_UDP },
		[TUNNEL_GRE] = { IP_PROTO_GRE },
		[TUNNEL_IPIP] = { IP_PROTO_IPIP, IP_PROTO_IPV6 },
		[TUNNEL_GTPU] = { IP_PROTO_UDP },
		[TUNNEL_SRV6] = { IP_PROTO_ETHERNET },
		[TUNNEL_ERSPAN] = { IP_PROTO_GRE },
	};
	const uint8_t *proto = protos[entry->key.tunnel];
	struct flow_entry outer = *entry;
	struct origin origin = { 0 };
	struct tunnel_addrs addrs;

	if (!translations->table.known ||
	    !tunnel_addrs_find(&translations->tunnels, entry, &addrs))
		return origin;
	outer.key.src = addrs.src;
	outer.key.dst = addrs.dst;
	outer.key.src_port = entry->outer_src_port;
	outer.key.dst_port = entry->outer_dst_port;
	outer.key.tunnel = TUNNEL_NONE;
	/* A connection that begins in the tunnel does not begin one outside. */
	outer.tally.attrs.marks = 0;
	for (int i = 0;
	     i < 2 && proto[i] && !origin.hops && !origin.is_ambiguous; i++) {
		outer.key.proto = proto[i];
		origin = search_origin(translations->host, &translations->table,
				       &outer);
	}
	return origin;
}

static void set_outer(const struct translations *translations,
		      const struct origin *origin, struct flow_key *key)
{
	const struct flow_key outer = { .src = origin->tuple.src,
					.dst = origin->tuple.dst };

	if (origin->hops)
		key->outer_hash = hash_addrs(&outer, translations->secret->outer);
}

/*
 * A packet counts with the tuple that it had where it was seen first; in a tunnel that passes this
 * host, with the outer addresses that it had there. If these may come from one of several
 * translations, the first ones are unknown; but the packet was counted where it came in, unless a
 * filter rejected it there. ICMP errors are treated alike, as their tuple does not tell their
 * translation.
 */
static bool find_own_key(const struct flow_entry *entry, bool is_further,
			 struct flow_key *key, void *ctx)
{
	struct translations *translations = ctx;
	const bool passes = passes_in_tunnel(translations, &entry->key);
	struct origin origin;

	if (!passes && entry->key.flags & KEY_NO_TRANSPORT)
		return true;
	origin = passes ? search_outer(translations, entry) :
			  search_origin(translations->host,
					&translations->table, entry);
	if (origin.is_ambiguous ||
	    (!passes && translations->table.known && is_icmp_error(&entry->key)))
		return !is_further || !translations->host ||
		       translations->host->is_filtered;
	if (passes) {
		set_outer(translations, &origin, key);
		return true;
	}
	key->src = origin.tuple.src;
	key->dst = origin.tuple.dst;
	key->src_port = origin.tuple.src_port;
	key->dst_port = origin.tuple.dst_port;
	return true;
}

/* ---- What entries find ---------------------------------------------------------------- */

static struct tuple tuple_of(const struct translation_table *table, uint32_t node)
{
	return translation_tuple(translation_of(table, node), face_of(node));
}

static struct end end_of(const struct translation_table *table, uint32_t node,
			 uint32_t hops)
{
	return (struct end){ .node = node,
			     .serial = translation_of(table, node)->serial,
			     .hops = hops };
}

/* The face on the other side of a translation. */
static uint32_t other_face(uint32_t node)
{
	return node - face_of(node) + (face_of(node) ^ 1);
}

/* @return whether another translation has the place by now */
static bool is_stale(const struct translation_table *table, const struct end *end)
{
	return translation_of(table, end->node)->serial != end->serial;
}

/* Of two ends that are equally near, either one is right if their tuples are equal, and neither if they differ. */
static void join_equal(const struct translation_table *table, struct end *end,
		       const struct end *other)
{
	struct tuple one, two;

	if (!end->node || !other->node)
		return;
	if (is_stale(table, end) || is_stale(table, other)) {
		end->is_ambiguous = true;
		return;
	}
	one = tuple_of(table, end->node);
	two = tuple_of(table, other->node);
	end->is_ambiguous |= other->is_ambiguous ||
			     memcmp(&one, &two, sizeof(one)) != 0;
}

static void join_times(struct ends *ends, int64_t first_ns, int64_t last_ns)
{
	ends->first_ns = ends->is_seen ? min_i64(ends->first_ns, first_ns) :
					 first_ns;
	ends->last_ns = ends->is_seen ? max_i64(ends->last_ns, last_ns) : last_ns;
}

static void join_first(const struct translation_table *table, struct ends *ends,
		       const struct end *first)
{
	if (!ends->is_seen || first->hops < ends->first.hops)
		ends->first = *first;
	else if (first->hops == ends->first.hops)
		join_equal(table, &ends->first, first);
	ends->is_seen = true;
}

static void join_last(const struct translation_table *table, struct end *end,
		      const struct end *last)
{
	if (!last->node)
		return;
	if (!end->node || last->hops > end->hops)
		*end = *last;
	else if (last->hops == end->hops)
		join_equal(table, end, last);
}

static void join_conversation(struct ends *ends, uint64_t conversation)
{
	ends->has_several |= conversation && ends->conversation &&
			     ends->conversation != conversation;
	ends->conversation = conversation ?: ends->conversation;
}

static void note_conversation(const struct translations *translations,
			      struct ends *ends, const struct flow_entry *entry,
			      uint32_t node)
{
	struct tuple tuple;

	if (search_conversation(translations->host, &translations->table, entry,
				node, &tuple))
		join_conversation(ends,
				  tuple_conversation(&tuple, entry->key.proto));
}

/* Note the translation at the entry's own interface, of packets that come in or leave there. */
static void note_here(struct translations *translations, struct ends *ends,
		      const struct flow_entry *entry, const struct origin *origin)
{
	struct translation_table *table = &translations->table;
	const struct face_search search =
		search_for(translations->host, table, entry);
	const struct search_result here = search_face(&search);
	const struct translation *translation;
	struct end end;

	/* The side that is searched for is the other one. */
	ends->is_unclear[!search.side] |= here.is_ambiguous;
	if (!here.node)
		return;
	translation = translation_of(table, here.node);
	if (!here.is_ambiguous)
		translation_use(table, here.node, &entry->tally);
	if (!translation_changes(translation))
		return;
	if (!here.is_ambiguous && !origin->known)
		note_conversation(translations, ends, entry, here.node);
	end = end_of(table, other_face(here.node), origin->hops + 1);
	end.is_ambiguous = here.is_ambiguous;
	if (search.side == BEFORE)
		join_last(table, &ends->last, &end);
	else if (!origin->hops)
		join_last(table, &ends->original, &end);
}

/* ---- Sockets ------------------------------------------------------------------------- */

static void note_asked(struct translations *translations, struct ends *ends,
		       const struct flow_entry *entry, uint32_t node)
{
	struct translation_table *table = &translations->table;
	struct translation *translation = translation_of(table, node);

	translation_use(table, node, &entry->tally);
	translation->is_seen = true;
	if (translation_changes(translation))
		join_conversation(
			ends,
			tuple_conversation(&translation->before[NAT_ORIGINAL],
					   entry->key.proto));
}

/* Set @end to the socket's own tuple, before or after other translations. @to: its face */
static void note_socket(struct translations *translations, struct ends *ends,
			const struct flow_entry *entry,
			const struct socket_search *search, uint32_t to,
			struct end *end)
{
	const struct translation_table *table = &translations->table;
	struct search_result result;
	struct end found;
	bool is_clear;

	is_clear = socket_translations_complete(&translations->sockets, search,
						to / SIDES);
	result = search_socket(search, to / SIDES);
	if (!result.node)
		return;
	result.is_ambiguous |= !is_clear;
	ends->is_unclear[to == SIDES * NAT_REPLY + AFTER ? AFTER : BEFORE] |=
		result.is_ambiguous;
	if (!result.is_ambiguous)
		note_asked(translations, ends, entry, result.node);
	found = end_of(table, result.node - face_of(result.node) + to, UINT8_MAX);
	found.is_ambiguous = result.is_ambiguous;
	join_last(table, end, &found);
}

/* Find where incoming packets go after the translation there. @return whether that is known */
static bool search_receiver(const struct translations *translations,
			    const struct flow_entry *entry,
			    struct socket_search *ret_search)
{
	const struct translation_table *table = &translations->table;
	const struct face_search own =
		search_for(translations->host, table, entry);
	const struct search_result here = own.side == BEFORE ?
						  search_face(&own) :
						  (struct search_result){ 0 };

	if (here.is_ambiguous)
		return false;
	*ret_search = search_sender(translations->host, table, entry, here.node);
	ret_search->is_sent_here = false;
	return true;
}

static bool may_have_socket(const struct translations *translations,
			    const struct flow_key *key)
{
	return translations->sockets.n_noted && !key->tunnel &&
	       (key->proto == IP_PROTO_TCP || key->proto == IP_PROTO_UDP ||
		key->proto == IP_PROTO_UDPLITE);
}

static void note_sockets(struct translations *translations, struct ends *ends,
			 const struct flow_entry *entry,
			 const struct origin *origin)
{
	const uint32_t asked = SIDES * NAT_ORIGINAL + BEFORE;
	const uint32_t answered = SIDES * NAT_REPLY + AFTER;
	struct socket_search search;

	if (!may_have_socket(translations, &entry->key))
		return;
	if (!origin->is_ambiguous) {
		search = search_sender(translations->host, &translations->table,
				       entry, origin->first);
		note_socket(translations, ends, entry, &search, asked,
			    &ends->asked);
	}
	if (search_receiver(translations, entry, &search))
		note_socket(translations, ends, entry, &search, answered,
			    &ends->last);
}

static void note_translation(void *data, const struct flow_entry *entry, void *ctx)
{
	struct translations *translations = ctx;
	const struct translation_table *table = &translations->table;
	struct ends *ends = data;
	struct origin origin;
	struct end end = { 0 };

	if (!has_tuple(translations, &entry->key))
		return;
	join_times(ends, (int64_t)entry->tally.first_ns,
		   (int64_t)entry->tally.last_ns);
	origin = search_origin(translations->host, table, entry);
	note_sockets(translations, ends, entry, &origin);
	if (!translations->joins_faces)
		origin.hops = 0;
	if (origin.known)
		note_conversation(translations, ends, entry, origin.known);
	if (origin.hops)
		end = end_of(table, origin.node, origin.hops);
	join_first(table, ends, &end);
	join_last(table, &ends->last, &end);
	if (!entry->key.tunnel)
		note_here(translations, ends, entry, &origin);
}

static void join_translations(void *data, const void *from, void *ctx)
{
	const struct translations *translations = ctx;
	const struct translation_table *table = &translations->table;
	const struct ends *other = from;
	struct ends *ends = data;

	if (other->is_seen) {
		join_times(ends, other->first_ns, other->last_ns);
		join_first(table, ends, &other->first);
	}
	join_last(table, &ends->last, &other->last);
	join_last(table, &ends->original, &other->original);
	join_last(table, &ends->asked, &other->asked);
	join_conversation(ends, other->conversation);
	ends->has_several |= other->has_several;
	for (int side = 0; side < SIDES; side++)
		ends->is_unclear[side] |= other->is_unclear[side];
}

/* ---- Records -------------------------------------------------------------------------- */

/* The tuple of an end that is known, and whose translation is still the same. */
static bool take_end(const struct translations *translations,
		     const struct end *end, struct netobs_flow *record,
		     struct tuple *ret_tuple)
{
	const struct translation *translation;

	if (!end->node || end->is_ambiguous ||
	    is_stale(&translations->table, end))
		return false;
	translation = translation_of(&translations->table, end->node);
	*ret_tuple = tuple_of(&translations->table, end->node);
	if (translations->knows_zones && !translation->of_socket) {
		record->has |= NETOBS_HAS_ZONE;
		record->zone_id = translation->zone;
	}
	return true;
}

static struct tuple own_tuple(const struct netobs_flow *record)
{
	struct tuple tuple = { .src_port = record->src_port,
			       .dst_port = record->dst_port };

	memcpy(tuple.src.bytes, record->src, sizeof(record->src));
	memcpy(tuple.dst.bytes, record->dst, sizeof(record->dst));
	if (record->has & NETOBS_HAS_ICMP)
		tuple.dst_port =
			(uint16_t)(record->icmp_type << 8 | record->icmp_code);
	return tuple;
}

static void put_tuple(const struct netobs_flow *record,
		      const struct tuple *tuple, uint8_t src[16],
		      uint8_t dst[16], uint16_t *src_port, uint16_t *dst_port)
{
	memcpy(src, tuple->src.bytes, sizeof(tuple->src));
	memcpy(dst, tuple->dst.bytes, sizeof(tuple->dst));
	if (!(record->has & NETOBS_HAS_PORTS))
		return;
	*src_port = tuple->src_port;
	*dst_port = tuple->dst_port;
}

static void set_translated(struct netobs_flow *record, const struct tuple *tuple)
{
	put_tuple(record, tuple, record->xlat_src, record->xlat_dst,
		  &record->xlat_src_port, &record->xlat_dst_port);
	record->has |= NETOBS_HAS_XLAT;
	if (record->has & NETOBS_HAS_PORTS)
		record->has |= NETOBS_HAS_XLAT_PORTS;
}

static void set_original(struct netobs_flow *record, const struct tuple *tuple)
{
	put_tuple(record, tuple, record->orig_src, record->orig_dst,
		  &record->orig_src_port, &record->orig_dst_port);
	record->has |= NETOBS_HAS_ORIG;
	if (record->has & NETOBS_HAS_PORTS)
		record->has |= NETOBS_HAS_ORIG_PORTS;
}

/* A record has a tuple that was seen at its interfaces. */
static void fill_tuples(const struct translations *translations,
			const struct ends *ends, struct netobs_flow *record)
{
	const struct tuple own = own_tuple(record);
	struct tuple tuple, shown = own;

	if (take_end(translations, &ends->first, record, &shown)) {
		set_original(record, &own);
		put_tuple(record, &shown, record->src, record->dst,
			  &record->src_port, &record->dst_port);
	} else if (take_end(translations, &ends->original, record, &tuple)) {
		set_original(record, &tuple);
	}
	if (take_end(translations, &ends->asked, record, &tuple) &&
	    memcmp(&tuple, &shown, sizeof(tuple)) != 0)
		set_original(record, &tuple);
	if (take_end(translations, &ends->last, record, &tuple) &&
	    memcmp(&tuple, &shown, sizeof(tuple)) != 0)
		set_translated(record, &tuple);
}

/*
 * A process at an end of one of several translations is not that of all packets. The entries of the
 * others may count nowhere (find_own_key()), so that who.h has not heard of their ends.
 */
static void drop_unclear_processes(const struct ends *ends,
				   struct netobs_flow *record)
{
	if (ends->is_unclear[BEFORE])
		record->src_process = NULL;
	if (ends->is_unclear[AFTER])
		record->dst_process = NULL;
}

/* Mark @end as ambiguous if some packets may be those of another socket. */
static void doubt_socket(const struct translations *translations,
			 struct ends *ends, struct end *end)
{
	const struct translation_table *table = &translations->table;
	const struct translation *translation;

	if (!end->node || is_stale(table, end))
		return;
	translation = translation_of(table, end->node);
	if (!translation->of_socket ||
	    !socket_has_others(translation, ends->first_ns, ends->last_ns))
		return;
	end->is_ambiguous = true;
	ends->has_several = true;
}

static void fill_translation(void *data, struct netobs_flow *record, void *ctx)
{
	struct translations *translations = ctx;
	struct ends *ends = data;
	const struct tuple own = own_tuple(record);

	doubt_socket(translations, ends, &ends->asked);
	doubt_socket(translations, ends, &ends->last);
	ends->is_unclear[BEFORE] |= ends->first.is_ambiguous ||
				    ends->original.is_ambiguous ||
				    ends->asked.is_ambiguous;
	ends->is_unclear[AFTER] |= ends->last.is_ambiguous;
	translations->ambiguous += ends->is_unclear[BEFORE] ||
				   ends->is_unclear[AFTER];
	drop_unclear_processes(ends, record);
	record->has |= NETOBS_HAS_CONVERSATION;
	record->conversation_id = ends->conversation && !ends->has_several ?
					  ends->conversation :
					  tuple_conversation(&own, record->proto);
	fill_tuples(translations, ends, record);
	*ends = (struct ends){ 0 };
}

/* ---- Life --------------------------------------------------------------------------- */

/* Reports wait during a drain, so that an entry finds the same when announced and when delivered. */
static void keep_for_later(struct translations *translations,
			   const struct nat_event *event)
{
	if (translations->n_later < LATER_MAX &&
	    array_reserve(&translations->later, translations->n_later,
			  &translations->later_capacity, sizeof(*event), 64))
		translations->later[translations->n_later++] = *event;
	else
		translations->late++;
}

bool translations_wait(const struct translations *translations)
{
	return translations->table.is_held;
}

void translations_note(struct translations *translations,
		       const struct nat_event *event)
{
	if (translations_wait(translations))
		keep_for_later(translations, event);
	else
		translation_table_note(&translations->table, event);
}

static int on_nat_event(void *ctx, void *data, size_t size)
{
	struct translations *translations = ctx;

	if (size < sizeof(struct nat_event))
		return 0;
	/* Read the translation of the packet's socket first: its conversation includes the packet. */
	if (!translations->table.is_held)
		connects_read(&translations->sockets.connects);
	translations_note(translations, data);
	return 0;
}

/* The entries of @generation, which programs write next, are older than the other one's. */
static void before_flip(uint32_t generation, int64_t stamp_ns, void *ctx)
{
	struct translations *translations = ctx;

	translation_table_begin(&translations->table, stamp_ns);
	nat_forget(&translations->nat, generation);
}

/* Drops, which are read next, look for what programs have reported. */
static bool step(uint32_t *ret_wait_ms, void *ctx)
{
	struct translations *translations = ctx;

	nat_read(&translations->nat);
	*ret_wait_ms = 0;
	return false;
}

static void settle(uint32_t generation, void *ctx)
{
	(void)generation;
	translations_settle(ctx);
}

static void end(int64_t done_ns, void *ctx)
{
	struct translations *translations = ctx;

	(void)done_ns;
	translations_release(translations);
	nat_keep(&translations->nat);
}

int translations_init(struct translations *translations,
		      const struct translations_options *options)
{
	*translations = (struct translations){
		.host = options->host,
		.knows_zones = options->knows_zones,
		.joins_faces = options->joins_faces,
		.secret = options->secret,
		.extra = { .size = sizeof(struct ends),
			   .find_key = options->joins_faces ? find_own_key : NULL,
			   .note = note_translation,
			   .join = join_translations,
			   .fill = fill_translation,
			   .before_flip = before_flip,
			   .step = step,
			   .settle = settle,
			   .end = end,
			   .ctx = translations },
	};
	tunnel_addrs_init(&translations->tunnels, options->tunnel_addrs_fd);
	return translation_table_init(&translations->table);
}

/* Translations of sockets are optional. */
static void open_sockets(struct translations *translations,
			 const struct translations_options *options,
			 const struct log *log)
{
	int err = options->no_connect ?
			  -ENOTSUP :
			  socket_translations_open(&translations->sockets,
						   &translations->table,
						   options->host);

	if (err)
		log_info(log,
			 "the services behind a load balancer at the socket are not named (no connect): %s",
			 strerror(-err));
}

int translations_open(struct translations *translations,
		      const struct program_set *maps, uint32_t n_cpus,
		      const struct translations_options *options,
		      const struct log *log)
{
	int err = translations_init(translations, options);

	if (err)
		return err;
	/* Programs write before the first drain. */
	translations->table.unread_ns = 0;
	err = nat_open(&translations->nat, maps, n_cpus, on_nat_event,
		       translations, log);
	if (!err)
		open_sockets(translations, options, log);
	return err;
}

void translations_close(struct translations *translations)
{
	socket_translations_close(&translations->sockets);
	nat_close(&translations->nat);
	translation_table_done(&translations->table);
	free(translations->later);
	*translations = (struct translations){ 0 };
}

void translations_read(struct translations *translations)
{
	socket_translations_read(&translations->sockets);
	nat_read(&translations->nat);
}

void translations_settle(struct translations *translations)
{
	translations_read(translations);
	socket_translations_begin_round(&translations->sockets);
	translations->table.drains++;
	translations->table.is_held = true;
}

void translations_release(struct translations *translations)
{
	translations->table.is_held = false;
	for (uint32_t i = 0; i < translations->n_later; i++)
		translation_table_note(&translations->table,
				       &translations->later[i]);
	free(translations->later);
	translations->later = NULL;
	translations->n_later = translations->later_capacity = 0;
}
