/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The keys of the service's configuration, but for those of sinks. */
#ifndef NETOBS_SERVICE_SERVICE_KEYS_H
#define NETOBS_SERVICE_SERVICE_KEYS_H

#include "service/options/args.h"
#include "service_config.h"

/* An option of flows or of the service, with an underscore for each hyphen. */
struct service_key {
	const char *section, *name;
	const char *otherwise; /* "": none */
	bool is_fixed;	       /* a change takes a restart */
	const char *option; /* where it has another name; NULL: that of the key */
};

/* Up to one without a name. */
extern const struct service_key service_keys[];

extern const char *const service_actions[];
extern const char *const service_log_levels[];

const struct args_option *service_key_option(const struct service_key *key);

/** @return the size of the field of an option, other than ARGS_LIST */
size_t service_key_size(enum args_type type);

void service_keys_default(struct service_config *config);

/** Store the value of an entry, or report that there is no such section or key. */
void service_keys_take(struct service_config *config,
		       const struct conf_entry *entry);

#endif
