/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What flows are grouped by: --by KEY[,KEY]... A key takes a value from a flow; a group
 * has the values of all keys behind one another, which compare as bytes.
 */
#ifndef NETOBS_CLI_BY_H
#define NETOBS_CLI_BY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json;
struct names;
struct netobs_flow;

enum { BY_KEYS = 4, BY_SIZE = 136 };

struct by {
	size_t n; /* 0: flows, each by itself */
	const struct by_key *keys[BY_KEYS];
	size_t size; /* of a value, a multiple of 8, with what by_fill() adds */
	bool both_ends;	    /* a flow counts at both of its hosts, */
	bool of_process;    /* or at those of which the process is known */
	bool shows_process; /* of flows, each by itself */
	bool shows_rtt;	    /* of TCP, beside what is counted */
};

/* Addresses that are values by themselves. */
enum by_addr {
	BY_ADDR_NONE,
	BY_ADDR_SRC,
	BY_ADDR_DST,
	BY_ADDR_CLIENT,
	BY_ADDR_SERVER,
	BY_ADDR_HOST,
	BY_ADDRS
};

/* What a flow is to the group that it counts for. */
struct by_part {
	const struct netobs_flow *flow;
	const uint8_t *addrs[BY_ADDRS];
	const struct netobs_process *process; /* of the end that it counts for, or NULL */
	uint16_t server_port;
};

struct by_key {
	const char *name, *heading;
	size_t size;
	const char *has; /* other keys that are part of it */
	bool of_process; /* a flow has a value for each end of which the process is known */

	enum by_addr addr; /* all that is needed of an address, or */
	const char *json_name;

	void (*fill)(const struct by_part *part, void *ret_value);
	void (*text)(const void *value, struct names *names, char *buf,
		     size_t size);
	void (*json)(const void *value, struct json *json);
};

extern const struct by_key by_keys[]; /* up to one without a name */

/* What distinguishes one flow from another, and comes first in a table. */
struct flow_tuple {
	uint8_t src[16], dst[16];
	uint16_t src_port, dst_port;
	uint8_t proto;
	uint8_t has_ports;
};

/* One of the ends of a flow. */
enum by_end { BY_SOURCE, BY_DESTINATION };

/**
 * Parse "KEY[,KEY]..."; "flow" alone is no key.
 *
 * @return 0; -EINVAL: @ret_why has the reason
 */
int by_parse(const char *text, struct by *ret_by, char *ret_why, size_t size);

/**
 * @return where the value of @key begins in a group's, and its size in @ret_size; -1: it is
 *         not among the keys
 */
int by_offset(const struct by *by, const char *key, size_t *ret_size);

/** @return the sampling that the record names; 0: none */
uint32_t by_sampling(const struct netobs_flow *flow);

/**
 * Take the values of a flow, @end being the host that it counts for. Behind those of the keys is
 * the sampling, so that no group has flows that were sampled at different rates.
 */
void by_fill(const struct by *by, const struct netobs_flow *flow,
	     enum by_end server, enum by_end end, uint8_t ret_value[BY_SIZE]);

/** @return whether the flow counts for that end of it */
bool by_counts(const struct by *by, const struct netobs_flow *flow,
	       enum by_end end);

const char *by_heading(const struct by *by, size_t key);

/**
 * The value of one key as text. @names: of hosts and ports, or NULL.
 */
void by_text(const struct by *by, size_t key, const uint8_t value[BY_SIZE],
	     struct names *names, char *buf, size_t size);

/**
 * Add the values of all keys to an object.
 */
void by_json(const struct by *by, const uint8_t value[BY_SIZE],
	     struct json *json);

void by_json_addr(struct json *json, const uint8_t addr[16]);

void by_fill_tuple(const struct netobs_flow *flow, struct flow_tuple *ret_tuple);

/**
 * "10.0.0.1:40000 -> 10.0.0.2:443", with an arrow. @names: or NULL.
 */
void by_tuple_text(const struct flow_tuple *tuple, struct names *names,
		   char *buf, size_t size);

#endif
