// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "datagrams.h"

#include "base/util.h"

enum { FIRST_BUCKETS = 64 };

static uint32_t bucket_of(const struct direction *direction, uint8_t mark,
			  uint64_t value, uint32_t n_buckets)
{
	uint64_t hash = (uintptr_t)direction ^ value * 0x9e3779b97f4a7c15ULL;

	hash = (hash ^ mark) * 0xff51afd7ed558ccdULL;
	return (uint32_t)(hash >> 32) & (n_buckets - 1);
}

static bool is_key(const struct datagram_key *key,
		   const struct direction *direction, uint8_t mark,
		   uint64_t value)
{
	return key->value == value && key->mark == mark &&
	       key->datagram->direction == direction;
}

/* The table must have buckets. */
static struct datagram_key **find_key(const struct datagram_keys *keys,
				      const struct direction *direction,
				      uint8_t mark, uint64_t value)
{
	struct datagram_key **at =
		&keys->buckets[bucket_of(direction, mark, value, keys->n_buckets)];

	while (*at && !is_key(*at, direction, mark, value))
		at = &(*at)->next;
	return at;
}

/* Without memory, buckets become longer. */
static void grow_buckets(struct datagram_keys *keys)
{
	const uint32_t n = keys->n_buckets ? 2 * keys->n_buckets : FIRST_BUCKETS;
	struct datagram_key **buckets = calloc(n, sizeof(*buckets));

	if (!buckets)
		return;
	for (uint32_t i = 0; i < keys->n_buckets; i++) {
		struct datagram_key *next = keys->buckets[i];

		for (struct datagram_key *it; (it = next);) {
			struct datagram_key **at =
				&buckets[bucket_of(it->datagram->direction,
						   it->mark, it->value, n)];

			next = it->next;
			it->next = *at;
			*at = it;
		}
	}
	free(keys->buckets);
	keys->buckets = buckets;
	keys->n_buckets = n;
}

struct datagram *datagram_keys_find(const struct datagram_keys *keys,
				    const struct direction *direction,
				    enum datagram_mark mark, uint64_t value)
{
	struct datagram_key *key =
		keys->n ? *find_key(keys, direction, mark, value) : NULL;

	return key ? key->datagram : NULL;
}

static void remove_key(struct datagram_keys *keys, struct datagram_key *key)
{
	struct datagram_key **own = &key->datagram->keys;

	*find_key(keys, key->datagram->direction, key->mark, key->value) =
		key->next;
	while (*own != key)
		own = &(*own)->next_own;
	*own = key->next_own;
	free(key);
	keys->n--;
}

void datagram_keys_set(struct datagram_keys *keys, struct datagram *datagram,
		       enum datagram_mark mark, uint64_t value)
{
	struct datagram_key *key, **at;

	if (keys->n >= keys->n_buckets)
		grow_buckets(keys);
	key = keys->n_buckets ? malloc(sizeof(*key)) : NULL;
	if (!key)
		return;
	at = find_key(keys, datagram->direction, mark, value);
	if (*at)
		remove_key(keys, *at);
	at = &keys->buckets[bucket_of(datagram->direction, mark, value,
				      keys->n_buckets)];
	*key = (struct datagram_key){
		.next = *at,
		.next_own = datagram->keys,
		.datagram = datagram,
		.value = value,
		.mark = mark,
	};
	*at = key;
	datagram->keys = key;
	keys->n++;
}

void datagram_keys_remove(struct datagram_keys *keys, struct datagram *datagram)
{
	while (datagram->keys)
		remove_key(keys, datagram->keys);
}

void datagram_keys_free(struct datagram_keys *keys)
{
	free(keys->buckets);
	*keys = (struct datagram_keys){ 0 };
}
