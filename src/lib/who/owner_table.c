// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "owners.h"

#include "base/hash.h"
#include "base/text.h"
#include "base/util.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
	BUCKETS_MIN = 1024,
	SWEEP_BUCKETS = 4096,
	/* The programs read a coarse clock, which is a tick late. */
	SLACK_MS = 20,
	/* A server's handshake precedes its connection. */
	HANDSHAKE_MS = 5000,
	/* Limit of sockets with the same addresses and ports; more become a crowd. */
	EQUALS_MAX = 64,
	SLAB_ENTRIES = 512,
};

/* Entries that are freed at once: one by one, those of 160,000 sockets take 20 ms. */
struct owner_slab {
	struct owner_slab *next;
	struct owner_entry entries[SLAB_ENTRIES];
};

_Static_assert(OWNER_KEY_WORDS % 2 == 0, "words are hashed in pairs");

int owner_table_init(struct owner_table *table, uint32_t max)
{
	*table = (struct owner_table){ .n_buckets = BUCKETS_MIN,
				       .level = BUCKETS_MIN,
				       .max = max };
	table->buckets = calloc(2 * BUCKETS_MIN, sizeof(*table->buckets));
	if (!table->buckets)
		return -ENOMEM;
	return getrandom(table->secret, sizeof(table->secret), 0) < 0 ? -errno :
									0;
}

/* Allocate a slab. @return its entries as a list; NULL: no memory */
static struct owner_entry *add_slab(struct owner_table *table)
{
	struct owner_slab *slab = malloc(sizeof(*slab));

	if (!slab)
		return NULL;
	slab->next = table->slabs;
	table->slabs = slab;
	for (int i = 0; i < SLAB_ENTRIES; i++)
		slab->entries[i].next = i ? &slab->entries[i - 1] : NULL;
	return &slab->entries[SLAB_ENTRIES - 1];
}

static struct owner_entry *take_entry(struct owner_table *table)
{
	struct owner_entry *entry = table->unused ?: add_slab(table);

	if (!entry)
		return NULL;
	table->unused = entry->next;
	*entry = (struct owner_entry){ 0 };
	table->count++;
	return entry;
}

static void put_entry(struct owner_table *table, struct owner_entry *entry)
{
	entry->next = table->unused;
	table->unused = entry;
	table->count--;
}

void owner_table_done(struct owner_table *table)
{
	while (table->slabs) {
		struct owner_slab *next = table->slabs->next;

		free(table->slabs);
		table->slabs = next;
	}
	free(table->buckets);
	*table = (struct owner_table){ 0 };
}

static uint64_t hash_of(const struct owner_table *table,
			const struct owner_key *key)
{
	return hash_bytes(key, sizeof(*key), table->secret);
}

static struct owner_entry **bucket_of(const struct owner_table *table,
				      const struct owner_key *key)
{
	const uint64_t hash = hash_of(table, key);
	uint64_t i = hash & (2 * (uint64_t)table->level - 1);

	if (i >= table->n_buckets)
		i = hash & (table->level - 1);
	return &table->buckets[i];
}

static bool is_key(const struct owner_entry *entry, const struct owner_key *key)
{
	return !memcmp(&entry->key, key, sizeof(*key));
}

/* Double the room for buckets. Pages of large tables are moved, not copied. */
static bool make_owner_room(struct owner_table *table)
{
	struct owner_entry **buckets;

	if (table->n_buckets < 2 * table->level)
		return true;
	buckets = realloc(table->buckets,
			  4 * (size_t)table->level * sizeof(*buckets));
	if (!buckets)
		return false;
	table->buckets = buckets;
	table->level *= 2;
	return true;
}

/* Split the next bucket. Without memory, chains are longer. */
static void grow_table(struct owner_table *table)
{
	struct owner_entry *entry;
	uint32_t from;

	if (table->count < table->n_buckets || !make_owner_room(table))
		return;
	from = table->n_buckets - table->level;
	entry = table->buckets[from];
	table->buckets[from] = table->buckets[table->n_buckets] = NULL;
	table->n_buckets++;
	while (entry) {
		struct owner_entry *next = entry->next;
		struct owner_entry **bucket = bucket_of(table, &entry->key);

		entry->next = *bucket;
		*bucket = entry;
		entry = next;
	}
}

