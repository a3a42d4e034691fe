/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The selected interfaces and namespaces: the options @interfaces and @exclude. */
#ifndef NETOBS_HOST_SELECTION_H
#define NETOBS_HOST_SELECTION_H

#include "base/log.h"
#include "netif.h"

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

/* Names and altnames of interfaces, and regular expressions for them: eth0, /^veth/. */

struct pattern {
	char *text; /* without slashes */
	bool is_regex;
	regex_t regex;
};

struct patterns {
	struct pattern *items;
	uint32_t count;
};

/* Add what @text means; @option names the field of struct netobs_opts in errors. */
int patterns_add(struct patterns *patterns, const char *text,
		 const char *option, const struct log *log);

/* Move all of @from, which is empty afterwards; -ENOMEM. */
int patterns_move(struct patterns *to, struct patterns *from);

void patterns_done(struct patterns *patterns);

bool patterns_match(const struct patterns *patterns, const char *name);

/* @return whether one of the patterns is this plain name */
bool patterns_name(const struct patterns *patterns, const char *name);

/* The selected interfaces of one namespace. */
struct selected {
	char *netns; /* name; NULL: the caller's own */
	bool is_all; /* any interface */
	struct patterns include;
};

struct selection {
	struct selected *items; /* a namespace each */
	uint32_t count;
	struct patterns exclude;
};

/* Copy the options, NULL-terminated lists or NULL. On failure, which is logged, @selection is empty. */
int selection_init(struct selection *selection, const char *const *interfaces,
		   const char *const *exclude, const struct log *log);

void selection_done(struct selection *selection);

/* @return the selected interfaces of the namespace called @netns; NULL: none is selected */
struct selected *selection_find(const struct selection *selection,
				const char *netns);

/* @param altnames  as in struct netif */
bool selection_has(const struct selection *selection,
		   const struct selected *selected, const char *interface,
		   const char *altnames);

/* @return whether @netif is selected by a plain name */
bool selected_names(const struct selected *selected, const struct netif *netif);

/*
 * The namespace of item @i is the one called @netns: @i is renamed or, where @netns is
 * in the selection, becomes a part of that item.
 */
int selection_rename(struct selection *selection, uint32_t i, const char *netns);

/*
 * @return -ENODEV, which is logged: a plain name is that of no interface in @netifs, and is not in
 *         @before (NULL: empty)
 */
int selected_check_names(const struct selected *selected,
			 const struct selected *before,
			 const struct netifs *netifs, const struct log *log);

#endif
