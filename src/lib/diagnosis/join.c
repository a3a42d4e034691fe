// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Which records are of one message: those with the tuple at the uplink, which both hosts see, the direction, and
 * the sequence number, or the identification of a datagram, in common. Never by time alone. Datagrams without one, or with
 * an equal one, are joined by their order.
 */
#include "diagnosis_state.h"

#include <errno.h>
#include <netinet/in.h>

/* ---- Tuples ------------------------------------------------------------------------------------ */

static bool has_wire(const struct netobs_turn *turn)
{
	return turn->wire_src_port || turn->wire_dst_port;
}

/* @return who sends: the client opened the connection, or else has the higher port */
static uint8_t sender_of(const struct netobs_turn *turn)
{
	if (turn->record.has & NETOBS_TURN_HAS_INITIATOR)
		return turn->direction ? SERVER : CLIENT;
	/* Both hosts have the ports at the uplink in common. */
	if (has_wire(turn) && turn->wire_src_port != turn->wire_dst_port)
		return turn->wire_src_port > turn->wire_dst_port ? CLIENT :
								   SERVER;
	if (turn->src_port != turn->dst_port)
		return turn->src_port > turn->dst_port ? CLIENT : SERVER;
	return turn->direction ? SERVER : CLIENT;
}

static void fill_tuple(struct entry *entry)
{
	const struct netobs_turn *turn = entry->turn;
	struct tuple *tuple = &entry->tuple;
	const bool is_wire = has_wire(turn);
	const uint8_t *src = is_wire ? turn->wire_src : turn->src;
	const uint8_t *dst = is_wire ? turn->wire_dst : turn->dst;
	const uint16_t src_port = is_wire ? turn->wire_src_port : turn->src_port;
	const uint16_t dst_port = is_wire ? turn->wire_dst_port : turn->dst_port;
	const bool is_client = entry->from == CLIENT;

	tuple->protocol = turn->protocol;
	memcpy(tuple->client, is_client ? src : dst, sizeof(tuple->client));
	memcpy(tuple->server, is_client ? dst : src, sizeof(tuple->server));
	tuple->client_port = is_client ? src_port : dst_port;
	tuple->server_port = is_client ? dst_port : src_port;
}

static int compare_talks(const struct entry *a, const struct entry *b)
{
	int result = memcmp(a->tuple.client, b->tuple.client,
			    sizeof(a->tuple.client) + sizeof(a->tuple.server));

	if (!result)
		result = a->tuple.server_port - b->tuple.server_port;
	return result ?: a->tuple.protocol - b->tuple.protocol;
}

bool join_is_same_talk(const struct entry *a, const struct entry *b)
{
	return !compare_talks(a, b);
}

/* ---- Messages ----------------------------------------------------------------------------------- */

static uint32_t number_of(const struct netobs_turn *turn)
{
	return turn->protocol == IPPROTO_TCP ? turn->seq : turn->ip_id;
}

static bool is_sender(const struct netobs_turn *turn)
{
	return turn->record.has & NETOBS_TURN_HAS_SEND;
}

#define COMPARE(a, b) ((a) < (b) ? -1 : (a) > (b))

/* By client and service, tuple, kind, sender, number; then the sender's host first. */
static int compare_entries(const void *one, const void *two)
{
	const struct entry *a = one, *b = two;
	int result = compare_talks(a, b);

	if (!result)
		result = a->tuple.client_port - b->tuple.client_port;
	if (!result)
		result = a->turn->kind - b->turn->kind;
	if (!result)
		result = a->from - b->from;
	if (!result)
		result = COMPARE(number_of(a->turn), number_of(b->turn));
	if (!result)
		result = is_sender(b->turn) - is_sender(a->turn);
	if (!result)
		result = COMPARE(a->turn->record.time_ns,
				 b->turn->record.time_ns);
	return result ?: COMPARE(a->host, b->host);
}

/* A client and a service, at the sockets of a host. */
struct socket_key {
	uint8_t client[16], server[16];
	uint32_t host;
	uint16_t port, protocol;
};

static struct socket_key socket_key_of(const struct entry *entry)
{
	const struct netobs_turn *turn = entry->turn;
	const bool is_client = entry->from == CLIENT;
	struct socket_key key = {
		.host = entry->host,
		.port = is_client ? turn->dst_port : turn->src_port,
		.protocol = turn->protocol,
	};

	memcpy(key.client, is_client ? turn->src : turn->dst, sizeof(key.client));
	memcpy(key.server, is_client ? turn->dst : turn->src, sizeof(key.server));
	return key;
}

/* What never came to an uplink, such as a packet that was dropped, has a tuple before NAT only: other records
 * between these sockets tell the one behind it. */
