/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The keys that group flows. A key takes a value from a flow; a group has the values of all keys one
 * after another, which are compared as bytes. Notes follow them, which are shown and not compared: they
 * are those of the group's first flow, except names, which are those of the last flow with a name.
 */
#ifndef NETOBS_GROUP_KEYS_H
#define NETOBS_GROUP_KEYS_H

#include "base/slots.h"

#include <netobs/group.h>
#include <netobs/networks.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json;
struct netobs_group_record;

enum {
	GROUP_KEY_BYTES_MAX = 384, /* compared bytes of a value */
	GROUP_NOTES_MAX = 480,	   /* bytes of notes */
	GROUP_VALUE_MAX = GROUP_KEY_BYTES_MAX + GROUP_NOTES_MAX
};

struct group_keys {
	size_t n;
	const struct group_key *keys[NETOBS_GROUP_KEYS_MAX];
	/* Bytes of a value, multiples of 8: the compared part, and all with notes. */
	size_t size, value_size;
	uint32_t flags; /* enum netobs_group_flag */
	bool has_names; /* notes of some keys are names, which may be found later */
	bool has_networks;
	struct netobs_networks *networks; /* if has_networks; else NULL */
};

/* One of the ends of a flow. */
enum flow_end { FLOW_SOURCE, FLOW_DESTINATION };

/* Addresses that are values by themselves. */
enum group_addr {
	ADDR_NONE,
	ADDR_SRC,
	ADDR_DST,
	ADDR_CLIENT,
	ADDR_SERVER,
	ADDR_HOST,
	GROUP_ADDRS
};

/* A flow from the view of the group that it counts for. */
struct group_part {
	const struct netobs_flow *flow;
	const uint8_t *addrs[GROUP_ADDRS];
	const struct netobs_process *process; /* of the end that it counts for, or NULL */
	const struct netobs_networks *networks;
	uint16_t server_port;
};

/* The destination for the text of a value. */
struct group_text {
	struct netobs_names *names; /* of hosts and ports, or NULL */
	char *buf;
	size_t size;
};

enum group_member_type {
	GROUP_ADDR,
	GROUP_TEXT,
	GROUP_NUMBER, /* in host byte order */
	GROUP_BE,     /* in network byte order */
	GROUP_ID,     /* in host byte order; 0: it has none */
	GROUP_HASH,
	GROUP_TUNNEL,	 /* enum netobs_tunnel */
	GROUP_DIRECTION, /* enum netobs_direction */
};

/* A part of a value, as JSON and in a record. */
struct group_member {
	const char *json; /* NULL: the end; "": it is in the list of the member before */
	uint8_t type;  /* enum group_member_type */
	uint8_t list;  /* as JSON, it is a list of so many; 0: it is none */
	uint16_t from; /* offset in the value, or in its note */
	uint16_t to;   /* offset in struct netobs_group_record */
	uint16_t size; /* there */
	uint16_t gate; /* 1 + offset of a byte that is 0 if the value has no such member; 0: it always has */
	uint32_t has;  /* enum netobs_group_field */
};

struct group_key {
	const char *name, *heading;
	bool has_networks; /* the key's value is the network of the address */
	size_t size;
	const char *has; /* other keys that this one includes */
	bool of_process; /* a flow has a value for each end with a known process */
	enum group_addr addr; /* the key's value is this address, if there is no @fill */

	/* The note, which begins with the value, is filled and shown instead of it. */
	size_t note_size;
	size_t name_at; /* of the name in the note; 0: it has none */

	const struct group_member *members; /* of what is shown */
	void (*fill)(const struct group_part *part, void *ret_value);
	void (*text)(const void *value, const struct group_text *to);
};

extern const struct group_key group_keys_all[]; /* up to one without a name */

/**
 * Parse "KEY[,KEY]..."; "flow" alone is no key.
 *
 * @return 0; -EINVAL: @ret_why has the reason
 */
int group_keys_parse(const char *text, struct group_keys *ret_keys,
		     char *ret_why, size_t size);

/**
 * Have the keys use these networks; NULL: the built-in ones.
 *
 * @return 0; -ENOMEM
 */