/* @return the socket's entry, or the crowd if too many have that key; NULL: none */
static struct owner_entry *find_owner_entry(const struct owner_table *table,
					    const struct owner_key *key,
					    uint64_t cookie, bool *ret_is_crowded)
{
	struct owner_entry *entry = *bucket_of(table, key), *crowd = NULL;
	int equals = 0;

	for (; entry; entry = entry->next) {
		if (!is_key(entry, key))
			continue;
		if (entry->is_crowd)
			crowd = entry;
		else if (entry->cookie == cookie)
			return entry;
		else
			equals++;
	}
	*ret_is_crowded = equals >= EQUALS_MAX;
	return *ret_is_crowded ? crowd : NULL;
}

static struct owner_entry *ensure_entry(struct owner_table *table,
					const struct owner_key *key,
					uint64_t cookie)
{
	bool is_crowded = false;
	struct owner_entry *entry = find_owner_entry(table, key, cookie,
						     &is_crowded),
			   **bucket;

	if (entry)
		return entry;
	entry = table->count < table->max ? take_entry(table) : NULL;
	if (!entry) {
		table->refused++;
		return NULL;
	}
	entry->key = *key;
	entry->cookie = cookie;
	entry->is_crowd = is_crowded;
	grow_table(table);
	bucket = bucket_of(table, key);
	entry->next = *bucket;
	*bucket = entry;
	return entry;
}

static uint32_t pid_of(const struct owner_entry *entry)
{
	return entry->owner.by ? entry->owner.pid_tgid >> 32 : 0;
}

/* Update the entry for a crowd, which ends once none of its sockets is seen. */
static void note_in_crowd(struct owner_entry *crowd,
			  const struct session_event *event)
{
	const bool is_first = !crowd->seen_ns;

	if (is_first || (int64_t)event->start_ns < crowd->from_ns)
		crowd->from_ns = (int64_t)event->start_ns;
	crowd->seen_ns = (int64_t)event->time_ns;
	crowd->to_ns = INT64_MAX;
	if (is_first)
		crowd->owner = event->owner;
	else if (pid_of(crowd) != event->owner.pid_tgid >> 32)
		crowd->owner = (struct session_owner){ 0 };
	else if (crowd->owner.pid_tgid != event->owner.pid_tgid)
		crowd->owner.thread[0] = '\0';
}

/* Update an entry from an event, which may be older than the list of sockets. */
static void note_owner(struct owner_table *table, const struct owner_key *key,
		       const struct session_event *event)
{
	struct owner_entry *entry = ensure_entry(table, key, event->cookie);

	if (!entry || (int64_t)event->time_ns < entry->seen_ns)
		return;
	if (entry->is_crowd) {
		note_in_crowd(entry, event);
		return;
	}
	entry->seen_ns = (int64_t)event->time_ns;
	entry->from_ns = (int64_t)event->start_ns ?: entry->from_ns;
	entry->to_ns = event->end.time_ns ? (int64_t)event->end.time_ns :
					    INT64_MAX;
	/* A list of subflows does not know who opened them. */
	if (event->owner.by || !entry->owner.by)
		entry->owner = event->owner;
}

/* An IPv6 socket without an address receives IPv4 packets, too, unless it is IPv6-only. */
void owner_table_note(struct owner_table *table, const struct session_event *event)
{
	struct owner_key key = { .local_port = event->local_port,
				 .remote_port = event->remote_port,
				 .netns = event->netns,
				 .protocol = event->protocol };

	memcpy(key.local, event->local, sizeof(key.local));
	if (key.remote_port)
		memcpy(key.remote, event->remote, sizeof(key.remote));
	note_owner(table, &key, event);
	if (!event->is_dual || !ip_is_any(key.local))
		return;
	key.local[10] = key.local[11] = 0xff;
	note_owner(table, &key, event);
}

