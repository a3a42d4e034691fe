/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "keys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/options.h"

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
	size_t used;

	for (const struct group_key *key = group_keys_all; key->name; key++) {
		if (strlen(key->name) == len && !strncmp(key->name, name, len))
			return key;
		suggestion_offer(&suggestion, key->name);
	}
	best = suggestion_best(&suggestion);
	used = (size_t)snprintf(why, size, "there is no key '%.*s'",
				(int)(len < 32 ? len : 32), name);
	if (best) {
		snprintf(why + used, size - used, "; did you mean '%s'?", best);
		return NULL;
	}
	used += (size_t)snprintf(why + used, size - used, "; there are flow");
	for (const struct group_key *key = group_keys_all;
	     key->name && used < size; key++)
		used += (size_t)snprintf(why + used, size - used, ", %s",
					 key->name);
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
	keys->has_names |= key->is_named != NULL;
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

	uint8_t *to = ret_value;

	memset(ret_value, 0, keys->value_size);
	for (size_t i = 0; i < keys->n; i++) {
		const struct group_key *key = keys->keys[i];

		if (key->fill)
			key->fill(&part, to);
		else
			memcpy(to, part.addrs[key->addr], key->size);
		to += aligned_size(key->size);
	}
	memcpy(to, &rate, sizeof(rate));
	for (size_t i = 0; keys->value_size > keys->size && i < keys->n; i++)
		if (keys->keys[i]->note)
			keys->keys[i]->note(&part,
					    ret_value + note_offset(keys, i));
}

bool group_keys_take_names(const struct group_keys *keys, uint8_t *value,
			   const uint8_t *more)
{
	bool is_changed = false;

	for (size_t i = 0; keys->has_names && i < keys->n; i++) {
		const struct group_key *key = keys->keys[i];
		const size_t offset = note_offset(keys, i);

		if (!key->is_named || !key->is_named(more + offset) ||
		    !memcmp(value + offset, more + offset, key->note_size))
			continue;
		memcpy(value + offset, more + offset, key->note_size);
		is_changed = true;
	}
	return is_changed;
}

const uint8_t *group_keys_shown(const struct group_keys *keys, size_t i,
				const uint8_t *value)
{
	return value + (keys->keys[i]->note ? note_offset(keys, i) :
					      group_keys_offset(keys, i));
}

void group_keys_text(const struct group_keys *keys, size_t key,
		     const uint8_t *value, const struct group_text *to)
{
	value = group_keys_shown(keys, key, value);
	if (keys->keys[key]->text)
		keys->keys[key]->text(value, to);
	else
		netobs_names_host(to->names, value, to->buf, to->size);
}

void group_keys_json(const struct group_keys *keys, const uint8_t *value,
		     struct json *json)
{
	for (size_t i = 0; i < keys->n; i++) {
		const struct group_key *key = keys->keys[i];
		const uint8_t *shown = group_keys_shown(keys, i, value);

		if (key->json) {
			key->json(shown, json);
		} else {
			json_key(json, key->json_name);
			group_json_addr(json, shown);
		}
	}
}
