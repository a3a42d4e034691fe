/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The keys of the service's configuration, except those of sinks. */
#ifndef NETOBS_SERVICE_SERVICE_KEYS_H
#define NETOBS_SERVICE_SERVICE_KEYS_H

#include <stdbool.h>

#include <netobs/series.h>

#include "service/options/args.h"
#include "service_config.h"
#include "conf.h"

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

/* ---- The sections [group "NAME"] of the configuration ---------------------------------- */

/** Add the group of a section to the configuration, or report an error. */
void group_config_add(struct service_config *config,
		      const struct conf_entry *header);

struct service_group_config;

/** @return as netobs_series_new() */
int group_config_open(const struct service_group_config *group,
		      struct netobs_networks *networks,
		      char (*error)[NETOBS_ERROR_MAX],
		      struct netobs_series **ret_series);

/* ---- The sections [network "NAME"] of the configuration -------------------------------- */

/** Fill the networks of the configuration, or report an error. */
void network_config_take(struct service_config *config);

/* ---- The sections [sink "NAME"] and [host] as the spec of a sink: netobs-sinks(7) ------ */

/** @return whether it is field.NAME of [host]: other keys of that section are the service's */
bool sink_spec_is_host_field(const struct conf_entry *entry);

/**
 * @param output  the key "output" of a sink
 * @return output?NAME=VALUE&..., the caller's; NULL: there is no memory
 */
char *sink_spec_make(const struct conf *conf, const struct conf_entry *output);

/** @return the key that a message of a sink is about, or else where it goes */
struct conf_place sink_spec_place(const struct conf *conf,
				  const struct conf_entry *output,
				  const char *message);

#endif
