/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "keys.h"

#include "base/conversation.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/options.h"
#include "base/text.h"
#include "catalogue/direction.h"

#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <netobs/flow.h>
#include <netobs/series.h>
#include <stdio.h>
#include <string.h>

/* The sampling, which follows the values of keys. */
struct group_rate {
	uint32_t sampling, mode;
};

static size_t aligned_size(size_t size)
{
	return (size + 7) & ~(size_t)7;
}

static const struct group_key *find_key(const char *name, size_t len, char *why,
					size_t size)
{
	struct suggestion suggestion = suggestion_for(name, len);
	const char *best;

	for (const struct group_key *key = group_keys_all; key->name; key++) {
		if (strlen(key->name) == len && !strncmp(key->name, name, len))
			return key;
		suggestion_offer(&suggestion, key->name);
	}
	best = suggestion_best(&suggestion);
	snprintf(why, size, "there is no key '%.*s'",
		 (int)(len < 32 ? len : 32), name);
	if (best) {
		text_append(why, size, "; did you mean '%s'?", best);
		return NULL;
	}
	text_append(why, size, "; there are flow");
	for (const struct group_key *key = group_keys_all; key->name; key++)
		text_append(why, size, ", %s", key->name);
	return NULL;
}

/* @return whether @name is a word of key->has, such as "port proto" */
static bool key_has_part(const struct group_key *key, const char *name)
{
	const char *part = strstr(key->has, name);

	return part && strcspn(part, " ") == strlen(name);
}

/* With "host", a group of one of these keys would occur twice, with its own host and with the other one. */
static const char *hint_for(const struct group_key *key,
			    const struct group_key *other)
{
	return key->addr == ADDR_HOST || other->addr == ADDR_HOST ?
		       "; 'client,service' and 'src,dst' have both hosts of a flow" :
		       "";
}

static int add_key(struct group_keys *keys, const struct group_key *key,
		   char *why, size_t size)
{
	for (size_t i = 0; i < keys->n; i++) {
		const struct group_key *other = keys->keys[i];

		if (other == key) {
			snprintf(why, size, "'%s' is there twice", key->name);
			return -EINVAL;
		}
		if (!key_has_part(other, key->name) &&
		    !key_has_part(key, other->name))
			continue;
		snprintf(why, size, "'%s' and '%s': one is part of the other%s",
			 other->name, key->name, hint_for(key, other));
		return -EINVAL;
	}
	if (keys->n == NETOBS_GROUP_KEYS_MAX ||
	    keys->size + aligned_size(key->size) + sizeof(struct group_rate) >
		    GROUP_KEY_BYTES_MAX) {
		snprintf(why, size, "too many keys");
		return -EINVAL;
	}
	keys->keys[keys->n++] = key;
	keys->size += aligned_size(key->size);
	keys->value_size +=
		aligned_size(key->size) + aligned_size(key->note_size);
	if (key->addr == ADDR_HOST || key->of_process)
		keys->flags |= NETOBS_GROUP_BOTH_ENDS;
	if (key->of_process)
		keys->flags |= NETOBS_GROUP_PROCESS;
	keys->has_names |= key->name_at != 0;
	keys->has_networks |= key->has_networks;
	return 0;
}

int group_keys_parse(const char *text, struct group_keys *ret_keys,
		     char *ret_why, size_t size)
{
	struct group_keys keys = { 0 };

	if (!strcmp(text, "flow")) {
		*ret_keys = keys;
		return 0;
	}
	for (;; text++) {
		size_t len = strcspn(text, ",");
		const struct group_key *key;

		if (len == 4 && !strncmp(text, "flow", len)) {
			snprintf(ret_why, size, "'flow' stands alone");
			return -EINVAL;
		}
		key = find_key(text, len, ret_why, size);
		if (!key || add_key(&keys, key, ret_why, size) < 0)
			return -EINVAL;
		text += len;
		if (!*text)
			break;
	}
	keys.size += sizeof(struct group_rate);
	keys.value_size += sizeof(struct group_rate);
	*ret_keys = keys;
	return 0;
}

int group_keys_set_networks(struct group_keys *keys,
			    struct netobs_networks *networks)
{
	if (!keys->has_networks)
		return 0;
	if (!networks)
		return netobs_networks_new(NULL, 0, NULL, &keys->networks);
	keys->networks = networks_share(networks);
	return 0;
}

void group_keys_done(struct group_keys *keys)
{
	netobs_networks_free(keys->networks);
	keys->networks = NULL;
}

size_t group_keys_offset(const struct group_keys *keys, size_t i)
{
	size_t offset = 0;

	while (i-- > 0)
		offset += aligned_size(keys->keys[i]->size);
	return offset;
}