static void learn_tuples(struct entry *entries, uint32_t n)
{
	struct slots sockets = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		const struct socket_key key = socket_key_of(&entries[i]);

		if (has_wire(entries[i].turn))
			slots_set_pointer(&sockets, &key, sizeof(key),
					  &entries[i]);
	}
	for (uint32_t i = 0; sockets.n && i < n; i++) {
		const struct socket_key key = socket_key_of(&entries[i]);
		const struct entry *known = slots_pointer(&sockets, &key);
		struct tuple *tuple = &entries[i].tuple;

		if (has_wire(entries[i].turn) || !known)
			continue;
		memcpy(tuple->client, known->tuple.client, sizeof(tuple->client));
		memcpy(tuple->server, known->tuple.server, sizeof(tuple->server));
		tuple->server_port = known->tuple.server_port;
	}
	slots_free(&sockets);
}

struct entry *join_entries(const struct netobs_diagnosis *diagnosis,
			   uint32_t *ret_n)
{
	const uint32_t n = diagnosis->turns.n;
	struct entry *entries = n ? calloc(n, sizeof(*entries)) : NULL;

	for (uint32_t i = 0; entries && i < n; i++) {
		const struct kept_turn *kept = slots_at(&diagnosis->turns, i);

		entries[i].turn = &kept->turn;
		entries[i].host = kept->key.host;
		entries[i].from = sender_of(&kept->turn);
		fill_tuple(&entries[i]);
	}
	if (entries) {
		learn_tuples(entries, n);
		qsort(entries, n, sizeof(*entries), compare_entries);
	}
	*ret_n = entries ? n : 0;
	return entries;
}

/* ---- Hosts ------------------------------------------------------------------------------------ */

/* @return the end whose socket a record saw; ENDS: both, on one host */
static int end_of(const struct entry *entry)
{
	const uint32_t both = NETOBS_TURN_HAS_SEND | NETOBS_TURN_HAS_READ;

	if ((entry->turn->record.has & both) == both)
		return ENDS;
	return is_sender(entry->turn) ? entry->from : !entry->from;
}

/* The host with most records of an end has it: others are strangers, or lie. */
static void find_hosts(struct talk *talk, const struct entry *entries, uint32_t n)
{
	uint32_t counts[ENDS][NETOBS_DIAGNOSIS_HOSTS_MAX] = { { 0 } };

	for (uint32_t i = 0; i < n; i++) {
		const int end = end_of(&entries[i]);

		for (int e = 0; e < ENDS; e++)
			counts[e][entries[i].host] += end == e || end == ENDS;
	}
	for (int e = 0; e < ENDS; e++) {
		talk->hosts[e] = NO_HOST;
		for (uint32_t host = 0; host < NETOBS_DIAGNOSIS_HOSTS_MAX; host++)
			if (counts[e][host] &&
			    (talk->hosts[e] == NO_HOST ||
			     counts[e][host] > counts[e][talk->hosts[e]]))
				talk->hosts[e] = host;
	}
}

static bool is_of_hosts(const struct talk *talk, const struct entry *entry)
{
	const int end = end_of(entry);

	if (end == ENDS)
		return entry->host == talk->hosts[CLIENT] &&
		       entry->host == talk->hosts[SERVER];
	return entry->host == talk->hosts[end];
}

/* ---- Pairs ------------------------------------------------------------------------------------- */

static bool is_same_message(const struct entry *a, const struct entry *b)
{
	return !memcmp(&a->tuple, &b->tuple, sizeof(a->tuple)) &&
	       a->turn->kind == b->turn->kind && a->from == b->from &&
	       a->turn->kind != NETOBS_TURN_SLICE &&
	       number_of(a->turn) == number_of(b->turn) &&
	       (a->turn->protocol == IPPROTO_TCP || number_of(a->turn));
}

static void add_message(struct talk *talk, const struct entry *entry)
{
	struct message *message = &talk->messages[talk->n++];

	*message = (struct message){ .tuple = entry->tuple, .from = entry->from };
	if (is_sender(entry->turn))
		message->s = entry->turn;
	if (entry->turn->record.has & NETOBS_TURN_HAS_READ)
		message->r = entry->turn;
}

/* @return how many entries, from the first one on, are of one message, or of datagrams with equal data */
static uint32_t count_same(const struct entry *entries, uint32_t n)
{
	uint32_t i = 1;

	while (i < n && is_same_message(entries, &entries[i]))
		i++;
	return i;
}

/* Senders' entries come first. */
static uint32_t count_senders(const struct entry *entries, uint32_t n)
{
	uint32_t i = 0;

	while (i < n && is_sender(entries[i].turn))
		i++;
	return i;
}

/*
 * A host has one record of a message of TCP: others are replayed. Datagrams with equal data are paired in their order,
 * if both hosts saw as many.
 */
static void add_same(struct talk *talk, const struct entry *entries, uint32_t n)
{
	const uint32_t most = entries->turn->protocol == IPPROTO_TCP ? 1 : n;
	const uint32_t first = talk->n, n_all = count_senders(entries, n),
		       n_s = (uint32_t)min_u64(n_all, most),
		       n_r = (uint32_t)min_u64(n - n_all, most);

	for (uint32_t i = 0; i < n_s; i++)
		add_message(talk, &entries[i]);
	for (uint32_t i = 0; i < n_r; i++) {
		struct message *message = &talk->messages[first + i];

		if (n_s != n_r) {
			add_message(talk, &entries[n_all + i]);
		} else if (!message->r) {
			message->r = entries[n_all + i].turn;
			message->is_by_order = n_r > 1;
		}
	}
	talk->has_equal[entries->from] |= n_s && n_r && n_s != n_r;
}

