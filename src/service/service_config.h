/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The configuration of the service, as netobs.conf(5) describes it: netobsctl flows, by a file. */
#ifndef NETOBS_SERVICE_SERVICE_CONFIG_H
#define NETOBS_SERVICE_SERVICE_CONFIG_H

#include <netobs/diagnosis.h>
#include <netobs/netobs.h>
#include <netobs/series.h>
#include <netobs/trace.h>

#include "conf.h"
#include "service/options/args.h"
#include "service/options/session_choice.h"
#include "service/control/control.h"
#include "service/observe/flows_config.h"
#include "service/outputs/output.h"

#define SERVICE_CONFIG_FILE NETOBS_CONFIG_DIR "/netobs.conf"

enum { SERVICE_SINKS_MAX = 32, SERVICE_GROUPS_MAX = 16 };

/* A [sink "NAME"], [filter "NAME"] or [alert "NAME"]. */
struct service_item {
	const char *name;
	char *text; /* the sink's spec */
	struct conf_place place;
};

/* A [group "NAME"]. */
struct service_group_config {
	const char *name, *by;
	uint32_t series;     /* at most */
	uint32_t histograms; /* enum netobs_series_histogram, or-ed */
	bool has_records, has_metrics;
};

/* Verdicts that say what is normal for services. */
struct norms {
	struct netobs_verdict *list;
	uint32_t n, capacity;
};

/* [diagnose] */
struct diagnose_config {
	bool is_enabled;
	uint32_t for_ms, max;
	const char *norms_file;
	struct norms norms; /* those in that file */
};

struct service_config {
	struct flows_config flows;
	int default_action, log_level;
	bool persist;
	const char *persist_dir; /* NULL: NETOBS_PERSIST_DIR */
	const char *filter;
	bool wants_sessions, wants_drops;
	struct conf_place wrong_host; /* position of an error in [host]; its file is NULL: no error */
	struct session_choice sessions;
	const char *control; /* path of its socket; NULL: CONTROL_SOCKET; "none": there is none */
	struct service_item sinks[SERVICE_SINKS_MAX];
	size_t n_sinks;
	struct service_item filters[NETOBS_RULES_MAX]; /* flows.rules has them, too */
	size_t n_filters;
	struct service_item alerts[NETOBS_ALERT_RULES_MAX]; /* in the order of flows.alerts */
	uint32_t alert_trace_ms[NETOBS_ALERT_RULES_MAX]; /* trace time of each rule; 0: no trace */
	size_t n_alerts;
	struct netobs_trace_opts trace;
	struct diagnose_config diagnose;
	struct service_group_config groups[SERVICE_GROUPS_MAX];
	size_t n_groups;
	struct netobs_networks *networks; /* NULL: those without a list */
	char *networks_text;		  /* all that they are made of */
	bool leaves_filters; /* they are checked when they are used */
	struct conf conf;    /* the strings are its own */
};

/**
 * Read the configuration and check it.
 *
 * @param path        of the file; NULL: SERVICE_CONFIG_FILE
 * @param leaves_filters  to compile filters takes a while: netobs_change_begin() does it
 * @param on_error    gets each error, as FILE:LINE:COLUMN: MESSAGE
 * @param ret_config  to be cleared in any case
 * @return the number of errors
 */
unsigned int service_config_read(struct service_config *ret_config,
				 const char *path, bool leaves_filters,
				 void (*on_error)(const char *line, void *user),
				 void *user);

void service_config_clear(struct service_config *config);

/**
 * Keep what cannot change while the service runs as it is in @running.
 *
 * @param on_kept  is called with a line for each key whose change takes a restart
 */
void service_config_keep(struct service_config *config,
			 const struct service_config *running,
			 void (*on_kept)(const char *line, void *user),
			 void *user);

/**
 * Put the position in the configuration in front of a message of the library about a setting.
 *
 * @param ret_text  unchanged if the message is about no setting
 * @return whether the message is about a setting
 */
bool service_config_place(const struct service_config *config,
			  const char *message, char *ret_text, size_t size);

/** @return whether both have the same spool on disk */
bool service_specs_share_spool(const char *a, const char *b);

/** @return whether both are to have a file or a spool that only one sink may have */
bool service_specs_collide(const char *a, const char *b);

/* ---- The keys, except those of sinks ---------------------------------------------------- */

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

/** Add the group of a section, with its key "by", to the configuration, or report an error. */
void group_config_add(struct service_config *config,
		      const struct conf_entry *header,
		      const struct conf_entry *by);

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