/* Notes follow the values and the sampling. */
static size_t note_offset(const struct group_keys *keys, size_t i)
{
	size_t offset = keys->size;

	while (i-- > 0)
		offset += aligned_size(keys->keys[i]->note_size);
	return offset;
}

/* ---- Values --------------------------------------------------------------------- */

static const struct netobs_process *process_of(const struct netobs_flow *flow,
					       enum flow_end end)
{
	return end == FLOW_SOURCE ? flow->src_process : flow->dst_process;
}

/* A flow without known processes counts once. */
bool group_keys_count(const struct group_keys *keys,
		      const struct netobs_flow *flow, enum flow_end end)
{
	if (!(keys->flags & NETOBS_GROUP_BOTH_ENDS))
		return end == FLOW_SOURCE;
	return !(keys->flags & NETOBS_GROUP_PROCESS) || process_of(flow, end) ||
	       (end == FLOW_SOURCE && !flow->dst_process);
}

void group_keys_fill(const struct group_keys *keys,
		     const struct netobs_flow *flow, enum flow_end server,
		     enum flow_end end, uint8_t ret_value[GROUP_VALUE_MAX])
{
	const struct group_rate rate = { flow->has & NETOBS_HAS_SAMPLING ?
						 flow->sampling :
						 0,
					 flow->sampling_mode };
	const bool from_server = server == FLOW_SOURCE;
	const struct group_part part = {
		.flow = flow,
		.addrs = { [ADDR_SRC] = flow->src,
			   [ADDR_DST] = flow->dst,
			   [ADDR_CLIENT] = from_server ? flow->dst : flow->src,
			   [ADDR_SERVER] = from_server ? flow->src : flow->dst,
			   [ADDR_HOST] = end == FLOW_SOURCE ? flow->src :
							      flow->dst },
		.process = process_of(flow, end),
		.networks = keys->networks,
		.server_port = !(flow->has & NETOBS_HAS_PORTS) ? 0 :
			       from_server ? flow->src_port :
					     flow->dst_port,
	};

	memset(ret_value, 0, keys->value_size);
	for (size_t i = 0; i < keys->n; i++) {
		const struct group_key *key = keys->keys[i];
		uint8_t *to = ret_value + group_keys_offset(keys, i);

		if (key->note_size) {
			uint8_t *note = ret_value + note_offset(keys, i);

			key->fill(&part, note);
			memcpy(to, note, key->size);
		} else if (key->fill) {
			key->fill(&part, to);
		} else if (key->has_networks) {
			strcpy((char *)to,
			       netobs_networks_find(part.networks,
						    part.addrs[key->addr]));
		} else {
			memcpy(to, part.addrs[key->addr], key->size);
		}
	}
	memcpy(ret_value + keys->size - sizeof(rate), &rate, sizeof(rate));
}

void group_keys_take_names(const struct group_keys *keys, uint8_t *value,
			   const uint8_t *more)
{
	for (size_t i = 0; keys->has_names && i < keys->n; i++) {
		const struct group_key *key = keys->keys[i];
		const size_t offset = note_offset(keys, i);

		if (key->name_at && more[offset + key->name_at])
			memcpy(value + offset, more + offset, key->note_size);
	}
}

static const uint8_t *shown_at(const struct group_keys *keys, size_t i,
			       const uint8_t *value)
{
	return value + (keys->keys[i]->note_size ? note_offset(keys, i) :
						   group_keys_offset(keys, i));
}

void group_keys_text(const struct group_keys *keys, size_t key,
		     const uint8_t *value, const struct group_text *to)
{
	value = shown_at(keys, key, value);
	if (keys->keys[key]->text)
		keys->keys[key]->text(value, to);
	else
		netobs_names_host(to->names, value, to->buf, to->size);
}

/* ---- Members -------------------------------------------------------------------- */

static uint64_t member_number(const struct group_member *member,
			      const uint8_t *from)
{
	switch (member->size) {
	case sizeof(uint8_t):
		return *from;
	case sizeof(uint16_t):
		return member->type == GROUP_BE ?
			       be16toh(*(const uint16_t *)from) :
			       *(const uint16_t *)from;
	case sizeof(uint32_t):
		return member->type == GROUP_BE ?
			       be32toh(*(const uint32_t *)from) :
			       *(const uint32_t *)from;
	default:
		return *(const uint64_t *)from;
	}
}

static bool has_member(const struct group_member *member, const uint8_t *value)
{
	if (member->gate && !value[member->gate - 1])
		return false;
	return member->type != GROUP_ID ||
	       member_number(member, value + member->from);
}