static int compare_messages(const void *one, const void *two)
{
	const struct message *a = one, *b = two;
	int result = memcmp(&a->tuple, &b->tuple, sizeof(a->tuple));

	if (!result)
		result = COMPARE(a->time_ns, b->time_ns);
	return result ?: a->from - b->from;
}

static uint32_t end_of_tuple(const struct talk *talk, uint32_t from)
{
	uint32_t until = from;

	while (until < talk->n &&
	       !memcmp(&talk->messages[until].tuple,
		       &talk->messages[from].tuple, sizeof(struct tuple)))
		until++;
	return until;
}

/* @return the next message from @i on that only the sender's host, or the receiver's has a record of; @until: none */
static uint32_t next_single(const struct talk *talk, uint32_t i, uint32_t until,
			    uint8_t from, bool has_sender)
{
	for (; i < until; i++) {
		const struct message *message = &talk->messages[i];

		if (message->from == from && !!message->s == has_sender &&
		    !!message->r == !has_sender)
			break;
	}
	return i;
}

static bool may_be_same(const struct netobs_turn *s, const struct netobs_turn *r)
{
	return !number_of(s) || !number_of(r) || number_of(s) == number_of(r);
}

/* @return whether both hosts saw as many, and no identification contradicts */
static bool can_pair(const struct talk *talk, uint32_t from, uint32_t until,
		     uint8_t sender)
{
	uint32_t s = from, r = from;

	for (;; s++, r++) {
		s = next_single(talk, s, until, sender, true);
		r = next_single(talk, r, until, sender, false);
		if (s == until || r == until)
			return s == r;
		if (!may_be_same(talk->messages[s].s, talk->messages[r].r))
			return false;
	}
}

/* Without an identification, datagrams of a tuple are paired in their order. */
static void pair_datagrams(struct talk *talk, uint32_t from, uint32_t until,
			   uint8_t sender)
{
	uint32_t s = from, r = from;

	if (!can_pair(talk, from, until, sender))
		return;
	while ((s = next_single(talk, s, until, sender, true)) < until) {
		r = next_single(talk, r, until, sender, false);
		talk->messages[s].r = TAKE_PTR(talk->messages[r].r);
		talk->messages[s].is_by_order = true;
	}
}

static void pair_in_order(struct talk *talk)
{
	for (uint32_t from = 0, until; from < talk->n; from = until) {
		until = end_of_tuple(talk, from);
		if (talk->messages[from].tuple.protocol == IPPROTO_TCP)
			continue;
		pair_datagrams(talk, from, until, CLIENT);
		pair_datagrams(talk, from, until, SERVER);
	}
}

static void sort_messages(struct talk *talk)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < talk->n; i++) {
		struct message *message = &talk->messages[i];
		const struct netobs_turn *turn = message->s ?: message->r;
		const int end = message->s ? message->from : !message->from;

		if (!turn)
			continue;
		message->time_ns = clocks_local(talk, end, turn->record.time_ns);
		talk->messages[n++] = *message;
	}
	talk->n = n;
	qsort(talk->messages, n, sizeof(*talk->messages), compare_messages);
}

/*
 * Of pairs by order, datagrams would have arrived before they were sent: the hosts did not begin to trace with the
 * same one.
 */
static void part_pairs(struct talk *talk)
{
	const uint32_t n = talk->n;

	for (uint32_t i = 0; i < n; i++) {
		struct message *message = &talk->messages[i];

		if (!message->is_by_order)
			continue;
		message->is_by_order = false;
		talk->has_equal[message->from] = true;
		talk->messages[talk->n] = *message;
		talk->messages[talk->n++].s = NULL;
		message->r = NULL;
	}
}

/* @return how many entries are left, which are in front */
static uint32_t drop_strangers(const struct talk *talk, struct entry *entries,
			       uint32_t n)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < n; i++)
		if (is_of_hosts(talk, &entries[i]))
			entries[left++] = entries[i];
	return left;
}

int join_messages(struct talk *talk, struct entry *entries, uint32_t n)
{
	find_hosts(talk, entries, n);
	talk->messages = calloc(n, sizeof(*talk->messages));
	if (!talk->messages)
		return -ENOMEM;
	n = drop_strangers(talk, entries, n);
	for (uint32_t i = 0, same; i < n; i += same) {
		same = count_same(entries + i, n - i);
		add_same(talk, entries + i, same);
	}
	sort_messages(talk);
	pair_in_order(talk);
	sort_messages(talk);
	clocks_estimate(talk);
	if (talk->clocks.jumped) {
		part_pairs(talk);
		clocks_estimate(talk);
	}
	sort_messages(talk);
	return 0;
}
