/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The keys of the service's configuration, except those of sinks. */
#ifndef NETOBS_SERVICE_SERVICE_KEYS_H
#define NETOBS_SERVICE_SERVICE_KEYS_H

#include "service/options/args.h"
#include "service_config.h"

struct service_key {
	const char *section;
	struct args_option option; /* its name has underscores for hyphens */
	bool is_fixed;		   /* a change takes a restart */
	bool (*check)(struct service_config *config, const char *value,
		      char *ret_why,
		      size_t size); /* requirements beyond the type; NULL: none */
};

/* The last one has no section. */
extern const struct service_key service_keys[];

/** @return 1: "yes", or a word like it; 0: "no"; < 0: neither */
int service_keys_switch(const char *value);

/** @return the size of the field of an option, other than ARGS_LIST */
size_t service_key_size(enum args_type type);

void service_keys_default(struct service_config *config);

/** Store the value of an entry, or report that there is no such section or key. */
void service_keys_take(struct service_config *config,
		       const struct conf_entry *entry);

#endif