void owner_table_begin_round(struct owner_table *table, int64_t now_ns)
{
	table->begun_ns = now_ns;
}

/* @return whether the entry stays */
static bool sweep_entry(const struct owner_table *table,
			struct owner_entry *entry, int64_t now_ns,
			int64_t before_ns)
{
	if (entry->to_ns == INT64_MAX && entry->seen_ns < table->begun_ns)
		entry->to_ns = now_ns;
	return entry->to_ns >= before_ns;
}

bool owner_table_sweep(struct owner_table *table, uint32_t *cursor,
		       int64_t now_ns, int64_t before_ns, owner_visit_fn *visit,
		       void *user)
{
	const uint32_t end =
		(uint32_t)min_u64(*cursor + SWEEP_BUCKETS, table->n_buckets);

	for (; *cursor < end; (*cursor)++)
		for (struct owner_entry **at = &table->buckets[*cursor]; *at;) {
			struct owner_entry *entry = *at;

			if (sweep_entry(table, entry, now_ns, before_ns)) {
				if (visit)
					visit(entry, user);
				at = &entry->next;
				continue;
			}
			*at = entry->next;
			put_entry(table, entry);
		}
	return *cursor < table->n_buckets;
}

static bool was_open(const struct owner_entry *entry, int64_t first_ns,
		     int64_t last_ns)
{
	const int64_t slack_ns = SLACK_MS * NSEC_PER_MSEC;

	return entry->from_ns - slack_ns <= last_ns &&
	       (entry->to_ns == INT64_MAX || entry->to_ns + slack_ns >= first_ns);
}

/* A socket that has ended may leave its addresses to another one at once. */
bool owner_was_open_throughout(const struct owner_entry *entry,
			       int64_t first_ns, int64_t last_ns)
{
	const int64_t slack_ns = SLACK_MS * NSEC_PER_MSEC;
	const int64_t after_ns = entry->to_ns == INT64_MAX ? -slack_ns : slack_ns;

	return entry->from_ns - slack_ns <= first_ns &&
	       entry->seen_ns >= last_ns + after_ns;
}

/* If no socket was open then, the last one before the packets is nearest, then the next one after them. */
static bool is_nearer(const struct owner_entry *a, const struct owner_entry *b,
		      int64_t last_ns)
{
	const bool a_came = a->from_ns <= last_ns, b_came = b->from_ns <= last_ns;

	if (a_came != b_came)
		return a_came;
	return a_came ? a->to_ns > b->to_ns : a->from_ns < b->from_ns;
}

static bool may_be_handshake(const struct owner_entry *entry, int64_t last_ns)
{
	return entry->from_ns - last_ns < HANDSHAKE_MS * NSEC_PER_MSEC;
}

enum owner_found owner_table_find(const struct owner_table *table,
				  const struct owner_key *key, int64_t first_ns,
				  int64_t last_ns,
				  const struct owner_entry **ret_entry)
{
	const struct owner_entry *entry = *bucket_of(table, key);
	const struct owner_entry *open = NULL, *other = NULL;

	if (table->since_ns &&
	    first_ns + SLACK_MS * NSEC_PER_MSEC < table->since_ns)
		return OWNER_SEVERAL;
	for (; entry; entry = entry->next) {
		if (!is_key(entry, key))
			continue;
		if (!was_open(entry, first_ns, last_ns)) {
			if (!other || is_nearer(entry, other, last_ns))
				other = entry;
			continue;
		}
		if (open && pid_of(open) != pid_of(entry))
			return OWNER_SEVERAL;
		if (!open || entry->from_ns > open->from_ns)
			open = entry;
	}
	if (!open && other && key->protocol == IPPROTO_TCP &&
	    (other->from_ns <= last_ns || may_be_handshake(other, last_ns)))
		open = other;
	if (!open)
		return OWNER_NONE;
	if (!pid_of(open))
		return OWNER_UNKNOWN;
	*ret_entry = open;
	return OWNER_FOUND;
}
