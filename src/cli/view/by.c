/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "by.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <netobs/flow.h>

#include "base/json.h"
#include "service/text/human.h"
#include "group/names.h"
#include "base/suggest.h"

/* Behind the values of keys. */
struct by_rate {
	uint32_t sampling, mode;
};

static size_t aligned_size(size_t size)
{
	return (size + 7) & ~(size_t)7;
}

static const struct by_key *by_find_key(const char *name, size_t len, char *why,
					size_t size)
{
	struct suggestion suggestion = suggestion_for(name, len);
	const char *best;
	size_t used;

	for (const struct by_key *key = by_keys; key->name; key++) {
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
	for (const struct by_key *key = by_keys; key->name && used < size; key++)
		used += (size_t)snprintf(why + used, size - used, ", %s",
					 key->name);
	return NULL;
}

/* Of "port proto". */
static bool key_has_part(const struct by_key *key, const char *name)
{
	const char *part = strstr(key->has, name);

	return part && strcspn(part, " ") == strlen(name);
}

/* With "host", a group of one of these would be there twice, with its own host and the other. */
static const char *by_hint(const struct by_key *key, const struct by_key *other)
{
	return key->addr == BY_ADDR_HOST || other->addr == BY_ADDR_HOST ?
		       "; 'client,service' and 'src,dst' have both hosts of a flow" :
		       "";
}

static int by_add_key(struct by *by, const struct by_key *key, char *why,
		      size_t size)
{
	for (size_t i = 0; i < by->n; i++) {
		const struct by_key *other = by->keys[i];

		if (other == key) {
			snprintf(why, size, "'%s' is there twice", key->name);
			return -EINVAL;
		}
		if (!key_has_part(other, key->name) &&
		    !key_has_part(key, other->name))
			continue;
		snprintf(why, size, "'%s' and '%s': one is part of the other%s",
			 other->name, key->name, by_hint(key, other));
		return -EINVAL;
	}
	if (by->n == BY_KEYS ||
	    by->size + aligned_size(key->size) + sizeof(struct by_rate) >
		    BY_SIZE) {
		snprintf(why, size, "too many keys");
		return -EINVAL;
	}
	by->keys[by->n++] = key;
	by->size += aligned_size(key->size);
	by->both_ends |= key->addr == BY_ADDR_HOST || key->of_process;
	by->of_process |= key->of_process;
	return 0;
}

int by_parse(const char *text, struct by *ret_by, char *ret_why, size_t size)
{
	struct by by = { 0 };

	if (!strcmp(text, "flow")) {
		*ret_by = by;
		return 0;
	}
	for (;; text++) {
		size_t len = strcspn(text, ",");
		const struct by_key *key;

		if (len == 4 && !strncmp(text, "flow", len)) {
			snprintf(ret_why, size, "'flow' stands alone");
			return -EINVAL;
		}
		key = by_find_key(text, len, ret_why, size);
		if (!key || by_add_key(&by, key, ret_why, size) < 0)
			return -EINVAL;
		text += len;
		if (!*text)
			break;
	}
	by.size += sizeof(struct by_rate);
	*ret_by = by;
	return 0;
}

int by_offset(const struct by *by, const char *key, size_t *ret_size)
{
	size_t offset = 0;

	for (size_t i = 0; i < by->n; i++) {
		*ret_size = by->keys[i]->size;
		if (!strcmp(by->keys[i]->name, key))
			return (int)offset;
		offset += aligned_size(by->keys[i]->size);
	}
	return -1;
}

/* ---- Values --------------------------------------------------------------------- */

uint32_t by_sampling(const struct netobs_flow *flow)
{
	return flow->has & NETOBS_HAS_SAMPLING ? flow->sampling : 0;
}

static const struct netobs_process *process_of(const struct netobs_flow *flow,
					       enum by_end end)
{
	return end == BY_SOURCE ? flow->src_process : flow->dst_process;
}

/* One of which no process is known counts once. */
bool by_counts(const struct by *by, const struct netobs_flow *flow,
	       enum by_end end)
{
	if (!by->both_ends)
		return end == BY_SOURCE;
	return !by->of_process || process_of(flow, end) ||
	       (end == BY_SOURCE && !flow->dst_process);
}

void by_fill(const struct by *by, const struct netobs_flow *flow,
	     enum by_end server, enum by_end end, uint8_t ret_value[BY_SIZE])
{
	const struct by_rate rate = { by_sampling(flow), flow->sampling_mode };
	const bool from_server = server == BY_SOURCE;
	const struct by_part part = {
		.flow = flow,
		.addrs = { [BY_ADDR_SRC] = flow->src,
			   [BY_ADDR_DST] = flow->dst,
			   [BY_ADDR_CLIENT] = from_server ? flow->dst : flow->src,
			   [BY_ADDR_SERVER] = from_server ? flow->src : flow->dst,
			   [BY_ADDR_HOST] = end == BY_SOURCE ? flow->src :
							       flow->dst },
		.process = process_of(flow, end),
		.server_port = !(flow->has & NETOBS_HAS_PORTS) ? 0 :
			       from_server ? flow->src_port :
					     flow->dst_port,
	};

	memset(ret_value, 0, by->size);
	for (size_t i = 0; i < by->n; i++) {
		const struct by_key *key = by->keys[i];

		if (key->fill)
			key->fill(&part, ret_value);
		else
			memcpy(ret_value, part.addrs[key->addr], key->size);
		ret_value += aligned_size(key->size);
	}
	memcpy(ret_value, &rate, sizeof(rate));
}

const char *by_heading(const struct by *by, size_t key)
{
	return by->keys[key]->heading;
}

void by_text(const struct by *by, size_t key, const uint8_t value[BY_SIZE],
	     struct names *names, char *buf, size_t size)
{
	for (size_t i = 0; i < key; i++)
		value += aligned_size(by->keys[i]->size);
	if (by->keys[key]->text)
		by->keys[key]->text(value, names, buf, size);
	else
		names_host(names, value, buf, size);
}

void by_json(const struct by *by, const uint8_t value[BY_SIZE], struct json *json)
{
	for (size_t i = 0; i < by->n; i++) {
		const struct by_key *key = by->keys[i];

		if (key->json) {
			key->json(value, json);
		} else {
			json_key(json, key->json_name);
			by_json_addr(json, value);
		}
		value += aligned_size(key->size);
	}
}
