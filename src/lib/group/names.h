/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Names of hosts and ports. A question is answered at once, with the number as long as the
 * name is not known; threads look it up, which may take long, and names_fd() reports that
 * names have come.
 */
#ifndef NETOBS_CLI_NAMES_H
#define NETOBS_CLI_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NAMES_MAX = 64 }; /* longer ones are cut */

struct names;

struct names_question {
	uint8_t addr[16]; /* of a host, in network byte order; or */
	uint16_t port;	  /* a port, if @proto is not 0 */
	uint8_t proto;
	uint8_t reserved;
};

/* Write the name; false: it has none. May take its time: it runs in a thread. */
typedef bool names_look_up_fn(const struct names_question *question,
			      char *ret_name, size_t size);

/**
 * @look_up  NULL: the host's own databases, as nsswitch.conf(5) says
 * @return 0; -errno: no thread, memory or descriptor
 */
int names_new(names_look_up_fn *look_up, struct names **ret_names);

/**
 * Write the name of a host or a port if it is known, else its number. @names: NULL: numbers.
 */
void names_host(struct names *names, const uint8_t addr[16], char *ret_text,
		size_t size);
void names_port(struct names *names, uint16_t port, uint8_t proto,
		char *ret_text, size_t size);

/**
 * @return what is readable when names have come, until names_clear(); -1: @names is NULL
 */
int names_fd(const struct names *names);

/** To be called when names_fd() polls readable. @names: NULL: nothing is left to be done */
void names_clear(struct names *names);

/**
 * Wait until all that was asked for has been looked up, @ms at most.
 */
void names_wait(struct names *names, int ms);

/** Begin to look names up, or end it. @return false: they cannot be looked up */
bool names_toggle(struct names **names);

/**
 * Does not wait for threads, which end by themselves. NULL is fine.
 */
void names_free(struct names *names);

#endif