static void add_json(const struct group_member *member, const uint8_t *from,
		     struct json *json)
{
	char text[NETOBS_ADDR_STR_MAX];

	switch (member->type) {
	case GROUP_ADDR:
		netobs_addr_str(from, text, sizeof(text));
		json_string(json, text);
		break;
	case GROUP_HASH:
		*text_hash(text, member_number(member, from)) = '\0';
		json_string(json, text);
		break;
	case GROUP_TEXT:
		json_string(json, (const char *)from);
		break;
	case GROUP_TUNNEL:
		json_string(json, human_tunnel_name(*from));
		break;
	case GROUP_DIRECTION:
		json_u64(json, direction_index(*from));
		break;
	default:
		json_u64(json, member_number(member, from));
	}
}

static void add_member(const struct group_member *member, const uint8_t *value,
		       struct json *json)
{
	json_key(json, member->json);
	if (!member->list) {
		add_json(member, value + member->from, json);
		return;
	}
	json_open(json, '[');
	for (int i = 0; i < member->list; i++)
		add_json(&member[i], value + member[i].from, json);
	json_close(json, ']');
}

void group_keys_json(const struct group_keys *keys, const uint8_t *value,
		     struct json *json)
{
	for (size_t i = 0; i < keys->n; i++) {
		const struct group_member *member = keys->keys[i]->members;
		const uint8_t *shown = shown_at(keys, i, value);

		for (; member->json; member++)
			if (*member->json && has_member(member, shown))
				add_member(member, shown, json);
	}
}

static void record_member(const struct group_member *member, const uint8_t *from,
			  struct netobs_group_record *record)
{
	char *to = (char *)record + member->to;

	if (member->type == GROUP_TUNNEL)
		snprintf(to, member->size, "%s", human_tunnel_name(*from));
	else if (member->type == GROUP_DIRECTION)
		*to = (char)direction_index(*from);
	else if (member->type == GROUP_BE && member->size == sizeof(uint16_t))
		*(uint16_t *)to = be16toh(*(const uint16_t *)from);
	else if (member->type == GROUP_BE)
		*(uint32_t *)to = be32toh(*(const uint32_t *)from);
	else
		memcpy(to, from, member->size);
	record->record.has |= member->has;
}

void group_keys_record(const struct group_keys *keys, const uint8_t *value,
		       struct netobs_group_record *record)
{
	for (size_t i = 0; i < keys->n; i++) {
		const struct group_member *member = keys->keys[i]->members;
		const uint8_t *shown = shown_at(keys, i, value);

		for (; member->json; member++)
			if (has_member(member, shown))
				record_member(member, shown + member->from,
					      record);
	}
}

/* ---- Servers ------------------------------------------------------------------------- */

static uint64_t hash_server(const struct netobs_flow *flow, enum server_end end)
{
	uint64_t words[2], hash;

	memcpy(words, end == SERVER_SOURCE ? flow->src : flow->dst,
	       sizeof(words));
	hash = hash_finish(words[0] + (end == SERVER_SOURCE ? flow->src_port :
							      flow->dst_port));
	hash = hash_finish(hash ^ words[1]);
	return hash ? hash : 1;
}

static bool is_known_server(const struct servers *servers, uint64_t hash)
{
	return servers->hashes[hash % SERVERS] == hash;
}

/* Guess without a SYN: the end that accepted a connection earlier, or has the lower port or address. */
static enum server_end guess_server(const struct servers *servers,
				    const struct netobs_flow *flow)
{
	bool is_src_known = false, is_dst_known = false;

	if (flow->proto == IPPROTO_TCP) {
		is_src_known = is_known_server(servers,
					       hash_server(flow, SERVER_SOURCE));
		is_dst_known = is_known_server(
			servers, hash_server(flow, SERVER_DESTINATION));
	}
	if (is_src_known != is_dst_known)
		return is_src_known ? SERVER_SOURCE : SERVER_DESTINATION;
	return server_by_port(flow->src, flow->src_port, flow->dst,
			      flow->dst_port);
}

static enum server_end find_end(struct servers *servers,
				const struct netobs_flow *flow)
{
	const enum server_end end = server_of_flow(flow);

	if (end == SERVER_SOURCE && flow->has & NETOBS_HAS_TCP) {
		const uint64_t hash = hash_server(flow, SERVER_SOURCE);

		servers->hashes[hash % SERVERS] = hash;
	}
	return end ?: guess_server(servers, flow);
}

enum flow_end server_find(struct servers *servers, const struct netobs_flow *flow)
{
	return find_end(servers, flow) == SERVER_SOURCE ? FLOW_SOURCE :
							  FLOW_DESTINATION;
}