int group_keys_set_networks(struct group_keys *keys,
			    struct netobs_networks *networks);

/** Release what keys use. */
void group_keys_done(struct group_keys *keys);

/** @return the offset of the value of key @i in a group's value */
size_t group_keys_offset(const struct group_keys *keys, size_t i);

/**
 * Take the values of a flow; @end: the host that it counts for. After the values of the keys comes
 * the sampling, so that flows of one group have the same sampling rate, and then the notes.
 */
void group_keys_fill(const struct group_keys *keys,
		     const struct netobs_flow *flow, enum flow_end server,
		     enum flow_end end, uint8_t ret_value[GROUP_VALUE_MAX]);

/**
 * Give a group the names of another of its flows.
 *
 * @value  of the group
 * @more   of the flow, as group_keys_fill() makes it
 */
void group_keys_take_names(const struct group_keys *keys, uint8_t *value,
			   const uint8_t *more);

/** @return whether the flow counts for its end @end */
bool group_keys_count(const struct group_keys *keys,
		      const struct netobs_flow *flow, enum flow_end end);

/** Write the value of one key as text. */
void group_keys_text(const struct group_keys *keys, size_t key,
		     const uint8_t *value, const struct group_text *to);

/** Add the values of all keys to an object. */
void group_keys_json(const struct group_keys *keys, const uint8_t *value,
		     struct json *json);

/** Fill the members of a record for the values of all keys. */
void group_keys_record(const struct group_keys *keys, const uint8_t *value,
		       struct netobs_group_record *record);

/* Determines which end of a flow is the server's. */

struct netobs_flow;

enum { SERVERS = 4096 };

/* Hosts that accepted a connection, by a hash: some are overwritten. */
struct servers {
	uint64_t hashes[SERVERS];
};

/**
 * Learn from @flow, and determine its end that belongs to the server.
 */
enum flow_end server_find(struct servers *servers,
			  const struct netobs_flow *flow);

/* Networks that several groups share. */

/** @return @networks; each call needs one more netobs_networks_free() */
struct netobs_networks *networks_share(struct netobs_networks *networks);

/*
 * Groups of flows, up to a limit. Beyond it, the half with fewer bytes is added to the sum of
 * others, so that sums are exact and the largest groups stay, whenever they come.
 */

/* ---- Sums over flows ----------------------------------------------------------------- */

struct netobs_group_sum sum_of_flow(const struct netobs_flow *flow);

/** Subtract @part from @sum, except its times and its sampling. */
void sum_subtract(struct netobs_group_sum *sum,
		  const struct netobs_group_sum *part);

/** @return the mean round-trip time; 0: there are no samples */
static inline uint64_t sum_rtt_ns(const struct netobs_group_sum *sum)
{
	return sum->rtt_samples ? sum->rtt_sum_ns / sum->rtt_samples : 0;
}

/* ---- Groups -------------------------------------------------------------------------- */

struct group {
	struct netobs_group public;
	uint8_t value[]; /* of table->value_size bytes */
};

struct group_table {
	size_t value_size; /* a multiple of 8, as is the next one */
	size_t key_size;   /* the compared part of a value */
	size_t most;
	struct slots groups;		/* see group_table_at() */
	struct netobs_group_sum others; /* sum of the groups that found no room */
	uint64_t evicted_bytes; /* at most so many of them are of one group */
};

/**
 * @key_size    of a struct group_keys, as
 * @value_size
 * @most        groups; at least 1
 * @return 0; -ENOMEM
 */
int group_table_init(struct group_table *table, size_t key_size,
		     size_t value_size, size_t most);

/** @return the group in the table; valid until the next call */
struct group *group_table_add(struct group_table *table, const uint8_t *value,
			      const struct netobs_group_sum *sum);

/** Add the groups that another table had no room for. */
void group_table_add_others(struct group_table *table,
			    const struct group_table *from);

static inline struct group *group_table_at(const struct group_table *table,
					   uint32_t i)
{
	return slots_at(&table->groups, i);
}

void group_table_clear(struct group_table *table);
void group_table_free(struct group_table *table);

#endif
